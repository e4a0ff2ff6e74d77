//! A checkout and the branches of its remotes, read from git's files.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{
    Head, MAX_LINE_BYTES, MAX_PACKED_REFS_BYTES, Repository, commit_id, git_root, is_ref_name, line_of,
};
use crate::EntryKind;
use crate::reader::Reader;

const REMOTES: &str = "refs/remotes";
/// Limit of remote branches.
const MAX_BRANCHES: usize = 10_000;
/// Limit of nested folders in branch names.
const MAX_DEPTH: usize = 8;

/// The folders of a checkout, its commit, and the commits of its remotes' branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCheckout {
    pub root: PathBuf,
    /// This checkout's own folder, with its index.
    pub git_dir: PathBuf,
    /// The folder that all checkouts of the repository share, with its objects.
    pub common_dir: PathBuf,
    pub head: String,
    pub branch: Option<String>,
    /// The commit of each branch of a remote, by its full name.
    pub remote_branches: BTreeMap<String, String>,
    /// The default branch of each remote, if known.
    pub default_branches: BTreeMap<String, String>,
}

impl GitCheckout {
    /// The checkout around `cwd`. `None` outside one, before its first commit, or if its refs are stored in an unknown
    /// format.
    pub fn find(cwd: &Path, reader: &Reader) -> Option<Self> {
        let root = git_root(cwd)?;
        let repository = Repository::at(&root, reader)?;
        let head = repository.head()?;
        let branch = match &head {
            Head::Name(name) => name.strip_prefix("refs/heads/").map(str::to_owned),
            Head::Commit(_) => None,
        };
        let head = repository.commit(head)?;
        let (mut remote_branches, mut default_branches) = (packed(&repository), BTreeMap::new());
        let mut walk =
            RefWalk { repository: &repository, found: &mut remote_branches, defaults: &mut default_branches };
        walk.folder(REMOTES, 0);
        let Repository { git_dir, common_dir, .. } = repository;
        Some(Self { root, git_dir, common_dir, head, branch, remote_branches, default_branches })
    }

    /// The names of the remotes, `origin` first.
    pub fn remotes(&self) -> Vec<&str> {
        let name = |full: &String| full.strip_prefix("refs/remotes/")?.split('/').next().map(str::len);
        let mut remotes: Vec<&str> = self
            .remote_branches
            .keys()
            .filter_map(|full| name(full).map(|length| &full["refs/remotes/".len()..][..length]))
            .collect();
        remotes.dedup();
        remotes.sort_by_key(|remote| *remote != "origin");
        remotes
    }
}

/// Loose refs, which take precedence over packed ones.
struct RefWalk<'a> {
    repository: &'a Repository<'a>,
    found: &'a mut BTreeMap<String, String>,
    defaults: &'a mut BTreeMap<String, String>,
}

impl RefWalk<'_> {
    fn folder(&mut self, name: &str, depth: usize) {
        let Repository { reader, common_dir, .. } = self.repository;
        let Ok(listing) = reader.list(&common_dir.join(name), MAX_BRANCHES) else { return };
        for entry in listing.entries {
            let Some(part) = entry.name.to_str() else { continue };
            let full = format!("{name}/{part}");
            match entry.kind {
                EntryKind::Folder if depth < MAX_DEPTH => self.folder(&full, depth + 1),
                EntryKind::File if self.found.len() < MAX_BRANCHES && is_ref_name(&full) => self.file(full),
                _ => {}
            }
        }
    }

    fn file(&mut self, full: String) {
        let Some(line) = line_of(&self.repository.common_dir.join(&full), self.repository.reader) else {
            return;
        };
        match Head::parse(&line) {
            Some(Head::Commit(sha)) => {
                self.found.insert(full, sha);
            }
            // `refs/remotes/origin/HEAD` names the default branch.
            Some(Head::Name(target)) => {
                let remote = full.strip_prefix("refs/remotes/").and_then(|rest| rest.strip_suffix("/HEAD"));
                let branch = remote.and_then(|remote| target.strip_prefix(&format!("{REMOTES}/{remote}/")));
                if let (Some(remote), Some(branch)) = (remote, branch) {
                    self.defaults.insert(remote.to_owned(), branch.to_owned());
                }
            }
            None => {}
        }
    }
}

fn packed(repository: &Repository<'_>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Ok(opened) = repository.reader.open(&repository.common_dir.join("packed-refs")) else { return found };
    let mut lines = BufReader::new(opened.file.take(MAX_PACKED_REFS_BYTES));
    let mut line = Vec::new();
    while found.len() < MAX_BRANCHES {
        line.clear();
        match lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {}
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let Some((sha, name)) = text.trim_end().split_once(' ') else { continue };
        if name.starts_with("refs/remotes/")
            && is_ref_name(name)
            && let Some(sha) = commit_id(sha)
        {
            found.insert(name.to_owned(), sha);
        }
    }
    found
}
