//! A git repository at one commit, fetched on this machine so that its credentials stay here.

use std::path::Path;
use std::time::Duration;

use crate::error::PlacementError;
use crate::scratch::ScratchDir;
use crate::tool::{ToolOutput, ToolRun};

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

/// The address without a name and password, which must not get into the placement.
pub(super) fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme @ "https", rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = authority.rsplit('@').next().unwrap_or(authority);
            format!("{scheme}://{host}{path}")
        }
        _ => url.to_owned(),
    }
}

pub(super) async fn checkout(url: &str, rev: Option<&str>) -> Result<RepositoryCheckout, PlacementError> {
    let plain = without_credentials(url);
    let secret = url
        .split_once("://")
        .and_then(|(_, rest)| rest.split('/').next())
        .and_then(|authority| authority.rsplit_once('@'));
    let secrets: Vec<&str> = secret
        .map(|(userinfo, _)| userinfo)
        .into_iter()
        .flat_map(|userinfo| userinfo.split(':').chain([userinfo]))
        .collect();
    fetch(url, &plain, rev.unwrap_or("HEAD")).await.map_err(|error| error.without(&secrets))
}

async fn fetch(url: &str, plain: &str, rev: &str) -> Result<RepositoryCheckout, PlacementError> {
    let folder = ScratchDir::new()?;
    let at = folder.path();
    let is_commit = rev.len() == 40 && rev.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commit = match is_commit {
        true => rev.to_owned(),
        false => remote_commit(at, url, plain, rev).await?,
    };
    git(at, "making a repository", &["init", "--quiet", "--template="]).await?;
    let shallow = ["fetch", "--quiet", "--no-tags", "--depth=1", "--", url, &commit];
    if git(at, "fetching", &shallow).await.is_err() {
        // A server may refuse to send a commit that no branch ends at, unless it comes with the branches.
        git(
            at,
            "fetching the repository",
            &["fetch", "--quiet", "--", url, "+refs/heads/*:refs/remotes/origin/*"],
        )
        .await?;
    }
    git(at, "checking out the commit", &["checkout", "--quiet", "--detach", &commit]).await?;
    git(at, "naming the remote", &["remote", "add", "origin", plain]).await?;
    let _ = std::fs::remove_file(at.join(".git/FETCH_HEAD"));
    Ok(RepositoryCheckout { folder, commit })
}

async fn remote_commit(at: &Path, url: &str, plain: &str, rev: &str) -> Result<String, PlacementError> {
    let answer = git(at, "asking the repository", &["ls-remote", "--", url, rev, &format!("{rev}^{{}}")])
        .await?
        .text();
    let rows: Vec<(&str, &str)> = answer.lines().filter_map(|line| line.split_once('\t')).collect();
    let heads = [
        format!("{rev}^{{}}"),
        rev.to_owned(),
        format!("refs/tags/{rev}^{{}}"),
        format!("refs/tags/{rev}"),
        format!("refs/heads/{rev}"),
    ];
    let found = heads.iter().find_map(|name| rows.iter().find(|(_, row)| row == name));
    let missing = || PlacementError::invalid("rev", format!("{plain} has no branch or tag {rev:?}"));
    found.map(|(commit, _)| (*commit).to_owned()).ok_or_else(missing)
}

async fn git(at: &Path, action: &str, more: &[&str]) -> Result<ToolOutput, PlacementError> {
    let mut argv = vec!["git".to_owned(), "-C".to_owned(), at.to_string_lossy().into_owned()];
    argv.extend(SETTINGS.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
    argv.extend(more.iter().map(|&word| word.to_owned()));
    let call = ToolRun { limit: LIMIT, ..ToolRun::new(action, &argv) };
    let output = call
        .run_in(|command| {
            command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_LFS_SKIP_SMUDGE", "1").env("LC_ALL", "C");
            command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_cut_out_of_addresses() {
        assert_eq!(without_credentials("https://me:token@host/a@b.git"), "https://host/a@b.git");
        assert_eq!(without_credentials("ssh://git@host/r"), "ssh://git@host/r");
    }

    #[tokio::test]
    async fn a_password_in_an_address_is_in_no_error() {
        let error = checkout("https://me:hunter22@127.0.0.1:1/r.git", None).await.unwrap_err().to_string();
        assert!(!error.contains("hunter22") && error.contains("git ls-remote"), "{error}");
    }
}
