//! Resolves written paths.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::boundary::folded;
use crate::error::PlanError;
use crate::limits::{MAX_FOLDERS, MAX_NAME_BYTES, MAX_PATH_BYTES};
use crate::names::shown_text;

/// A target: its spelling and its resolved path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResolvedTarget {
    /// The written path joined to the base, `..` removed as text.
    pub(crate) path: PathBuf,
    /// The same place without any symbolic link among its directories.
    pub(crate) real: PathBuf,
    /// Whether a link other than one in the base was followed.
    pub(crate) linked: bool,
}

/// Resolves the paths of one patch, each directory once.
pub(crate) struct Resolver {
    base: PathBuf,
    real_base: PathBuf,
    real_directories: HashMap<PathBuf, PathBuf>,
}

impl Resolver {
    pub(crate) fn new(base: &Path) -> Result<Self, PlanError> {
        let unusable = |source| PlanError::Base { path: base.to_owned(), source };
        let folded = folded(base).ok_or_else(|| unusable(io::Error::other("it is not an absolute path")))?;
        let real_base = fs::canonicalize(&folded).map_err(unusable)?;
        if !fs::metadata(&real_base).map_err(unusable)?.is_dir() {
            return Err(unusable(rustix::io::Errno::NOTDIR.into()));
        }
        let real_directories = HashMap::from([(folded.clone(), real_base.clone())]);
        Ok(Self { base: folded, real_base, real_directories })
    }

    pub(crate) fn resolve(&mut self, written: &str) -> Result<ResolvedTarget, PlanError> {
        check_name(written)?;
        let bad = |why| PlanError::BadPath { shown: shown_text(written), why };
        let path = folded(&self.base.join(written)).ok_or_else(|| bad("cannot be used"))?;
        if path.as_os_str().len() > MAX_PATH_BYTES {
            return Err(bad("is too long"));
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(bad("names a directory"));
        };
        let real = self.real_directory(parent)?.join(name);
        let expected = match path.strip_prefix(&self.base) {
            Ok(rest) if rest.as_os_str().is_empty() => return Err(bad("names a directory")),
            Ok(rest) => self.real_base.join(rest),
            Err(_) => path.clone(),
        };
        let linked = real != expected;
        Ok(ResolvedTarget { path, real, linked })
    }

    /// The resolved directory. A missing part is kept as spelled.
    fn real_directory(&mut self, directory: &Path) -> Result<PathBuf, PlanError> {
        if let Some(real) = self.real_directories.get(directory) {
            return Ok(real.clone());
        }
        let unusable = |source| PlanError::Write { path: directory.to_owned(), source };
        let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
            return Ok(PathBuf::from("/"));
        };
        let real = match fs::symlink_metadata(directory) {
            Ok(found) if found.is_symlink() => {
                let real = fs::canonicalize(directory).map_err(unusable)?;
                if !fs::metadata(&real).map_err(unusable)?.is_dir() {
                    return Err(unusable(rustix::io::Errno::NOTDIR.into()));
                }
                real
            }
            Ok(found) if !found.is_dir() => return Err(unusable(rustix::io::Errno::NOTDIR.into())),
            Ok(_) => self.real_directory(parent)?.join(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.real_directory(parent)?.join(name),
            Err(error) => return Err(unusable(error)),
        };
        self.real_directories.insert(directory.to_owned(), real.clone());
        Ok(real)
    }
}

/// Refuses invalid names before the disk is read.
fn check_name(written: &str) -> Result<(), PlanError> {
    let bad = |why| Err(PlanError::BadPath { shown: shown_text(shortened(written)), why });
    if written.trim().is_empty() {
        return bad("is empty");
    }
    if written.contains('\0') {
        return bad("holds a NUL byte");
    }
    if written.chars().any(char::is_control) {
        return bad("holds a control character");
    }
    if written.ends_with('/') || matches!(written.rsplit('/').next(), Some("." | "..")) {
        return bad("names a directory");
    }
    if written.len() > MAX_PATH_BYTES || written.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return bad("is too long");
    }
    if written.split('/').count() > MAX_FOLDERS {
        return bad("has too many folders");
    }
    Ok(())
}

fn shortened(written: &str) -> &str {
    let end = (0..=written.len().min(200)).rev().find(|end| written.is_char_boundary(*end));
    &written[..end.unwrap_or_default()]
}
