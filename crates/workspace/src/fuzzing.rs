//! Entry point for fuzzing: any bytes as a tree of files and as paths into it.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use crate::{Access, FileVisitor, FileWalk, NameFilter, Reader};

/// The text that must never be read.
const SECRET: &str = "this must not be read";

/// Builds the tree that the bytes describe in `folder`, which must be empty, and reads every path they name. Panics if
/// something outside the project or something hidden was read. One entry per line: `f PATH TEXT` a file, `d PATH` a
/// folder, `l PATH TARGET` a link, `h PATH TARGET` a hard link, `r PATH` a path to read, `s PATH` a folder to list, `w
/// GLOB` a walk of all matching files.
pub fn tree(bytes: &[u8], folder: &Path) {
    let (project, outside, hidden) =
        (folder.join("project"), folder.join("outside"), folder.join("project/hidden"));
    for made in [&project, &outside, &hidden] {
        let _ = fs::create_dir_all(made);
    }
    for secret in [outside.join("secret"), hidden.join("secret")] {
        let _ = fs::write(secret, SECRET);
    }
    let access = Access { readable: None, hidden: vec![hidden], shown: Vec::new() };
    let Ok(reader) = Reader::new(access).beneath(&project) else { return };
    for line in bytes.split(|byte| *byte == b'\n').take(64) {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(what), Some(path)) = (words.next(), words.next()) else { continue };
        let rest = words.next().unwrap_or_default();
        act(what, path, rest, &project, &reader);
    }
}

fn act(what: &[u8], path: &[u8], rest: &[u8], project: &Path, reader: &Reader) {
    let given = Path::new(std::ffi::OsStr::from_bytes(path));
    let target = Path::new(std::ffi::OsStr::from_bytes(rest));
    let place = kept_inside(project, given);
    // Entries that cannot be created are skipped.
    let _ = match what {
        b"f" => fs::write(&place, [b"x", rest].concat()),
        b"d" => fs::create_dir_all(&place),
        b"l" => symlink(target, &place),
        // A hard link to a file outside is a normal file of the project.
        b"h" => match fs::canonicalize(project.join(target)) {
            Ok(real) if reader.root().is_some_and(|root| real.starts_with(root)) => {
                fs::hard_link(real, &place)
            }
            _ => Ok(()),
        },
        b"r" => {
            if let Ok(bytes) = reader.read_whole(given, 1 << 16) {
                assert_ne!(bytes, SECRET.as_bytes(), "{} gave the secret", given.display());
            }
            Ok(())
        }
        b"w" => {
            walk(given, project, reader);
            Ok(())
        }
        b"s" => {
            if let Ok(listing) = reader.list(given, 100) {
                assert!(listing.folder.starts_with(reader.root().unwrap_or(project)), "{:?}", listing.folder);
                assert!(!listing.folder.ends_with("hidden"), "{:?}", listing.folder);
            }
            Ok(())
        }
        _ => Ok(()),
    };
}

fn walk(glob: &Path, project: &Path, reader: &Reader) {
    let root = reader.root().unwrap_or(project);
    let filter = glob.to_str().and_then(|glob| NameFilter::new(root, glob).ok());
    let walk = FileWalk { reader, filter: filter.as_ref(), not_searched: &[] };
    walk.run(root, &Looker { reader, root });
}

struct Looker<'a> {
    reader: &'a Reader,
    root: &'a Path,
}

impl FileVisitor for Looker<'_> {
    fn is_over(&self) -> bool {
        false
    }

    fn visit(&self, files: &[PathBuf]) {
        for path in files {
            assert!(path.starts_with(self.root), "{path:?}");
            let Ok(file) = fs::File::open(path) else { continue };
            if self.reader.allows_opened(&file, path) {
                assert_ne!(std::io::read_to_string(file).ok().as_deref(), Some(SECRET), "{path:?}");
            }
        }
    }

    fn pass_over(&self) {}
}

/// The place of an entry: never outside the project, whatever its path. Links are not followed.
fn kept_inside(project: &Path, path: &Path) -> PathBuf {
    let mut place = project.to_owned();
    for part in path.components() {
        if let Component::Normal(name) = part {
            if fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink()) {
                return project.to_owned();
            }
            place.push(name);
        }
    }
    // Nothing is created in the hidden folder, or through a link.
    let is_taken = fs::symlink_metadata(&place).is_ok_and(|found| found.is_symlink());
    if is_taken || place.starts_with(project.join("hidden")) { project.to_owned() } else { place }
}
