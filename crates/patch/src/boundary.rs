//! Where a patch may write.

use std::path::{Component, Path, PathBuf};

use names::is_protected;

/// The area that a patch may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boundary {
    /// The writable directories, except paths with a protected name at any depth, and the closed places.
    Roots { writable: Vec<PathBuf>, closed: Vec<PathBuf> },
    /// The whole file system.
    Anywhere,
}

impl Boundary {
    /// These roots, with only protected names closed.
    #[must_use]
    pub fn roots(writable: Vec<PathBuf>) -> Self {
        Self::Roots { writable, closed: Vec::new() }
    }

    /// Closes these files and folders too.
    #[must_use]
    pub fn closing(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        if let Self::Roots { closed, .. } = &mut self {
            closed.extend(places);
        }
        self
    }

    /// Whether the path may be written, judged as text: `..` is removed, the disk is not read.
    #[must_use]
    pub fn allows(&self, path: &Path) -> bool {
        let Self::Roots { writable, closed } = self else { return true };
        let Some(path) = folded(path) else { return false };
        if closed.iter().filter_map(|place| folded(place)).any(|place| path.starts_with(place)) {
            return false;
        }
        let mut inside = false;
        for root in writable.iter().filter_map(|root| folded(root)) {
            if let Ok(rest) = path.strip_prefix(&root) {
                if protects(rest) {
                    return false;
                }
                inside = true;
            }
        }
        inside
    }
}

/// Whether a path relative to a root has a protected name in it.
pub(crate) fn protects(beneath_root: &Path) -> bool {
    beneath_root.components().any(|component| is_protected(component.as_os_str()))
}

/// The absolute path with `.` and `..` removed as text; none for a relative one.
pub(crate) fn folded(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(out)
}
