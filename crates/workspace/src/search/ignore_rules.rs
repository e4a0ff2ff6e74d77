//! Which entries of a folder are ignored by git's and `.ignore` files. Reads these files with the reader, so that a
//! pipe of such a name does not block a search.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::global_rules::global_rules_file;
use crate::{Entry, Reader};

/// Limit of an ignore file.
const MAX_RULE_BYTES: u64 = 256 << 10;
/// Limits of the rules in one file, and of one rule. Compiling takes far longer than reading.
const MAX_RULES: usize = 1_000;
const MAX_RULE_LENGTH: usize = 512;

/// The rules of one folder and its parents.
#[derive(Debug)]
pub(super) struct FolderRules {
    above: Option<Arc<FolderRules>>,
    dot_ignore: Option<Gitignore>,
    git_ignore: Option<Gitignore>,
    git_exclude: Option<Gitignore>,
    has_git: bool,
    is_in_git: bool,
    global: Arc<Gitignore>,
}

impl FolderRules {
    /// The rules of a root's parent folders, which apply to it too. Without `needs_git`, git's rules apply outside
    /// repositories too.
    pub(super) fn above(root: &Path, reader: &Reader, needs_git: bool) -> Arc<Self> {
        let global = global_rules_file(reader).and_then(|file| read_rules(root, &file, reader));
        let global = Arc::new(global.unwrap_or_else(Gitignore::empty));
        let none = Self {
            above: None,
            dot_ignore: None,
            git_ignore: None,
            git_exclude: None,
            has_git: false,
            is_in_git: !needs_git,
            global,
        };
        let mut folders: Vec<&Path> = root.ancestors().skip(1).collect();
        folders.reverse();
        let has = |folder: &Path, name: &str| reader.has_entry(folder, name);
        let rules =
            |above: Arc<Self>, folder: &Path| Self::of(above, folder, reader, |name| has(folder, name));
        folders.into_iter().fold(Arc::new(none), rules)
    }

    /// The rules of a subfolder with these entries.
    pub(super) fn below(self: &Arc<Self>, folder: &Path, reader: &Reader, entries: &[Entry]) -> Arc<Self> {
        Self::of(self.clone(), folder, reader, |name| entries.iter().any(|entry| entry.name == name))
    }

    fn of(above: Arc<Self>, folder: &Path, reader: &Reader, has: impl Fn(&str) -> bool) -> Arc<Self> {
        let read = |name: &str, file: &str| {
            has(name).then(|| read_rules(folder, &folder.join(file), reader)).flatten()
        };
        let dot_ignore = read(".ignore", ".ignore");
        let git_ignore = read(".gitignore", ".gitignore");
        let has_git = has(".git");
        if dot_ignore.is_none() && git_ignore.is_none() && !has_git {
            return above;
        }
        let git_exclude = read(".git", ".git/info/exclude");
        let (is_in_git, global) = (above.is_in_git || has_git, above.global.clone());
        Arc::new(Self { above: Some(above), dot_ignore, git_ignore, git_exclude, has_git, is_in_git, global })
    }

    /// Rules nearer to the entry take precedence. `.ignore` overrides git's rules, which apply only inside a
    /// repository; a repository's rules do not apply to a nested one.
    pub(super) fn matched(&self, path: &Path, is_folder: bool) -> Match<()> {
        let (mut by_dot, mut by_git, mut by_exclude) = (Match::None, Match::None, Match::None);
        let mut is_own_repository = self.is_in_git;
        let mut at = Some(self);
        while let Some(rules) = at {
            ask(&mut by_dot, rules.dot_ignore.as_ref(), path, is_folder);
            if is_own_repository {
                ask(&mut by_git, rules.git_ignore.as_ref(), path, is_folder);
                ask(&mut by_exclude, rules.git_exclude.as_ref(), path, is_folder);
            }
            is_own_repository &= !rules.has_git;
            at = rules.above.as_deref();
        }
        let mut by_global = Match::None;
        if self.is_in_git {
            ask(&mut by_global, Some(&self.global), path, is_folder);
        }
        by_dot.or(by_git).or(by_exclude).or(by_global)
    }
}

/// Checks unless a rule has matched already.
fn ask(answer: &mut Match<()>, rules: Option<&Gitignore>, path: &Path, is_folder: bool) {
    if let (Match::None, Some(rules)) = (&answer, rules) {
        *answer = rules.matched(path, is_folder).map(|_| ());
    }
}

/// The rules of a file for what is beneath a folder.
fn read_rules(folder: &Path, file: &Path, reader: &Reader) -> Option<Gitignore> {
    let bytes = reader.read_start(file, MAX_RULE_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut rules = GitignoreBuilder::new(folder);
    let lines = text.trim_start_matches('\u{feff}').lines();
    let is_rule = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
    for line in lines.filter(is_rule).filter(|line| line.len() <= MAX_RULE_LENGTH).take(MAX_RULES) {
        // An invalid line is ignored, like in git.
        let _ = rules.add_line(None, line);
    }
    rules.build().ok().filter(|rules| !rules.is_empty())
}
