//! Plugins from git repositories, at one commit. Git runs only with the settings given here, so that nothing named by a
//! repository or its address is started: no hooks, filters, submodules, helpers or other transports.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use config::{ResolvedConfig, system_search_path};
use rustix::process::{Pid, Signal, kill_process_group};
use support::GitAddress;

use crate::PluginError;
use crate::copy::{Staging, copy_folder, make_folder};
use crate::manifest::below;

const LIMIT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// Limit of a fetch.
const MAX_BYTES: u64 = 512 << 20;
const MAX_SHOWN: u64 = 4 << 10;
/// The allowed transports.
const SCHEMES: [&str; 3] = ["https://", "ssh://", "file://"];
const COMMIT_DIGITS: usize = 40;

/// Settings that override a repository's. Given on the command line, which takes precedence over files.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.symlinks=false",
    "core.autocrlf=false",
    "core.attributesFile=/dev/null",
    "fetch.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.file.allow=always",
    "protocol.https.allow=always",
    "protocol.ssh.allow=always",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// Variables of this process that fetching may need.
const INHERITED: &[&str] = &[
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// One commit of a repository, and a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitSource {
    pub(crate) url: GitAddress,
    pub(crate) commit: String,
    folder: Option<PathBuf>,
}

impl GitSource {
    pub(crate) fn new(url: &str, commit: String, folder: Option<&str>) -> Result<Self, String> {
        let is_known = SCHEMES.iter().any(|scheme| url.starts_with(scheme));
        if !is_known || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("git source url must begin with https://, ssh:// or file://".to_owned());
        }
        let url = GitAddress::parse(url).map_err(|problem| format!("git source url: {problem}"))?;
        if commit.len() != COMMIT_DIGITS || !commit.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(
                "git source commit must be the 40 digits of one commit, not a branch or tag".to_owned()
            );
        }
        let folder = match folder {
            None | Some("." | "./") => None,
            Some(path) => {
                Some(below(path).ok_or("git source path must start with `./` and stay in its repository")?)
            }
        };
        Ok(Self { url, commit, folder })
    }
}

/// The files of one commit, stored under the commit's name.
#[derive(Debug)]
pub(crate) struct Checkout<'a> {
    state: &'a Path,
    plugin: &'a str,
    source: &'a GitSource,
    /// Folders that commands can write.
    writable: Vec<PathBuf>,
}

impl<'a> Checkout<'a> {
    pub(crate) fn new(config: &'a ResolvedConfig, plugin: &'a str, source: &'a GitSource) -> Self {
        Self { state: config.home.state(), plugin, source, writable: config.writable_roots() }
    }

    fn kept(&self) -> PathBuf {
        self.state.join("plugins/git").join(&self.source.commit)
    }

    fn folder_in(&self, tree: &Path) -> PathBuf {
        self.source.folder.as_ref().map_or_else(|| tree.to_owned(), |folder| tree.join(folder))
    }

    /// The plugin's folder after fetching.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder_in(&self.kept())
    }

    pub(crate) fn folder_if_here(&self) -> Option<PathBuf> {
        self.kept().is_dir().then(|| self.folder())
    }

    pub(crate) fn fetch(&self) -> Result<PathBuf, PluginError> {
        if let Some(folder) = self.folder_if_here() {
            return Ok(folder);
        }
        let store = |error: std::io::Error| PluginError::store(self.plugin, &error);
        make_folder(self.state).map_err(store)?;
        let staging = Staging::new(self.state).map_err(store)?;
        self.check_out(&staging.0).map_err(|problem| PluginError::Git {
            plugin: self.plugin.to_owned(),
            url: self.source.url.plain().to_owned(),
            problem,
        })?;
        copy_folder(&staging.0.join("tree"), &staging.0.join("copy"))
            .map_err(|problem| PluginError::content(self.plugin, &problem))?;
        staging.put("copy", &self.kept()).map_err(store)?;
        Ok(self.folder())
    }

    fn check_out(&self, staging: &Path) -> Result<(), String> {
        let (repository, tree) = (staging.join("repository"), staging.join("tree"));
        fs::create_dir(&tree).map_err(|error| error.to_string())?;
        let deadline = Instant::now() + LIMIT;
        let inherited = std::env::var("PATH").unwrap_or_default();
        let path = system_search_path(&inherited, &self.writable);
        let room = GitRoom { staging, path: &path, login: self.source.url.variables(0), deadline };
        let git = |arguments: &[&OsStr]| room.run(arguments);
        let word = |text: &'static str| OsStr::new(text);
        git(&[word("init"), word("--quiet"), word("--bare"), word("--template="), repository.as_os_str()])?;
        let mut at = std::ffi::OsString::from("--git-dir=");
        at.push(&repository);
        let mut into = std::ffi::OsString::from("--work-tree=");
        into.push(&tree);
        let (url, commit) = (OsStr::new(self.source.url.plain()), OsStr::new(&self.source.commit));
        let options =
            ["fetch", "--quiet", "--no-tags", "--depth=1", "--no-recurse-submodules", "--"].map(OsStr::new);
        let fetch: Vec<&OsStr> = [at.as_os_str()].into_iter().chain(options).chain([url, commit]).collect();
        git(&fetch)?;
        let checkout = ["checkout", "--quiet", "--force", "--no-recurse-submodules"].map(OsStr::new);
        let end = [commit, word("--"), word(".")];
        let checkout: Vec<&OsStr> =
            [at.as_os_str(), into.as_os_str()].into_iter().chain(checkout).chain(end).collect();
        git(&checkout)
    }
}

/// The folder and environment of git commands.
#[derive(Debug)]
struct GitRoom<'a> {
    staging: &'a Path,
    /// The search path of git and the programs it needs.
    path: &'a str,
    /// Variables with git's credentials.
    login: Vec<(String, String)>,
    deadline: Instant,
}

impl GitRoom<'_> {
    /// Killed with all its processes if it takes too much time or space.
    fn run(&self, arguments: &[&OsStr]) -> Result<(), String> {
        let Self { staging, path, deadline, .. } = *self;
        let errors = staging.join("errors");
        let written = File::create(&errors).map_err(|error| error.to_string())?;
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
        command
            .env("PATH", path)
            .env("HOME", staging)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "/bin/false")
            .env("GIT_ALLOW_PROTOCOL", "https:ssh:file")
            .env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes")
            .env("GIT_LFS_SKIP_SMUDGE", "1")
            // Otherwise a local repository that lacks objects could name a program that fetches them.
            .env("GIT_NO_LAZY_FETCH", "1")
            .envs(self.login.iter().map(|(name, value)| (name, value)));
        for setting in SETTINGS {
            command.arg("-c").arg(setting);
        }
        command
            .args(arguments)
            .current_dir(staging)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(written);
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| format!("git cannot be started: {error}"))?;
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(first_problem(&errors)),
                None => {}
            }
            let problem = match () {
                () if Instant::now() > deadline => format!("it took longer than {} s", LIMIT.as_secs()),
                () if size(staging) > MAX_BYTES => format!("it is larger than {} MiB", MAX_BYTES >> 20),
                () => {
                    std::thread::sleep(POLL);
                    continue;
                }
            };
            end(&mut child);
            return Err(problem);
        }
    }
}

fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

/// Why git failed: the first error line, which names the cause; later ones name the command.
fn first_problem(errors: &Path) -> String {
    let mut text = Vec::new();
    let _ = File::open(errors).and_then(|file| file.take(MAX_SHOWN).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    let is_problem = |line: &&str| line.starts_with("error:") || line.starts_with("fatal:");
    let line = text.lines().find(is_problem).or_else(|| text.lines().rfind(|line| !line.trim().is_empty()));
    let line = line.unwrap_or("git failed without a reason").trim();
    line.chars().filter(|letter| !letter.is_control()).collect()
}

/// The size of all files, without following links. Ignores folders that disappear meanwhile.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of_entry = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(of_entry).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_addresses_and_full_commits_are_accepted() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for url in ["https://h/r.git", "ssh://git@h/r.git", "file:///srv/r.git"] {
            assert!(GitSource::new(url, commit.to_owned(), Some("./a")).is_ok(), "{url}");
        }
        for url in [
            "ext::sh -c id",
            "http://h/r",
            "git://h/r",
            "/srv/r",
            "-u",
            "fd::3",
            "https://h/a b",
            "git@h:r",
            "https::x",
        ] {
            assert!(GitSource::new(url, commit.to_owned(), None).is_err(), "{url}");
        }
        for bad in ["main", "HEAD", "", "0123", &commit.to_uppercase(), "--upload-pack=id"] {
            assert!(GitSource::new("https://h/r", bad.to_owned(), None).is_err(), "{bad}");
        }
        assert!(GitSource::new("https://h/r", commit.to_owned(), Some("../x")).is_err());
        let with_login = GitSource::new("https://me:hunter22@h/r", commit.to_owned(), None);
        assert!(!format!("{with_login:?}").contains("hunter22"));
    }
}
