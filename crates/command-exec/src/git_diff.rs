//! The diff of a checkout to the nearest commit that a remote has.

use std::path::PathBuf;

use protocol::GitDiffToRemoteResponse;
use workspace::GitCheckout;

use crate::sandboxed_git::SandboxedGit;

/// Without programs of the user or the repository, and without submodules, which have their own configuration.
const DIFF: [&str; 5] = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty"];

/// For the checkout around `cwd`. `scratch` is a new folder. `None` if there is nothing to compare.
pub async fn git_diff_to_remote(cwd: PathBuf, scratch: PathBuf) -> Option<GitDiffToRemoteResponse> {
    let git = SandboxedGit::open(cwd, scratch).await?;
    let sha = nearest_remote_commit(&git).await?;
    let diff = diff(&git, &sha).await?;
    Some(GitDiffToRemoteResponse { sha, diff })
}

/// The fewest commits behind, of the upstream branch, the default branch and the branches that contain this one.
async fn nearest_remote_commit(git: &SandboxedGit) -> Option<String> {
    let checkout = &git.checkout;
    let mut candidates: Vec<&String> = Vec::new();
    for remote in checkout.remotes() {
        for branch in branches(checkout, remote) {
            candidates.extend(checkout.remote_branches.get(&format!("refs/remotes/{remote}/{branch}")));
        }
    }
    let containing = git
        .run(&[
            "for-each-ref",
            "--count=1",
            "--contains",
            checkout.head.as_str(),
            "--format=%(refname)",
            "refs/remotes",
        ])
        .await
        .unwrap_or_default();
    let containing = String::from_utf8_lossy(&containing);
    candidates.extend(checkout.remote_branches.get(containing.trim()));
    let mut nearest: Option<(u64, &String)> = None;
    let mut seen = std::collections::BTreeSet::new();
    for sha in candidates.into_iter().filter(|sha| seen.insert(*sha)) {
        let range = format!("{sha}..{}", checkout.head);
        let count = git.run(&["rev-list", "--count", range.as_str()]).await;
        let Some(count) = count.and_then(|count| String::from_utf8_lossy(&count).trim().parse().ok()) else {
            continue;
        };
        if nearest.is_none_or(|(fewest, _)| count < fewest) {
            nearest = Some((count, sha));
        }
    }
    nearest.map(|(_, sha)| sha.clone())
}

fn branches<'a>(checkout: &'a GitCheckout, remote: &str) -> impl Iterator<Item = &'a str> {
    let default = checkout.default_branches.get(remote).map(String::as_str);
    let default = default.map_or(vec!["main", "master"], |default| vec![default]);
    checkout.branch.as_deref().into_iter().chain(default)
}

/// Untracked files are shown as new ones.
async fn diff(git: &SandboxedGit, sha: &str) -> Option<String> {
    let untracked = git.run(&["ls-files", "-z", "--others", "--exclude-standard"]).await?;
    // A name with a trailing slash is a nested repository.
    let is_file = |name: &&[u8]| !name.is_empty() && !name.ends_with(b"/");
    let names: Vec<&[u8]> = untracked.split(|byte| *byte == 0).filter(is_file).collect();
    if !names.is_empty() {
        // Added only to the copy of the index.
        let add = ["add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"];
        let literal: Vec<u8> = names.join(&0);
        git.run_with_input(&[&["--literal-pathspecs"][..], &add].concat(), Some(literal)).await?;
    }
    let output = git.run(&[&DIFF[..], &[sha, "--"]].concat()).await?;
    Some(String::from_utf8_lossy(&output).into_owned())
}
