//! The root of a target, and its path inside that root.

use std::fs;
use std::path::{Path, PathBuf};

use crate::boundary::{Boundary, folded, protects};
use crate::error::CommitError;
use crate::resolve::ResolvedTarget;

/// A trusted directory, and an untrusted path inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustedPlace {
    pub(crate) root: PathBuf,
    pub(crate) beneath: PathBuf,
}

/// A boundary with resolved roots.
pub(crate) struct Area<'b> {
    boundary: &'b Boundary,
    spelled: Vec<PathBuf>,
    /// The resolved roots, for a working directory with another spelling.
    real: Vec<PathBuf>,
    /// The closed paths, under both names.
    closed: Vec<PathBuf>,
}

impl<'b> Area<'b> {
    pub(crate) fn new(boundary: &'b Boundary) -> Self {
        let (roots, closed) = match boundary {
            Boundary::Roots { writable, closed } => (writable.as_slice(), closed.as_slice()),
            Boundary::Anywhere => (&[][..], &[][..]),
        };
        let spelled = |paths: &[PathBuf]| paths.iter().filter_map(|path| folded(path)).collect::<Vec<_>>();
        let real = |paths: &[PathBuf]| {
            paths.iter().filter_map(|path| fs::canonicalize(path).ok()).collect::<Vec<_>>()
        };
        let closed = [spelled(closed), real(closed)].concat();
        Self { boundary, spelled: spelled(roots), real: real(roots), closed }
    }

    /// The place of a target, or why the boundary refuses it.
    pub(crate) fn place(&self, at: &ResolvedTarget) -> Result<TrustedPlace, CommitError> {
        if *self.boundary == Boundary::Anywhere {
            return beneath(Path::new("/"), &at.real).ok_or_else(|| CommitError::Outside(at.path.clone()));
        }
        let spelled = outermost_first(&self.spelled, &at.path);
        let real = outermost_first(&self.real, &at.real);
        if self.is_closed(at)
            || spelled.iter().chain(&real).any(|place| protects(&place.beneath))
            || real.iter().any(|place| place.is_in_git_folder())
        {
            return Err(CommitError::Protected(at.path.clone()));
        }
        if at.linked {
            return Err(CommitError::Symlink(at.path.clone()));
        }
        spelled.into_iter().chain(real).next().ok_or_else(|| CommitError::Outside(at.path.clone()))
    }

    fn is_closed(&self, at: &ResolvedTarget) -> bool {
        self.closed.iter().any(|place| at.path.starts_with(place) || at.real.starts_with(place))
    }
}

impl TrustedPlace {
    /// Whether a folder on the path contains git settings and hooks, under any name: a bare repository, a submodule, or
    /// the target of a `.git` file.
    fn is_in_git_folder(&self) -> bool {
        let ways = self.beneath.ancestors().skip(1);
        ways.map(|way| self.root.join(way)).any(|folder| {
            let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
            has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
        })
    }
}

/// Every root that contains the path, outermost first: other processes may change what is inside that one, so an inner
/// root may have moved.
fn outermost_first(roots: &[PathBuf], path: &Path) -> Vec<TrustedPlace> {
    let mut places: Vec<TrustedPlace> = roots.iter().filter_map(|root| beneath(root, path)).collect();
    places.sort_by_key(|place| place.root.as_os_str().len());
    places
}

fn beneath(root: &Path, path: &Path) -> Option<TrustedPlace> {
    let beneath = path.strip_prefix(root).ok()?.to_owned();
    (!beneath.as_os_str().is_empty()).then(|| TrustedPlace { root: root.to_owned(), beneath })
}
