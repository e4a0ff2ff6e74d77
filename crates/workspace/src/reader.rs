//! The reader: its checks apply to open descriptors, not to names.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::AccessLimits;
use crate::list::{Entry, Listing, each_entry, list};
use crate::open::{self, Root};
use crate::{Access, ReadError, ReadProblem};

/// How often opening is retried if the file is being replaced.
const MAX_TRIES: usize = 4;

/// Reads files within an [`Access`], anywhere or only in one folder. Cheap to clone. The default reads every regular
/// file: it is for our own files and the user's.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    limits: Arc<AccessLimits>,
    root: Option<Arc<Root>>,
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct OpenedFile {
    pub file: File,
    pub metadata: Metadata,
    /// The resolved path.
    pub path: PathBuf,
}

/// A file that a path leads to.
#[derive(Debug)]
pub struct FoundPath {
    pub metadata: Metadata,
    /// The resolved path.
    pub path: PathBuf,
}

impl Reader {
    pub fn new(access: Access) -> Self {
        Self { limits: Arc::new(AccessLimits::new(access)), root: None }
    }

    /// The same limits, and only inside a folder: no link leads out of it.
    pub fn beneath(&self, root: &Path) -> Result<Self, ReadError> {
        let opened = Root::open(root).map_err(|problem| ReadError::new(root, problem))?;
        Ok(Self { limits: self.limits.clone(), root: Some(Arc::new(opened)) })
    }

    /// The folder it is limited to, resolved.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref().map(|root| root.path.as_path())
    }

    /// Whether a resolved path may be read, judged by its name.
    pub fn allows(&self, real: &Path) -> bool {
        self.limits.check_path(real).is_ok()
    }

    /// Whether this is a hidden file under another name.
    pub fn is_hidden(&self, metadata: &Metadata) -> bool {
        self.limits.check_identity(metadata, self.root.is_some()).is_err()
    }

    /// Whether a file opened by name is regular and may be read. Part of its path may have become a link since the name
    /// was checked.
    pub fn allows_opened(&self, file: &File, given: &Path) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let is_plain = metadata.is_file() && metadata.nlink() > 0;
        is_plain && self.allows(&open::real_path(file, given)) && !self.is_hidden(&metadata)
    }

    /// Finds what is at a path without opening it.
    pub fn find(&self, path: &Path) -> Result<FoundPath, ReadError> {
        let (handle, found) = self.handle(path).map_err(|problem| ReadError::new(path, problem))?;
        drop(handle);
        Ok(found)
    }

    /// Opens a regular file. Never blocks, whatever the path is.
    pub fn open(&self, path: &Path) -> Result<OpenedFile, ReadError> {
        let mut result = self.try_open(path);
        for _ in 1..MAX_TRIES {
            if !matches!(result, Err(ReadProblem::Replaced)) {
                break;
            }
            result = self.try_open(path);
        }
        result.map_err(|problem| ReadError::new(path, problem))
    }

    fn try_open(&self, path: &Path) -> Result<OpenedFile, ReadProblem> {
        let (handle, found) = self.handle(path)?;
        let file = open::regular(&handle, path)?;
        let metadata = file.metadata()?;
        // The file was deleted, so its path cannot be checked.
        if metadata.nlink() == 0 {
            return Err(ReadProblem::Replaced);
        }
        Ok(OpenedFile { file, metadata, path: found.path })
    }

    /// A handle that was checked against the limits.
    fn handle(&self, path: &Path) -> Result<(File, FoundPath), ReadProblem> {
        let handle = match &self.root {
            Some(root) => root.beneath(path)?,
            None => open::anywhere(path)?,
        };
        let metadata = handle.metadata()?;
        let real = open::real_path(&handle, path);
        self.limits.check_path(&real)?;
        self.limits.check_identity(&metadata, self.root.is_some())?;
        if self.root.is_some() && open::is_of_processes(&handle) {
            return Err(ReadProblem::Hidden);
        }
        Ok((handle, FoundPath { metadata, path: real }))
    }

    /// The first `max` bytes of a regular file.
    pub fn read_start(&self, path: &Path, max: u64) -> Result<Vec<u8>, ReadError> {
        self.open(path)?.read_start(max).map_err(|error| ReadError::new(path, error))
    }

    /// The whole of a regular file, or an error if it is larger than `max` bytes.
    pub fn read_whole(&self, path: &Path, max: u64) -> Result<Vec<u8>, ReadError> {
        let opened = self.open(path)?;
        let too_large = || ReadError::new(path, ReadProblem::TooLarge(max));
        if opened.metadata.len() > max {
            return Err(too_large());
        }
        // It may grow while it is read.
        let bytes = opened.read_start(max.saturating_add(1)).map_err(|error| ReadError::new(path, error))?;
        if bytes.len() as u64 > max { Err(too_large()) } else { Ok(bytes) }
    }

    /// As [`Reader::read_whole`], for text.
    pub fn read_text(&self, path: &Path, max: u64) -> Result<String, ReadError> {
        let not_text = |_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8");
        String::from_utf8(self.read_whole(path, max)?).map_err(|error| ReadError::new(path, not_text(error)))
    }

    /// The names in a folder, at most `max` of them.
    pub fn list(&self, folder: &Path, max: usize) -> Result<Listing, ReadError> {
        let listed = self.handle(folder).and_then(|(handle, found)| {
            let opened = open::folder(&handle)?;
            list(opened, found.path, max)
        });
        listed.map_err(|problem| ReadError::new(folder, problem))
    }

    /// Passes each entry of a folder to `take` until it returns false.
    pub fn each_entry(&self, folder: &Path, take: &mut dyn FnMut(Entry) -> bool) -> Result<(), ReadError> {
        let walked = self.handle(folder).and_then(|(handle, _)| each_entry(open::folder(&handle)?, take));
        walked.map_err(|problem| ReadError::new(folder, problem))
    }

    /// Whether a folder has an entry of that plain name, also a dangling link or an unreadable file.
    pub fn has_entry(&self, folder: &Path, name: &str) -> bool {
        let is_plain = !name.is_empty() && !name.contains('/') && name != "..";
        is_plain && self.handle(folder).is_ok_and(|(handle, _)| open::has_entry(&handle, Path::new(name)))
    }
}

impl OpenedFile {
    /// At most `max` bytes from the current position.
    pub fn read_start(self, max: u64) -> std::io::Result<Vec<u8>> {
        let expected = usize::try_from(self.metadata.len().min(max)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(expected.min(1 << 20));
        self.file.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
