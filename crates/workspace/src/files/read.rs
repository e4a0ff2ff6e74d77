//! Reading a whole file.

use std::io::Read;
use std::path::Path;

use rustix::io::Errno;

use super::FileError;
use crate::within::StepCount;
use crate::{ReadProblem, Reader};

/// Divisible by three, so that base64 chunks can be joined.
const PIECE_BYTES: usize = 384 << 10;

/// Passes a regular file to `take` in chunks; all but the last have the same length, a multiple of three. A file larger
/// than `max` is an error. Links are followed.
pub fn read_in_pieces(
    path: &Path,
    max: u64,
    steps: &StepCount,
    mut take: impl FnMut(&[u8]),
) -> Result<(), FileError> {
    let too_large = || FileError::TooLarge { path: path.to_owned(), max };
    let opened = open(path)?;
    if opened.metadata.len() > max {
        return Err(too_large());
    }
    // It may grow while it is read.
    let mut left = opened.file.take(max.saturating_add(1));
    let mut total = 0;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    loop {
        steps.step()?;
        piece.clear();
        let read = left.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece)?;
        total += read as u64;
        if total > max {
            return Err(too_large());
        }
        if read == 0 {
            return Ok(());
        }
        take(&piece);
    }
}

fn open(path: &Path) -> Result<crate::OpenedFile, FileError> {
    let reader = Reader::default();
    reader.open(path).map_err(|error| match error.problem {
        ReadProblem::NotAFile => match reader.find(path) {
            Ok(found) if found.metadata.is_dir() => Errno::ISDIR.into(),
            _ => FileError::NotAFile(path.to_owned()),
        },
        ReadProblem::Io(error) => error.into(),
        problem => FileError::Io(problem.to_string()),
    })
}
