//! Other paths to the same place: a folder can be mounted a second time, where hidden paths would be visible.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
struct MountEntry {
    device: String,
    /// The mounted part of the file system.
    root: PathBuf,
    point: PathBuf,
}

/// All mounts of this process.
#[derive(Debug, Default)]
pub(crate) struct Mounts(Vec<MountEntry>);

impl Mounts {
    pub(crate) fn read() -> Self {
        Self::parse(&fs::read("/proc/self/mountinfo").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').filter_map(MountEntry::parse).collect())
    }

    /// Other paths to the same place, or to a part of it.
    pub(crate) fn others(&self, path: &Path) -> Vec<PathBuf> {
        let around = self.0.iter().filter(|mount| path.starts_with(&mount.point));
        // Of mounts at the same point, the last one is on top.
        let Some(own) = around.max_by_key(|mount| mount.point.as_os_str().len()) else { return Vec::new() };
        let inner = own.root.join(path.strip_prefix(&own.point).unwrap_or(Path::new("")));
        let same = self.0.iter().filter(|mount| mount.device == own.device);
        let other = |mount: &MountEntry| match inner.strip_prefix(&mount.root) {
            Ok(rest) => Some(mount.point.join(rest)),
            Err(_) => mount.root.starts_with(&inner).then(|| mount.point.clone()),
        };
        let mut found: Vec<PathBuf> =
            same.filter_map(other).filter(|other| !other.starts_with(path)).collect();
        // Joining an empty rest leaves a slash at the end.
        found.iter_mut().for_each(|path| *path = path.components().collect());
        found.retain(|other| other != path);
        found
    }
}

impl MountEntry {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|byte| *byte == b' ').skip(2);
        let device = String::from_utf8_lossy(fields.next()?).into_owned();
        Some(Self { device, root: path(fields.next()?), point: path(fields.next()?) })
    }
}

/// Decodes spaces and the like, which are written as octal escapes.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
1 0 8:1 / / rw - ext4 /dev/a rw
2 1 8:2 / /data rw - ext4 /dev/b rw
3 1 8:2 /srv /srv rw - ext4 /dev/b rw
4 1 8:2 /srv/u/.state/skills /opt/with\\040space rw - ext4 /dev/b rw
5 1 8:3 / /srv/u/.state/mounted rw - ext4 /dev/c rw
";

    #[test]
    fn the_same_place_is_found_by_every_way() {
        let mounts = Mounts::parse(TEXT);
        let others = |path: &str| mounts.others(Path::new(path));
        let expected = ["/data/srv/u/.state", "/opt/with space"].map(PathBuf::from);
        assert_eq!(others("/srv/u/.state"), expected);
        assert_eq!(others("/data/srv/u/.state")[0], Path::new("/srv/u/.state"));
        assert_eq!(others("/srv/u/.state/mounted/x"), Vec::<PathBuf>::new());
        assert_eq!(others("/etc/x"), Vec::<PathBuf>::new());
        assert_eq!(others("/srv"), [PathBuf::from("/data/srv"), "/opt/with space".into()]);
    }
}
