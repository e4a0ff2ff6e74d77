//! Folders of workspaces that are no more, and the ones that took their place.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Workspaces that a placement is known to have had; older ones are forgotten.
const MAX_EARLIER: usize = 32;

/// The workspaces that a placement had before it was made again. Their folders may still be there, with files that no
/// longer count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EarlierWorkspaces(Vec<String>);

impl EarlierWorkspaces {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, workspace: String) {
        self.0.retain(|known| *known != workspace);
        self.0.push(workspace);
        let surplus = self.0.len().saturating_sub(MAX_EARLIER);
        self.0.drain(..surplus);
    }

    /// The folder in the present workspace for one in an earlier workspace. `None` for every other folder.
    pub fn moved(&self, folder: &str, present: &str) -> Option<String> {
        let folder = Path::new(folder);
        if folder.starts_with(present) {
            return None;
        }
        let inner = self.0.iter().find_map(|earlier| folder.strip_prefix(earlier).ok())?;
        let moved = match inner.as_os_str().is_empty() {
            true => PathBuf::from(present),
            false => Path::new(present).join(inner),
        };
        Some(moved.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_an_earlier_workspace_becomes_one_of_the_present() {
        let mut earlier = EarlierWorkspaces::default();
        assert_eq!(earlier.moved("/p/a/workspace", "/p/b/workspace"), None);
        earlier.add("/p/a/workspace".to_owned());
        for (folder, expected) in [
            ("/p/a/workspace", Some("/p/b/workspace")),
            ("/p/a/workspace/x/y", Some("/p/b/workspace/x/y")),
            ("/p/a/workspace2", None),
            ("/p/b/workspace/x", None),
            ("/elsewhere", None),
        ] {
            assert_eq!(earlier.moved(folder, "/p/b/workspace").as_deref(), expected, "{folder}");
        }
        // A workspace of the user's own is the same one again.
        assert_eq!(earlier.moved("/p/a/workspace/x", "/p/a/workspace"), None);
        for number in 0..100 {
            earlier.add(format!("/p/{number}"));
        }
        assert_eq!((earlier.0.len(), earlier.0.last().map(String::as_str)), (MAX_EARLIER, Some("/p/99")));
    }
}
