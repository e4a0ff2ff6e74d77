//! Finding what is protected deeper down: the `.git` of a nested repository, the settings of a part of the project.
//!
//! The folders belong to whoever runs commands in them, so links are never followed, other file systems never entered,
//! and there is an end to it, however much there is.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, statat};

/// How much is looked at before the scan gives up.
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
    /// Absolute and without links, in no order.
    pub paths: Vec<PathBuf>,
    /// Whether everything was looked at.
    pub is_complete: bool,
}

/// Everything with one of these names beneath the roots, but for what is in the roots themselves. What is near the top
/// is found first, and each root gets its share of the limit.
pub fn protected_below(roots: &[PathBuf], names: &[&str], limit: ScanLimit) -> Protected {
    let mut roots: Vec<PathBuf> = roots.iter().filter_map(|root| root.canonicalize().ok()).collect();
    let mut seen = Vec::new();
    roots.retain(|root| !seen.contains(root) && (seen.push(root.clone()), true).1);
    let mut scan = Scan { names, limit, began: Instant::now(), looked_at: 0, found: Protected::default() };
    scan.found.is_complete = true;
    for (i, root) in roots.iter().enumerate() {
        // A root within another that comes before it has been looked at along with that.
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
            // Gone by now, or closed to this user: then there is nothing to protect that could be changed.
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
            // A folder with too many folders is not worth the memory: the limit would be reached anyway.
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
    fn finds_what_is_nested_and_follows_no_link() {
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
        // A root that is a link is where it leads.
        assert_eq!(scan(&[&at.join("ws/a/again")], unhurried()), found);
    }

    #[test]
    fn there_is_an_end_to_it() {
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
