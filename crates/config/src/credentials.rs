//! The stored API key: one small file that only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::{ConfigError, Home, Secret};

/// The store. Every call reads or replaces the file, so several processes can share it.
#[derive(Debug, Clone)]
pub struct Credentials {
    home: Home,
    file: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    api_key: Option<String>,
}

impl Credentials {
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), file: home.credentials_file() }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The stored key. No file, a file that cannot be understood and a blank key all mean: not logged in.
    pub fn load(&self) -> Result<Option<Secret>, ConfigError> {
        let text = match fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(ConfigError::read(&self.file, error)),
        };
        let stored: Option<Stored> = serde_json::from_slice(&text).ok();
        Ok(stored.and_then(|stored| stored.api_key).filter(|key| !key.trim().is_empty()).map(Secret::new))
    }

    /// Replaces whatever was stored. Readers see the old file or the new one, never half of one.
    pub fn save_api_key(&self, key: &Secret) -> Result<(), ConfigError> {
        self.home.create_state()?;
        let stored = Stored { api_key: Some(key.reveal().to_owned()) };
        let mut text = serde_json::to_vec_pretty(&stored)
            .map_err(|error| ConfigError::write(&self.file, io::Error::from(error)))?;
        text.push(b'\n');
        replace(&self.file, &text).map_err(|error| ConfigError::write(&self.file, error))
    }

    /// Forgets the key. True when there was a file to remove.
    pub fn clear(&self) -> Result<bool, ConfigError> {
        match fs::remove_file(&self.file) {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(ConfigError::write(&self.file, error)),
        }
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes beside the target and renames over it.
fn replace(target: &Path, text: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = target.with_extension(format!("{}.{count}.tmp", std::process::id()));
    // A leftover of a process that had our id and died: its mode is unknown, so it is not written into.
    let _ = fs::remove_file(&temporary);
    let written = write_private(&temporary, text).and_then(|()| fs::rename(&temporary, target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(path)?;
    file.write_all(text)?;
    file.sync_all()
}
