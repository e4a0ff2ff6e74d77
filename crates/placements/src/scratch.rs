//! A folder for this process alone, removed when it is dropped.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::error::PlacementError;

#[derive(Debug)]
pub(crate) struct ScratchDir(PathBuf);

impl ScratchDir {
    pub(crate) fn new() -> Result<Self, PlacementError> {
        let path = std::env::temp_dir().join(format!("oarlock-{}", &random_hex()?[..12]));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(PlacementError::io("making a temporary folder"))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 32 hexadecimal digits that nobody can guess.
pub(crate) fn random_hex() -> Result<String, PlacementError> {
    let mut bytes = [0; 16];
    let no_randomness = |_| PlacementError::invalid("random numbers", "this machine gives none");
    SystemRandom::new().fill(&mut bytes).map_err(no_randomness)?;
    Ok(HEXLOWER.encode(&bytes))
}
