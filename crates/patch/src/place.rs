//! Which root a target is reached from, and by which path beneath it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::boundary::{Boundary, folded, protects};
use crate::error::CommitError;
use crate::resolve::ResolvedTarget;

/// A directory that is trusted as it is, and the way from there, on which nothing is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustedPlace {
    pub(crate) root: PathBuf,
    pub(crate) beneath: PathBuf,
}

/// A boundary with its roots looked up once.
pub(crate) struct Area<'b> {
    boundary: &'b Boundary,
    spelled: Vec<PathBuf>,
    /// The same roots under their real names, for a working directory that is spelled another way.
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
    /// Whether some folder on the way is one that git takes its settings and hooks from, whatever its name: that of a
    /// bare repository, of a submodule, or one that a `.git` file leads to.
    fn is_in_git_folder(&self) -> bool {
        let ways = self.beneath.ancestors().skip(1);
        ways.map(|way| self.root.join(way)).any(|folder| {
            let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
            has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
        })
    }
}

/// Every root that holds the path, the outermost first: what lies beneath that one may be changed by others, so
/// an inner root is not to be trusted to be where it was.
fn outermost_first(roots: &[PathBuf], path: &Path) -> Vec<TrustedPlace> {
    let mut places: Vec<TrustedPlace> = roots.iter().filter_map(|root| beneath(root, path)).collect();
    places.sort_by_key(|place| place.root.as_os_str().len());
    places
}

fn beneath(root: &Path, path: &Path) -> Option<TrustedPlace> {
    let beneath = path.strip_prefix(root).ok()?.to_owned();
    (!beneath.as_os_str().is_empty()).then(|| TrustedPlace { root: root.to_owned(), beneath })
}
