//! The stored login, an API key or the tokens of a ChatGPT account: one small file that only its owner can read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::home::create_private;
use crate::{ConfigError, Home, SecretText};

/// The store. Every call reads or replaces the file, so several processes can share it.
#[derive(Debug, Clone)]
pub struct Credentials {
    home: Home,
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredCredentials {
    api_key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chatgpt: Option<StoredTokens>,
}

#[derive(Serialize, Deserialize)]
struct StoredTokens {
    id_token: String,
    access_token: String,
    refresh_token: String,
    #[serde(default)]
    refreshed_at_ms: i64,
}

/// The tokens of a ChatGPT account. Never shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatgptTokens {
    /// Identifies the owner.
    pub id_token: SecretText,
    pub access_token: SecretText,
    /// Used to get new tokens.
    pub refresh_token: SecretText,
    /// When they were issued.
    pub refreshed_at_ms: i64,
}

impl Credentials {
    pub fn new(home: &Home) -> Self {
        Self { home: home.clone(), file: home.credentials_file() }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The stored key. A missing or invalid file and a blank key all mean: not logged in.
    pub fn load(&self) -> Result<Option<SecretText>, ConfigError> {
        let key = self.read()?.and_then(|stored| stored.api_key);
        Ok(key.filter(|key| !key.trim().is_empty()).map(SecretText::new))
    }

    /// The stored tokens of a ChatGPT account.
    pub fn load_tokens(&self) -> Result<Option<ChatgptTokens>, ConfigError> {
        let stored = self.read()?.and_then(|stored| stored.chatgpt);
        Ok(stored.map(|stored| ChatgptTokens {
            id_token: SecretText::new(stored.id_token),
            access_token: SecretText::new(stored.access_token),
            refresh_token: SecretText::new(stored.refresh_token),
            refreshed_at_ms: stored.refreshed_at_ms,
        }))
    }

    fn read(&self) -> Result<Option<StoredCredentials>, ConfigError> {
        let text = match fs::read(&self.file) {
            Ok(text) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(ConfigError::read(&self.file, error)),
        };
        Ok(serde_json::from_slice(&text).ok())
    }

    /// Replaces the stored login. Readers see the old file or the new one, never a partial one.
    pub fn save_api_key(&self, key: &SecretText) -> Result<(), ConfigError> {
        self.save(&StoredCredentials { api_key: Some(key.reveal().to_owned()), chatgpt: None })
    }

    /// Replaces the stored login.
    pub fn save_tokens(&self, tokens: &ChatgptTokens) -> Result<(), ConfigError> {
        let text = |secret: &SecretText| secret.reveal().to_owned();
        let chatgpt = StoredTokens {
            id_token: text(&tokens.id_token),
            access_token: text(&tokens.access_token),
            refresh_token: text(&tokens.refresh_token),
            refreshed_at_ms: tokens.refreshed_at_ms,
        };
        self.save(&StoredCredentials { api_key: None, chatgpt: Some(chatgpt) })
    }

    fn save(&self, stored: &StoredCredentials) -> Result<(), ConfigError> {
        let mut text = serde_json::to_vec_pretty(stored)
            .map_err(|error| ConfigError::write(&self.file, io::Error::from(error)))?;
        text.push(b'\n');
        write_secret_file(&self.home, &self.file, &text)
    }

    /// Removes the login. True if there was a file.
    pub fn clear(&self) -> Result<bool, ConfigError> {
        match fs::remove_file(&self.file) {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(ConfigError::write(&self.file, error)),
        }
    }
}

/// Replaces a file of the state folder. The file and its new folders are for their owner only.
pub fn write_secret_file(home: &Home, file: &Path, text: &[u8]) -> Result<(), ConfigError> {
    home.create_state()?;
    let folder = file.parent().unwrap_or(home.state());
    create_private(folder).map_err(|error| ConfigError::write(folder, error))?;
    replace(file, text).map_err(|error| ConfigError::write(file, error))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes a temporary file and renames it.
fn replace(target: &Path, text: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let temporary = target.with_extension(format!("{}.{count}.tmp", std::process::id()));
    // Left by a process with our id that died: its mode is unknown, so it is not reused.
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
