//! Standard input as a stream that can be left.

use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::{io, thread};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc;

/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads on a thread of its own. A read that waits for input cannot be called off, and the process must end all the
/// same: nobody waits for this thread.
#[derive(Debug)]
pub struct Stdin {
    chunks: mpsc::Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    taken: usize,
}

impl Stdin {
    pub fn open() -> io::Result<Self> {
        Self::over(io::stdin())
    }

    fn over(mut source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = mpsc::channel(2);
        thread::Builder::new().name("stdin".to_owned()).spawn(move || {
            let mut buffer = vec![0; CHUNK_BYTES];
            loop {
                let chunk = match source.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(length) => Ok(buffer[..length].to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let failed = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { chunks, chunk: Vec::new(), taken: 0 })
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.taken == self.chunk.len() {
            match ready!(self.chunks.poll_recv(cx)) {
                Some(chunk) => {
                    self.chunk = chunk?;
                    self.taken = 0;
                }
                None => return Poll::Ready(Ok(())),
            }
        }
        let rest = &self.chunk[self.taken..];
        let length = rest.len().min(room.remaining());
        room.put_slice(&rest[..length]);
        self.taken += length;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn gives_all_bytes_then_the_end() {
        let source: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut read = Vec::new();
        let mut stdin = Stdin::over(io::Cursor::new(source.clone())).expect("a thread");
        stdin.read_to_end(&mut read).await.expect("bytes");
        assert!(read == source);
    }

    #[tokio::test]
    async fn a_failure_is_told_once() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
        }
        let mut stdin = Stdin::over(Broken).expect("a thread");
        assert!(stdin.read_u8().await.is_err_and(|error| error.to_string() == "gone"));
        assert!(stdin.read_u8().await.is_err_and(|error| error.kind() == io::ErrorKind::UnexpectedEof));
    }
}
