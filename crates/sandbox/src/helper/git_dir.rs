//! Where a `.git` file leads: to the git folder of a linked working tree or of a submodule, and on to the folder that
//! holds what all working trees share.

use std::fs;
use std::path::{Path, PathBuf};

/// Longer files point nowhere.
const LONGEST: u64 = 16 * 1024;

/// The folders behind a `.git` file, as written. Relative ones start at the file's own folder.
pub(crate) fn of_pointer_file(file: &Path) -> Vec<PathBuf> {
    let Some(git_dir) =
        read_short(file).and_then(|text| Some(PathBuf::from(text.strip_prefix("gitdir:")?.trim())))
    else {
        return Vec::new();
    };
    let absolute = file.parent().unwrap_or(Path::new("/")).join(&git_dir);
    let common = read_short(&absolute.join("commondir")).map(|text| absolute.join(text.trim()));
    [Some(git_dir), common].into_iter().flatten().collect()
}

fn read_short(file: &Path) -> Option<String> {
    let found = fs::metadata(file).ok()?;
    if found.is_file() && found.len() <= LONGEST { fs::read_to_string(file).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linked_tree_leads_to_its_own_folder_and_the_shared_one() {
        let at = tempfile::tempdir().unwrap();
        let own = at.path().join("main/.git/worktrees/a");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        let file = at.path().join("a.git");
        fs::write(&file, "gitdir: main/.git/worktrees/a\n").unwrap();
        let expected = [PathBuf::from("main/.git/worktrees/a"), own.join("../..")];
        assert_eq!(of_pointer_file(&file), expected);
    }

    #[test]
    fn another_file_leads_nowhere() {
        let at = tempfile::tempdir().unwrap();
        let file = at.path().join(".git");
        fs::write(&file, "something else").unwrap();
        assert_eq!(of_pointer_file(&file), Vec::<PathBuf>::new());
        assert_eq!(of_pointer_file(&at.path().join("none")), Vec::<PathBuf>::new());
    }
}
