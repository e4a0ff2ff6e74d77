//! Stores outputs that are too long to show in files. A file is created only when the output exceeds the shown part,
//! and both memory and disk use are limited.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::item::SHOWN_BYTES;
use crate::exec::terminals::chunk_id;

/// Limit of one file. Further output is lost.
const FILE_BYTES: u64 = 64 << 20;
/// Limit of all files of a thread. The oldest are deleted.
const THREAD_BYTES: u64 = 256 << 20;
/// Length of two chunk ids, which form a file name.
const NAME_DIGITS: usize = 12;
/// How long a file is kept.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Collects a command's output, in a file if needed. The file is removed if this is dropped before the command has
/// ended.
#[derive(Debug)]
pub(crate) struct Overflow {
    /// Unset if nothing is stored.
    folder: Option<PathBuf>,
    state: OverflowState,
    total: u64,
}

#[derive(Debug)]
enum OverflowState {
    /// Short enough to show so far.
    Short(Vec<u8>),
    Long(Spill),
    /// There is no file, and there will be none.
    Lost,
}

#[derive(Debug)]
struct Spill {
    file: File,
    path: PathBuf,
    written: u64,
    is_kept: bool,
}

/// The location of a whole output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WholeOutput {
    path: PathBuf,
    /// In the file.
    kept: u64,
    total: u64,
}

impl WholeOutput {
    /// For the model and for clients.
    pub(crate) fn line(&self) -> String {
        let (path, kept, total) = (self.path.display(), self.kept, self.total);
        match kept < total {
            true => format!("Full output: {path} (the first {kept} of {total} bytes)"),
            false => format!("Full output: {path} ({total} bytes)"),
        }
    }
}

impl Overflow {
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let state = if folder.is_some() { OverflowState::Short(Vec::new()) } else { OverflowState::Lost };
        Self { folder: folder.map(Path::to_owned), state, total: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        match &mut self.state {
            OverflowState::Short(short) if short.len() + bytes.len() <= SHOWN_BYTES => {
                short.extend_from_slice(bytes);
            }
            OverflowState::Short(short) => {
                let short = std::mem::take(short);
                let folder = self.folder.as_deref().unwrap_or(Path::new(""));
                // They are the commands' own words: their user may read them.
                let made = sandbox::as_command_user(|| Spill::new(folder)).and_then(|made| made);
                let spilled = made.and_then(|mut spill| {
                    spill.write(&short)?;
                    spill.write(bytes)?;
                    Ok(spill)
                });
                self.settle(spilled);
            }
            OverflowState::Long(spill) => {
                if let Err(error) = spill.write(bytes) {
                    self.settle(Err(error));
                }
            }
            OverflowState::Lost => {}
        }
    }

    fn settle(&mut self, spilled: io::Result<Spill>) {
        self.state = match spilled {
            Ok(spill) => OverflowState::Long(spill),
            Err(error) => {
                tracing::warn!(%error, "a long output cannot be kept");
                OverflowState::Lost
            }
        };
    }

    /// The location so far.
    pub(crate) fn so_far(&self) -> Option<WholeOutput> {
        match &self.state {
            OverflowState::Long(spill) => {
                Some(WholeOutput { path: spill.path.clone(), kept: spill.written, total: self.total })
            }
            OverflowState::Short(_) | OverflowState::Lost => None,
        }
    }

    /// Ends the output and keeps the file.
    pub(crate) fn finish(mut self) -> Option<WholeOutput> {
        let whole = self.so_far();
        if let OverflowState::Long(spill) = &mut self.state {
            spill.is_kept = true;
        }
        whole
    }
}

impl Spill {
    fn new(folder: &Path) -> io::Result<Self> {
        make_room(folder);
        // The name may be taken, and the empty folder may be removed meanwhile.
        let may_pass = [io::ErrorKind::AlreadyExists, io::ErrorKind::NotFound];
        let mut tries = 0;
        loop {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let path = folder.join(format!("{}{}.txt", chunk_id(), chunk_id()));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => return Ok(Self { file, path, written: 0, is_kept: false }),
                Err(error) if may_pass.contains(&error.kind()) && tries < 5 => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let room = usize::try_from(FILE_BYTES - self.written).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        self.file.write_all(fits)?;
        self.written += fits.len() as u64;
        Ok(())
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = sandbox::as_command_user(|| fs::remove_file(&self.path)).and_then(|done| done)
        {
            tracing::warn!(%error, path = %self.path.display(), "an output that is not needed cannot be removed");
        }
    }
}

/// Removes files of this thread until there is room for another, and outdated files of any thread.
fn make_room(folder: &Path) {
    let too_old =
        |(changed, ..): &(SystemTime, u64, PathBuf)| changed.elapsed().is_ok_and(|age| age > KEPT_FOR);
    for other in entries(folder.parent().unwrap_or(folder)) {
        let outdated: Vec<_> = match other == folder {
            true => Vec::new(),
            false => files(&other).into_iter().filter(too_old).collect(),
        };
        outdated.iter().for_each(|(.., path)| remove(path));
        if !outdated.is_empty() {
            // Succeeds only for an empty folder.
            let _ = fs::remove_dir(&other);
        }
    }
    let mut own = files(folder);
    own.sort();
    let mut used: u64 = own.iter().map(|(_, bytes, _)| bytes).sum();
    for file in own {
        if used + FILE_BYTES > THREAD_BYTES || too_old(&file) {
            used -= file.1;
            remove(&file.2);
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "an old output cannot be removed");
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    // A folder that cannot be listed has none of our files.
    fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default()
}

/// Whether the file name is one of ours. Nothing else is ever removed, whatever the folder.
fn is_output(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let digits = name.and_then(|name| name.strip_suffix(".txt")).unwrap_or_default();
    digits.len() == NAME_DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// The outputs in a folder, with modification time and size.
fn files(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let look = |path: PathBuf| {
        if !is_output(&path) {
            return None;
        }
        let found = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((found.modified().ok()?, found.len(), path))
    };
    entries(folder).into_iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("there").permissions().mode() & 0o777
    }

    fn written(folder: &Path, bytes: usize) -> Overflow {
        let mut overflow = Overflow::new(Some(folder));
        for chunk in vec![b'x'; bytes].chunks(100_000) {
            overflow.push(chunk);
        }
        overflow
    }

    #[test]
    fn only_long_outputs_have_a_file() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("outputs/thread");
        assert_eq!(written(&folder, SHOWN_BYTES).finish(), None);
        assert!(!folder.exists());
        assert_eq!(written(Path::new("/dev/null/nowhere"), SHOWN_BYTES + 1).finish(), None);
        let mut nowhere = Overflow::new(None);
        nowhere.push(&vec![0; SHOWN_BYTES + 1]);
        assert_eq!(nowhere.finish(), None);
        let whole = written(&folder, SHOWN_BYTES + 1).finish().expect("a file");
        assert_eq!(fs::read(&whole.path).expect("readable"), vec![b'x'; SHOWN_BYTES + 1]);
        assert_eq!((mode(&whole.path), mode(&folder)), (0o600, 0o700));
        let bytes = SHOWN_BYTES + 1;
        assert_eq!(whole.line(), format!("Full output: {} ({bytes} bytes)", whole.path.display()));
    }

    #[test]
    fn an_end_without_a_result_leaves_no_file() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("thread");
        let overflow = written(&folder, 1_000_000);
        assert_eq!(files(&folder).len(), 1);
        drop(overflow);
        assert_eq!(files(&folder), []);
    }

    #[test]
    fn a_flood_is_cut_off_and_says_so() {
        let place = tempfile::tempdir().expect("a folder");
        let mut overflow = Overflow::new(Some(&place.path().join("thread")));
        let chunk = vec![b'x'; 1 << 20];
        (0..70).for_each(|_| overflow.push(&chunk));
        let whole = overflow.finish().expect("a file");
        assert_eq!(fs::metadata(&whole.path).expect("there").len(), FILE_BYTES);
        assert!(whole.line().ends_with(&format!("(the first {FILE_BYTES} of {} bytes)", 70 << 20)));
    }

    #[test]
    fn old_outputs_are_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let [own, other, foreign, empty] =
            ["own", "other", "foreign", "empty"].map(|name| place.path().join(name));
        let day = Duration::from_secs(24 * 60 * 60);
        let file = |folder: &Path, name: &str, bytes: u64, age: Duration| {
            fs::create_dir_all(folder).expect("made");
            let file = File::create(folder.join(name)).expect("made");
            file.set_len(bytes).expect("set");
            file.set_modified(SystemTime::now() - age).expect("set");
        };
        file(&own, "000000000000.txt", FILE_BYTES, 3 * day);
        file(&own, "000000000001.txt", FILE_BYTES, 2 * day);
        file(&own, "000000000003.txt", FILE_BYTES, day);
        file(&own, "000000000002.txt", FILE_BYTES, day / 2);
        file(&own, "00000000000f.txt", 1, 8 * day);
        file(&other, "00000000000f.txt", 1, 8 * day);
        file(&foreign, "notes.txt", 1, 8 * day);
        fs::create_dir(&empty).expect("made");
        let whole = written(&own, SHOWN_BYTES + 1).finish().expect("a file");
        let left: Vec<_> =
            files(&own).into_iter().map(|(.., path)| path).filter(|path| *path != whole.path).collect();
        assert_eq!(left.len(), 3, "{left:?}");
        assert!(!left.contains(&own.join("000000000000.txt")) && !other.exists(), "{left:?}");
        assert!(
            foreign.join("notes.txt").exists() && empty.exists(),
            "files of others are nobody's to remove"
        );
    }
}
