//! The target of a `.git` file: the git folder of a linked working tree or submodule, and the folder shared by all
//! working trees.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// Longer files are invalid.
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

/// The folder shared by all working trees of a repository, for a `.git` file that the repository itself confirms. The
/// file alone proves nothing: any command could have written it.
pub(crate) fn of_linked_tree(file: &Path) -> Option<PathBuf> {
    let text = read_short(file)?;
    let git_dir = file.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = read_short(&git_dir.join("gitdir"))?;
    let worktrees = git_dir.parent()?;
    let knows_it = git_dir.join(back.trim()).canonicalize().ok()? == file.canonicalize().ok()?;
    (knows_it && worktrees.file_name()? == "worktrees").then(|| worktrees.parent().map(Path::to_owned))?
}

/// A command can put anything there: opened without blocking on a pipe, and with a size limit.
fn read_short(file: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(CWD, file, flags, Mode::empty()).ok()?;
    if FileType::from_raw_mode(fstat(&opened).ok()?.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut text = String::new();
    File::from(opened).take(LONGEST + 1).read_to_string(&mut text).ok()?;
    (text.len() as u64 <= LONGEST).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        // Only if the repository confirms it.
        assert_eq!(of_linked_tree(&file), None);
        fs::write(own.join("gitdir"), format!("{}\n", file.display())).unwrap();
        assert_eq!(of_linked_tree(&file), Some(at.path().canonicalize().unwrap().join("main/.git")));
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
