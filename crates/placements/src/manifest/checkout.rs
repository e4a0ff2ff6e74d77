//! A git repository at one commit, fetched on this machine so that its credentials stay here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use support::GitAddress;

use crate::error::PlacementError;
use crate::scratch::ScratchDir;
use crate::tool::{ToolOutput, ToolRoom, ToolRun};

const LIMIT: Duration = Duration::from_secs(600);

/// Nothing of the repository runs: no hooks, no other transports, no content from elsewhere.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.logAllRefUpdates=false",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "gc.auto=0",
];

#[derive(Debug)]
pub(super) struct RepositoryCheckout {
    pub(super) folder: ScratchDir,
    /// Without a name and password, which must not get into the placement.
    pub(super) url: String,
    pub(super) commit: String,
}

pub(super) fn validate(url: &str, rev: Option<&str>) -> Result<(), String> {
    let has_scheme = ["https://", "ssh://", "file://"].iter().any(|scheme| url.starts_with(scheme));
    let is_scp_like = url
        .split_once(':')
        .is_some_and(|(host, path)| host.contains('@') && !host.contains('/') && !path.starts_with(':'));
    let is_plain =
        !url.starts_with('-') && !url.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    if !is_plain || !(has_scheme || is_scp_like) {
        return Err("url must be https://…, ssh://…, file://… or user@host:path".to_owned());
    }
    GitAddress::parse(url).map_err(|problem| format!("url: {problem}"))?;
    match rev {
        Some(rev)
            if rev.is_empty()
                || rev.starts_with('-')
                || rev.contains(|letter: char| {
                    letter.is_whitespace() || letter.is_control() || ":*?[\\^~".contains(letter)
                }) =>
        {
            Err(format!("rev {rev:?} must be a branch, a tag or a whole commit"))
        }
        _ => Ok(()),
    }
}

impl RepositoryCheckout {
    /// All of it, or one of its folders. A link may not lead elsewhere.
    pub(super) fn part(&self, subpath: Option<&str>) -> Result<PathBuf, String> {
        let whole = self.folder.path();
        let Some(subpath) = subpath else { return Ok(whole.to_owned()) };
        let missing = || format!("subpath: the repository has no folder {subpath:?}");
        let whole = whole.canonicalize().map_err(|_| missing())?;
        let part = whole.join(subpath).canonicalize().map_err(|_| missing())?;
        let is_ours = part.starts_with(&whole) && !part.starts_with(whole.join(".git"));
        if is_ours && part.is_dir() { Ok(part) } else { Err(missing()) }
    }
}

/// `room` is how many bytes the repository and its files may have on this machine.
pub(super) async fn checkout(
    url: &str,
    rev: Option<&str>,
    depth: u32,
    room: u64,
) -> Result<RepositoryCheckout, PlacementError> {
    let address = GitAddress::parse(url).map_err(|problem| PlacementError::invalid("url", problem))?;
    let folder = ScratchDir::new()?;
    let git = Git { address: &address, at: folder.path(), room };
    let fetched = git.fetch(rev.unwrap_or("HEAD"), depth).await;
    let commit = fetched.map_err(|error| error.without(&address.secrets()))?;
    Ok(RepositoryCheckout { folder, url: address.plain().to_owned(), commit })
}

/// One repository on its way into a folder of ours.
#[derive(Debug)]
struct Git<'a> {
    address: &'a GitAddress,
    at: &'a Path,
    room: u64,
}

impl Git<'_> {
    /// Returns the commit that is checked out.
    async fn fetch(&self, rev: &str, depth: u32) -> Result<String, PlacementError> {
        let url = self.address.plain();
        let is_commit = rev.len() == 40 && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
        let commit = match is_commit {
            true => rev.to_owned(),
            false => self.remote_commit(rev).await?,
        };
        self.run("making a repository", &["init", "--quiet", "--template="]).await?;
        let depth = (depth > 0).then(|| format!("--depth={depth}"));
        let wanted = ["--", url, &commit];
        let mut words = vec!["fetch", "--quiet", "--no-tags"];
        words.extend(depth.as_deref().into_iter().chain(wanted));
        match self.run("fetching", &words).await {
            Ok(_) => {}
            Err(error @ PlacementError::TooLarge { .. }) => return Err(error),
            // A server may refuse to send a commit that no branch ends at, unless it comes with the branches.
            Err(_) => {
                let all = ["fetch", "--quiet", "--", url, "+refs/heads/*:refs/remotes/origin/*"];
                self.run("fetching the repository", &all).await?;
            }
        }
        self.run("checking out the commit", &["checkout", "--quiet", "--detach", &commit]).await?;
        self.run("naming the remote", &["remote", "add", "origin", url]).await?;
        let _ = std::fs::remove_file(self.at.join(".git/FETCH_HEAD"));
        Ok(commit)
    }

    async fn remote_commit(&self, rev: &str) -> Result<String, PlacementError> {
        let url = self.address.plain();
        let asked = ["ls-remote", "--", url, rev, &format!("{rev}^{{}}")];
        let answer = self.run("asking the repository", &asked).await?.text();
        let rows: Vec<(&str, &str)> = answer.lines().filter_map(|line| line.split_once('\t')).collect();
        let heads = [
            format!("{rev}^{{}}"),
            rev.to_owned(),
            format!("refs/tags/{rev}^{{}}"),
            format!("refs/tags/{rev}"),
            format!("refs/heads/{rev}"),
        ];
        let found = heads.iter().find_map(|name| rows.iter().find(|(_, row)| row == name));
        let missing = || PlacementError::invalid("rev", format!("{url} has no branch or tag {rev:?}"));
        let (commit, _) = found.ok_or_else(missing)?;
        let is_id = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| (*commit).to_owned()).ok_or_else(missing)
    }

    async fn run(&self, action: &str, more: &[&str]) -> Result<ToolOutput, PlacementError> {
        let mut argv = vec!["git".to_owned(), "-C".to_owned(), self.at.to_string_lossy().into_owned()];
        argv.extend(SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
        argv.extend(more.iter().map(|&word| word.to_owned()));
        let room = ToolRoom { folder: self.at, bytes: self.room };
        let call = ToolRun { limit: LIMIT, room: Some(room), ..ToolRun::new(action, &argv) };
        let output = call
            .run_in(|command| {
                command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1").env("LC_ALL", "C");
                // A repository on this machine that lacks objects would name a program that fetches them.
                command.env("GIT_NO_LAZY_FETCH", "1");
                command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
                let inherited = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok());
                command.envs(self.address.variables(inherited.unwrap_or(0)));
            })
            .await?;
        match output.success {
            true => Ok(output),
            false => {
                let short: Vec<String> =
                    std::iter::once("git").chain(more.iter().copied()).map(str::to_owned).collect();
                Err(ToolRun { argv: &short, ..call }.failed(&output))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u64 = 64 << 20;

    #[tokio::test]
    async fn a_password_in_an_address_is_in_no_error() {
        let url = "https://me:hunter22@127.0.0.1:1/r.git";
        let error = checkout(url, None, 1, ROOM).await.unwrap_err().to_string();
        assert!(!error.contains("hunter22") && error.contains("git ls-remote"), "{error}");
    }

    /// The command lines of all processes here that have this text in them.
    fn command_lines(text: &str) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        lines
            .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
            .filter(|l| l.contains(text))
            .collect()
    }

    /// Git and the programs that it starts are held by a server that does not answer, and looked at.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_password_in_an_address_is_in_no_command_line() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let url = format!("https://me:hunter{port}@127.0.0.1:{port}/r.git");
        let fetching = tokio::spawn(async move { checkout(&url, None, 1, ROOM).await.unwrap_err() });
        let (connection, _) = server.accept().await.unwrap();
        let programs = command_lines(&format!("127.0.0.1:{port}/r.git"));
        assert!(programs.iter().any(|line| line.contains("remote-https")), "{programs:?}");
        assert_eq!(command_lines(&format!("hunter{port}")), [""; 0]);
        drop((connection, server));
        fetching.await.unwrap();
    }

    /// A repository on this machine whose settings name a program that fetches what it lacks.
    #[tokio::test]
    async fn a_repository_without_its_objects_has_nothing_run() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
        let git = |words: &[&str]| {
            let out = std::process::Command::new("git").args(words).output().unwrap();
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim().to_owned()
        };
        let full = at("full");
        git(&["init", "-q", "-b", "main", &full]);
        std::fs::write(dir.path().join("full/a.txt"), "text").unwrap();
        let login = ["-c", "user.name=t", "-c", "user.email=t@t"];
        git(&["-C", &full, "add", "."]);
        git(&[&["-C", &full][..], &login, &["commit", "-q", "-m", "first"]].concat());
        git(&["-C", &full, "config", "uploadpack.allowFilter", "true"]);
        let bare = at("bare");
        git(&["clone", "-q", "--bare", "--filter=blob:none", "--no-local", &full, &bare]);
        let missing = git(&["-C", &bare, "rev-list", "--objects", "--missing=print", "HEAD"]);
        assert!(missing.contains('?'), "nothing is missing: {missing}");
        let ran = at("ran");
        git(&["-C", &bare, "config", "remote.origin.uploadpack", &format!("touch {ran}; false")]);
        let url = format!("file://{bare}");
        assert!(checkout(&url, Some("main"), 1, ROOM).await.is_err());
        assert!(!std::fs::exists(&ran).unwrap(), "a program of the repository ran");
    }

    #[tokio::test]
    async fn a_repository_that_grows_beyond_its_room_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("bomb").to_string_lossy().into_owned();
        let git = |words: &[&str]| {
            let out = std::process::Command::new("git").args(words).output().unwrap();
            assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8_lossy(&out.stdout).trim().to_owned()
        };
        git(&["init", "-q", "-b", "main", &repository]);
        // One blob of zeros, which packs to nothing, under many names.
        std::fs::write(dir.path().join("zeros"), vec![0; 4 << 20]).unwrap();
        let zeros = dir.path().join("zeros").to_string_lossy().into_owned();
        let blob = git(&["-C", &repository, "hash-object", "-w", &zeros]);
        for number in 0..40 {
            let entry = format!("100644,{blob},{number}");
            git(&["-C", &repository, "update-index", "--add", "--cacheinfo", &entry]);
        }
        git(&["-C", &repository, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first"]);
        let error = checkout(&format!("file://{repository}"), Some("main"), 1, ROOM).await.unwrap_err();
        assert!(matches!(error, PlacementError::TooLarge { .. }), "{error}");
    }
}
