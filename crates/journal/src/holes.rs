//! The written parts of a sparse file. A file can claim gigabytes that take no space on the disk and read as zeros.

use std::fs::File;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};

/// Below this size, reading zeros costs less than querying.
const WORTH_ASKING: u64 = 1024 * 1024;

/// Limit of the parts. A file with more is read as it is.
const MOST_PIECES: usize = 10_000;

/// The written parts of the first `length` bytes, in order. All of it if the file system does not report holes.
pub(crate) fn written(file: &File, length: u64) -> Vec<Range<u64>> {
    let whole = || std::iter::once(0..length).filter(|whole| !whole.is_empty()).collect();
    if length < WORTH_ASKING {
        return whole();
    }
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < length {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) if start < length => start,
            // Only a hole from here on.
            Ok(_) | Err(rustix::io::Errno::NXIO) => break,
            Err(_) => return whole(),
        };
        let Ok(end) = seek(file, SeekFrom::Hole(start)) else { return whole() };
        // An invalid answer of a file system must not cause an endless loop.
        if end <= start || pieces.len() == MOST_PIECES {
            return whole();
        }
        pieces.push(start..end.min(length));
        at = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn holes_are_left_out() {
        let file = tempfile::tempfile().expect("a file");
        assert_eq!(written(&file, 0), []);
        file.write_all_at(b"begin", 0).expect("written");
        assert!(written(&file, 5).iter().eq([&(0..5)]));
        let far = 3 << 30;
        file.write_all_at(b"end", far).expect("written");
        let pieces = written(&file, far + 3);
        // A file system without holes reports all of it as written.
        if pieces.len() > 1 {
            assert_eq!(pieces[0].start, 0);
            assert_eq!(pieces.last().expect("a piece").end, far + 3);
            assert!(pieces.iter().map(|piece| piece.end - piece.start).sum::<u64>() < 1 << 20, "{pieces:?}");
            file.set_len(far * 2).expect("a hole at the end");
            assert_eq!(written(&file, far * 2).len(), pieces.len());
        }
    }
}
