//! Where a patch may write.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::names::folded_case;

/// The area a patch may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boundary {
    /// Beneath these directories, but in nothing that is named like one of `protected` directly beneath one of them.
    Roots { writable: Vec<PathBuf>, protected: Vec<String> },
    /// The whole file system.
    Anywhere,
}

impl Boundary {
    /// The names that hold the agent's own settings and the history of the repository.
    pub const PROTECTED: [&'static str; 4] = [".git", ".oarlock", ".codex", ".agents"];

    /// These roots, with the usual names protected.
    #[must_use]
    pub fn roots(writable: Vec<PathBuf>) -> Self {
        Self::Roots { writable, protected: Self::PROTECTED.map(str::to_owned).to_vec() }
    }

    /// Whether the path may be written, by its spelling alone: `..` is folded, the disk is not looked at.
    #[must_use]
    pub fn allows(&self, path: &Path) -> bool {
        let Self::Roots { writable, .. } = self else { return true };
        let Some(path) = folded(path) else { return false };
        let mut inside = false;
        for root in writable.iter().filter_map(|root| folded(root)) {
            if let Ok(rest) = path.strip_prefix(&root) {
                if self.protects(rest) {
                    return false;
                }
                inside = true;
            }
        }
        inside
    }

    /// Whether a path, given relative to a root, begins with a protected name.
    pub(crate) fn protects(&self, beneath_root: &Path) -> bool {
        let Self::Roots { protected, .. } = self else { return false };
        let first = beneath_root.components().next().map(Component::as_os_str).and_then(OsStr::to_str);
        let Some(first) = first.map(folded_case) else { return false };
        protected.iter().any(|name| folded_case(name) == first)
    }
}

/// The absolute path with `.` and `..` folded by spelling alone; none for a relative one.
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
