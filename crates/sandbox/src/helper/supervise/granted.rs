//! Unix sockets outside that commands may connect to, opened before the sandbox is built.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::super::own_files::OwnFiles;

/// Limit of links, against cycles.
const MAX_LINKS: usize = 40;

/// One of them.
#[derive(Debug)]
struct Socket {
    asked: PathBuf,
    found: PathBuf,
    opened: OwnedFd,
    identity: (u64, u64),
}

#[derive(Debug, Default)]
pub(in super::super) struct Granted(Vec<Socket>);

impl Granted {
    /// Leaves out paths that do not exist, are no sockets, or lead through a link that a command could have created.
    ///
    /// A command of a root server is another user, to whom root's sockets are closed: `own` maps their owner.
    pub(in super::super) fn open(paths: &[PathBuf], writable: &[PathBuf], own: Option<&OwnFiles>) -> Self {
        if paths.is_empty() {
            return Self::default();
        }
        let writable: Vec<PathBuf> = writable.iter().filter_map(|path| fs::canonicalize(path).ok()).collect();
        Self(paths.iter().filter_map(|path| Socket::open(path, &writable, own).ok()).collect())
    }

    /// The matching granted socket, if it is one of them.
    pub(super) fn same(&self, opened: &OwnedFd) -> Option<&OwnedFd> {
        let found = fstat(opened).ok()?;
        let is_it = |socket: &&Socket| socket.identity == (found.st_dev, found.st_ino);
        self.0.iter().find(is_it).map(|socket| &socket.opened)
    }

    /// The granted socket of that path, which may be invisible inside.
    pub(super) fn named(&self, path: &Path) -> Option<&OwnedFd> {
        self.0.iter().find(|socket| socket.asked == path || socket.found == path).map(|s| &s.opened)
    }
}

impl Socket {
    fn open(path: &Path, writable: &[PathBuf], own: Option<&OwnFiles>) -> io::Result<Self> {
        let found = trusted_way(path, writable)?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat2(CWD, &found, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        let seen = fstat(&opened)?;
        if FileType::from_raw_mode(seen.st_mode) != FileType::Socket {
            return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
        }
        let opened = match own {
            Some(own) => own.own(&opened)?,
            None => opened,
        };
        Ok(Self { asked: path.to_owned(), found, opened, identity: (seen.st_dev, seen.st_ino) })
    }
}

/// The resolved path, without links in writable folders: a command's link could lead to any socket.
fn trusted_way(path: &Path, writable: &[PathBuf]) -> io::Result<PathBuf> {
    let mut left: Vec<PathBuf> = vec![path.to_owned()];
    let mut way = PathBuf::new();
    let mut links = 0;
    while let Some(next) = left.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else { continue };
        left.push(parts.as_path().to_owned());
        match part {
            Component::RootDir | Component::Prefix(_) => way = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir => {
                way.pop();
            }
            Component::Normal(name) => {
                let step = way.join(name);
                if !fs::symlink_metadata(&step)?.is_symlink() {
                    way = step;
                    continue;
                }
                links += 1;
                if links > MAX_LINKS || writable.iter().any(|root| way.starts_with(root)) {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                left.push(fs::read_link(&step)?);
            }
        }
    }
    Ok(way)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn links_are_followed_only_where_commands_cannot_make_them() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("run/service")).unwrap();
        fs::create_dir_all(at("ws")).unwrap();
        let _service = UnixListener::bind(at("run/service/s")).unwrap();
        let _own = UnixListener::bind(at("ws/s")).unwrap();
        fs::write(at("run/file"), "").unwrap();
        symlink("run", at("var")).unwrap();
        symlink(at("run/service/s"), at("ws/turned")).unwrap();
        symlink(at("ws/turned"), at("by")).unwrap();
        let granted = |name: &str| {
            let granted = Granted::open(&[at(name)], &[at("ws")], None);
            granted.0.into_iter().next().map(|socket| socket.found)
        };
        assert_eq!(granted("run/service/s"), Some(at("run/service/s")));
        assert_eq!(granted("var/service/../service/s"), Some(at("run/service/s")));
        assert_eq!(granted("ws/s"), Some(at("ws/s")));
        assert_eq!(granted("ws/turned"), None);
        assert_eq!(granted("by"), None);
        assert_eq!(granted("run/file"), None);
        assert_eq!(granted("nowhere"), None);
    }
}
