//! Writes a tar in the GNU format, which GNU tar, busybox and BSD tar all read.

use std::io::{self, Read, Write};

use super::BLOCK;
use super::header::{self, FOLDER, LONG_LINK, LONG_NAME, REGULAR, SYMLINK};

#[derive(Debug)]
pub(crate) struct TarWriter<W> {
    to: W,
    /// Bytes written so far.
    pub(crate) written: u64,
}

impl<W: Write> TarWriter<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, written: 0 }
    }

    pub(crate) fn folder(&mut self, path: &[u8], mode: u32, modified_s: u64) -> io::Result<()> {
        self.entry(FOLDER, &[path, b"/"].concat(), b"", mode, 0, modified_s)
    }

    pub(crate) fn symlink(&mut self, path: &[u8], target: &[u8], modified_s: u64) -> io::Result<()> {
        self.entry(SYMLINK, path, target, 0o777, 0, modified_s)
    }

    /// A file of exactly this size: one that has grown is cut, one that has shrunk is an error.
    pub(crate) fn file(
        &mut self,
        path: &[u8],
        mode: u32,
        size: u64,
        modified_s: u64,
        content: impl Read,
    ) -> io::Result<()> {
        self.entry(REGULAR, path, b"", mode, size, modified_s)?;
        let copied = io::copy(&mut content.take(size), &mut self.to)?;
        self.written += copied;
        if copied != size {
            return Err(io::Error::other("the file became shorter while it was read"));
        }
        self.pad()
    }

    /// The two empty blocks at the end.
    pub(crate) fn finish(mut self) -> io::Result<(W, u64)> {
        self.put(&[0; 2 * BLOCK])?;
        self.to.flush()?;
        Ok((self.to, self.written))
    }

    fn entry(
        &mut self,
        kind: u8,
        name: &[u8],
        target: &[u8],
        mode: u32,
        size: u64,
        modified_s: u64,
    ) -> io::Result<()> {
        for (long, text) in [(LONG_NAME, name), (LONG_LINK, target)] {
            if text.len() >= 100 {
                self.put(&header::write(long, b"././@LongLink", b"", 0, text.len() as u64 + 1, 0))?;
                self.put(text)?;
                self.put(&[0])?;
                self.pad()?;
            }
        }
        self.put(&header::write(kind, name, target, mode, size, modified_s))
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn pad(&mut self) -> io::Result<()> {
        let over = usize::try_from(self.written % BLOCK as u64).unwrap_or(0);
        match over {
            0 => Ok(()),
            _ => self.put(&[0; BLOCK][over..]),
        }
    }
}
