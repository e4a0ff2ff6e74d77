//! Walks the files in a folder for a content search. Opens folders and ignore files with the reader, so that a pipe or
//! link of such a name has no effect.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};

use super::ignore_rules::FolderRules;
use super::work_queue::{WorkQueue, Worker};
use crate::{EntryKind, Reader};

/// More threads are not faster.
const MAX_THREADS: usize = 8;
/// Limit of a folder's entries.
const MAX_ENTRIES: usize = 200_000;
/// Limit of nested folders.
const MAX_DEPTH: usize = 128;
/// Files per unit of work.
const FILES_AT_ONCE: usize = 64;

/// A glob for file names.
#[derive(Debug, Clone)]
pub struct NameFilter(Override);

impl NameFilter {
    /// The glob is relative to `root`. The error describes what is wrong with it.
    pub fn new(root: &Path, glob: &str) -> Result<Self, String> {
        let mut globs = OverrideBuilder::new(root);
        globs.add(glob).map_err(|error| error.to_string())?;
        globs.build().map(Self).map_err(|error| error.to_string())
    }

    /// Whether a file matches.
    pub fn matches(&self, file: &Path) -> bool {
        self.0.matched(file, false).is_whitelist()
    }
}

/// Receives files, on several threads.
pub trait FileVisitor: Sync {
    /// Whether the walk may end.
    fn is_over(&self) -> bool;

    /// Files that were regular when their folder was read.
    fn visit(&self, files: &[PathBuf]);

    /// A folder could not be read completely.
    fn pass_over(&self);
}

/// One walk. Skips hidden entries and those excluded by ignore files; links are not followed.
#[derive(Debug)]
pub struct FileWalk<'a> {
    pub reader: &'a Reader,
    /// Only matching files, even if they are ignored.
    pub filter: Option<&'a NameFilter>,
    /// Folders that are not walked.
    pub not_searched: &'a [&'a str],
}

impl FileWalk<'_> {
    /// `root` is a resolved folder. Returns when everything was visited.
    pub fn run(&self, root: &Path, visitor: &impl FileVisitor) {
        let rules = FolderRules::above(root, self.reader, false);
        let first = WalkPiece::Folder { path: root.to_owned(), depth: 0, rules };
        WorkQueue::run(vec![first], MAX_THREADS, &RunningWalk { walk: self, visitor });
    }

    /// Like git and ripgrep: the filter first, then rules, and hidden names unless a rule names them.
    fn leaves_out(&self, rules: &FolderRules, path: &Path, is_folder: bool) -> bool {
        match self.filter.map_or(Match::None, |filter| filter.0.matched(path, is_folder).map(|_| ())) {
            Match::Ignore(()) => return true,
            Match::Whitelist(()) => return false,
            Match::None => {}
        }
        match rules.matched(path, is_folder) {
            Match::Ignore(()) => true,
            Match::Whitelist(()) => false,
            Match::None => path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".")),
        }
    }
}

enum WalkPiece {
    Folder { path: PathBuf, depth: usize, rules: Arc<FolderRules> },
    Files(Vec<PathBuf>),
}

struct RunningWalk<'a, V> {
    walk: &'a FileWalk<'a>,
    visitor: &'a V,
}

impl<V: FileVisitor> RunningWalk<'_, V> {
    fn look_into(&self, folder: &Path, depth: usize, above: &Arc<FolderRules>) -> Vec<WalkPiece> {
        let FileWalk { reader, not_searched, .. } = *self.walk;
        let Ok(listing) = reader.list(folder, MAX_ENTRIES) else {
            self.visitor.pass_over();
            return Vec::new();
        };
        if !listing.is_complete {
            self.visitor.pass_over();
        }
        let rules = above.below(folder, reader, &listing.entries);
        let (mut pieces, mut files) = (Vec::new(), Vec::new());
        for entry in &listing.entries {
            let path = folder.join(&entry.name);
            let is_folder = entry.kind == EntryKind::Folder;
            let is_wanted = is_folder || entry.kind == EntryKind::File;
            let is_left_out = || self.walk.leaves_out(&rules, &path, is_folder) || !reader.allows(&path);
            if !is_wanted || is_left_out() || not_searched.iter().any(|other| path == Path::new(other)) {
                continue;
            }
            match is_folder {
                false => files.push(path),
                true if depth < MAX_DEPTH => {
                    pieces.push(WalkPiece::Folder { path, depth: depth + 1, rules: rules.clone() });
                }
                true => self.visitor.pass_over(),
            }
        }
        let at_once = files.chunks(FILES_AT_ONCE);
        pieces.extend(at_once.map(|files| WalkPiece::Files(files.to_vec())));
        pieces
    }
}

impl<V: FileVisitor> Worker<WalkPiece> for RunningWalk<'_, V> {
    fn is_over(&self) -> bool {
        self.visitor.is_over()
    }

    fn work(&self, piece: WalkPiece) -> Vec<WalkPiece> {
        match piece {
            WalkPiece::Folder { path, depth, rules } => self.look_into(&path, depth, &rules),
            WalkPiece::Files(files) => {
                self.visitor.visit(&files);
                Vec::new()
            }
        }
    }
}
