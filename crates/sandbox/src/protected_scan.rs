//! Finds protected paths at depth: the `.git` of a nested repository, the settings of a subproject.
//!
//! Commands control these folders, so links are never followed, other file systems are never entered, and the scan is
//! limited.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};

/// Limits of a scan.
#[derive(Debug, Clone, Copy)]
pub struct ScanLimit {
    pub folders: usize,
    pub time: Duration,
    /// Each becomes a mount for every command.
    pub found: usize,
}

impl Default for ScanLimit {
    fn default() -> Self {
        Self { folders: 20_000, time: Duration::from_millis(200), found: 256 }
    }
}

/// The result of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protected {
    /// Absolute and resolved, in no order.
    pub paths: Vec<PathBuf>,
    /// Whether the scan was complete.
    pub is_complete: bool,
}

/// All paths with one of these names inside the roots, except directly in them. Searches the upper levels first, and
/// splits the limit among the roots.
pub fn protected_below(roots: &[PathBuf], names: &[&str], limit: ScanLimit) -> Protected {
    let mut roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let mut seen = Vec::new();
    roots.retain(|root| !seen.contains(root) && (seen.push(root.clone()), true).1);
    let mut scan = Scan { names, limit, began: Instant::now(), looked_at: 0, found: Protected::default() };
    scan.found.is_complete = true;
    for (i, root) in roots.iter().enumerate() {
        // A root inside an earlier one was scanned with it.
        if !roots[..i].iter().any(|other| root.starts_with(other)) {
            scan.root(root, roots.len() - i);
        }
    }
    scan.found
}

struct Scan<'a> {
    names: &'a [&'a str],
    limit: ScanLimit,
    began: Instant,
    looked_at: usize,
    found: Protected,
}

impl Scan<'_> {
    fn root(&mut self, root: &Path, roots_left: usize) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(opened) = openat(CWD, root, flags, Mode::empty()) else { return };
        let Ok(device) = fstat(&opened).map(|found| found.st_dev) else { return };
        let share = u32::try_from(roots_left).unwrap_or(1);
        let time = self.limit.time.saturating_sub(self.began.elapsed()) / share;
        let deadline = Instant::now() + time;
        let last = self.looked_at + (self.limit.folders - self.looked_at) / roots_left;
        let mut open = VecDeque::from([PathBuf::new()]);
        while let Some(folder) = open.pop_front() {
            if self.looked_at >= last
                || Instant::now() >= deadline
                || self.found.paths.len() >= self.limit.found
            {
                self.found.is_complete = false;
                return;
            }
            self.looked_at += 1;
            // Removed or unreadable: then nothing in it can be changed.
            let _ = self.folder(&opened, root, &folder, device, &mut open);
        }
    }

    fn folder(
        &mut self,
        root: &OwnedFd,
        root_path: &Path,
        folder: &Path,
        device: u64,
        open: &mut VecDeque<PathBuf>,
    ) -> io::Result<()> {
        let path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let flags =
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH | ResolveFlags::NO_XDEV;
        let opened = openat2(root, path, flags, Mode::empty(), resolve)?;
        if fstat(&opened)?.st_dev != device {
            return Ok(());
        }
        for entry in Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let is_protected = self.names.iter().any(|protected| protected.as_bytes() == name);
            let name = OsStr::from_bytes(name);
            if is_protected {
                // Those of the root itself are protected by name.
                if !folder.as_os_str().is_empty() {
                    self.found.paths.push(root_path.join(folder).join(name));
                }
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
                known => known,
            };
            // With too many folders, the limit would be reached anyway.
            if kind == FileType::Directory && open.len() < self.limit.folders {
                open.push_back(folder.join(name));
            } else if kind == FileType::Directory {
                self.found.is_complete = false;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::PROTECTED_NAMES;

    fn scan(roots: &[&Path], limit: ScanLimit) -> Protected {
        let roots: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
        let mut found = protected_below(&roots, &PROTECTED_NAMES, limit);
        found.paths.sort();
        found
    }

    fn unhurried() -> ScanLimit {
        ScanLimit { time: Duration::from_secs(60), ..ScanLimit::default() }
    }

    #[test]
    fn finds_nested_paths_and_follows_no_link() {
        let at = tempfile::tempdir().unwrap();
        let at = at.path().canonicalize().unwrap();
        for folder in ["ws/.git/sub/.git", "ws/a/.git/x/.codex", "ws/a/b/.agents", "else/.git"] {
            fs::create_dir_all(at.join(folder)).unwrap();
        }
        fs::write(at.join("ws/a/b/.git"), "gitdir: x").unwrap();
        symlink("nowhere", at.join("ws/a/.codex")).unwrap();
        symlink(at.join("else"), at.join("ws/link")).unwrap();
        symlink(at.join("ws"), at.join("ws/a/again")).unwrap();
        let found = scan(&[&at.join("ws"), &at.join("ws/a")], unhurried());
        let expected = ["ws/a/.codex", "ws/a/.git", "ws/a/b/.agents", "ws/a/b/.git"];
        assert_eq!(found.paths, expected.map(|path| at.join(path)));
        assert!(found.is_complete);
        // A root that is a link is resolved.
        assert_eq!(scan(&[&at.join("ws/a/again")], unhurried()), found);
    }

    #[test]
    fn the_scan_is_limited() {
        let at = tempfile::tempdir().unwrap();
        for i in 0..50 {
            fs::create_dir_all(at.path().join(format!("{i}/.git"))).unwrap();
        }
        let found = scan(&[at.path()], ScanLimit { folders: 10, ..unhurried() });
        assert_eq!((found.paths.len(), found.is_complete), (9, false));
        let found = scan(&[at.path()], ScanLimit { found: 5, ..unhurried() });
        assert_eq!((found.paths.len(), found.is_complete), (5, false));
        assert!(!scan(&[at.path()], ScanLimit { time: Duration::ZERO, ..unhurried() }).is_complete);
    }
}
