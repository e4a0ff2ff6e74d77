//! The folders of one demo, and what became of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The files in the workspace at first. The greeting has a mistake, and the test finds it.
const FILES: &[(&str, &str)] = &[
    ("greet.sh", "# Greets whoever is named.\necho \"Helo, ${1:-world}!\"\n"),
    (
        "test.sh",
        "found=$(sh greet.sh Ada)\nif [ \"$found\" = \"Hello, Ada!\" ]; then\n    echo \"ok: $found\"\nelse\n    \
         echo \"wrong: $found\"\n    exit 1\nfi\n",
    ),
];

/// A file next to the workspace that no command may write.
pub(super) const NEXT_DOOR: &str = "next-door.txt";

#[derive(Debug)]
pub(super) struct DemoFolder {
    pub(super) workspace: PathBuf,
    pub(super) home: PathBuf,
    next_door: PathBuf,
}

impl DemoFolder {
    pub(super) fn make(root: &Path) -> Result<Self> {
        // Links resolved, since the sandbox works on real paths.
        let root = root.canonicalize().context("the demo's folder cannot be used")?;
        let place = Self {
            workspace: root.join("workspace"),
            home: root.join("home"),
            next_door: root.join(NEXT_DOOR),
        };
        for folder in [&place.workspace, &place.home] {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        }
        for (name, text) in FILES {
            fs::write(place.workspace.join(name), text).with_context(|| (*name).to_owned())?;
        }
        Ok(place)
    }

    /// One line for each file that is not as it was.
    pub(super) fn changes(&self) -> io::Result<Vec<String>> {
        let mut now = BTreeMap::new();
        for entry in fs::read_dir(&self.workspace)? {
            let entry = entry?;
            now.insert(entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?);
        }
        let before: BTreeMap<&str, &str> = FILES.iter().copied().collect();
        let gone =
            before.keys().filter(|name| !now.contains_key(**name)).map(|name| format!("deleted  {name}"));
        let there = now.iter().filter_map(|(name, text)| match before.get(name.as_str()) {
            None => Some(format!("new      {name}")),
            Some(before) if before.as_bytes() != text => Some(format!("changed  {name}")),
            Some(_) => None,
        });
        Ok(there.chain(gone).collect())
    }

    pub(super) fn next_door_was_written(&self) -> bool {
        self.next_door.exists()
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_found_by_looking() {
        let scratch = tempfile::tempdir().expect("a folder");
        let place = DemoFolder::make(scratch.path()).expect("made");
        assert!(place.changes().expect("read").is_empty() && !place.next_door_was_written());
        fs::write(place.workspace.join("greet.sh"), "x").expect("written");
        fs::write(place.workspace.join("a"), "").expect("written");
        fs::remove_file(place.workspace.join("test.sh")).expect("removed");
        fs::write(&place.next_door, "").expect("written");
        assert_eq!(place.changes().expect("read"), ["new      a", "changed  greet.sh", "deleted  test.sh"]);
        assert!(place.next_door_was_written());
    }
}
