//! Splits a byte stream into lines of any length, arriving in any pieces, with any bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::bad_message::{BadKind, BadMessage};
use crate::id::Id;
use crate::line_buffer::{LineBuffer, LineTooLong};

#[derive(Debug, Clone, Copy)]
pub struct FrameLimits {
    /// Limit of a line, without its newline.
    pub max_frame_bytes: usize,
}

impl Default for FrameLimits {
    fn default() -> Self {
        Self { max_frame_bytes: 32 * 1024 * 1024 }
    }
}

/// Why there is no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a line is longer than {limit} bytes")]
    TooLong {
        limit: usize,
        /// The id of the request, if it is at the beginning of the line.
        id: Option<Id>,
    },
    /// The stream has ended with an error.
    #[error("reading failed")]
    Io(#[from] io::Error),
}

impl FrameError {
    /// The error to respond with, or the error that ended the stream.
    pub fn into_bad_message(self) -> Result<BadMessage, io::Error> {
        let message = self.to_string();
        match self {
            Self::TooLong { id, .. } => Ok(BadMessage::new(id, BadKind::TooLong, message)),
            Self::Io(error) => Err(error),
        }
    }
}

/// Reads frames: trimmed lines, without blank ones.
#[derive(Debug)]
pub struct FrameReader<R> {
    source: R,
    limit: usize,
    buffer: LineBuffer,
    ended: bool,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(source: R, limits: FrameLimits) -> Self {
        let limit = limits.max_frame_bytes;
        Self { source, limit, buffer: LineBuffer::new(limit), ended: false }
    }

    /// Changes the limit of a line from the next read on.
    pub fn set_limit(&mut self, max_frame_bytes: usize) {
        self.limit = max_frame_bytes;
        self.buffer.set_limit(max_frame_bytes);
    }

    /// The next frame, or `None` at the end of the stream. The last line may lack a newline. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<&[u8], FrameError>> {
        loop {
            match self.buffer.next(self.ended) {
                Some(Ok(frame)) => return Some(Ok(self.buffer.get(frame))),
                Some(Err(LineTooLong { id })) => {
                    return Some(Err(FrameError::TooLong { limit: self.limit, id }));
                }
                None if self.ended => return None,
                None => {}
            }
            match self.source.read_buf(self.buffer.room()).await {
                Ok(0) => self.ended = true,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The last line may be incomplete.
                    self.ended = true;
                    self.buffer = LineBuffer::new(self.limit);
                    return Some(Err(error.into()));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncWriteExt, ReadBuf, duplex, repeat};

    use super::*;
    use crate::line_buffer::KEPT_BYTES;

    const SMALL: FrameLimits = FrameLimits { max_frame_bytes: 16 };

    /// Everything a reader yields, one entry each.
    async fn read_all<R: AsyncRead + Unpin>(reader: &mut FrameReader<R>) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(frame) = reader.next().await {
            seen.push(match frame {
                Ok(frame) => String::from_utf8_lossy(frame).into_owned(),
                Err(FrameError::TooLong { limit, id }) => format!("too long: {limit} {id:?}"),
                Err(FrameError::Io(error)) => format!("failed: {error}"),
            });
        }
        seen
    }

    async fn check(limits: FrameLimits, input: &[u8], expected: &[&str]) {
        let whole = read_all(&mut FrameReader::new(input, limits)).await;
        assert_eq!(whole, expected);
        let in_pieces = read_all(&mut FrameReader::new(ByteByByte(input), limits)).await;
        assert_eq!(in_pieces, expected);
    }

    /// Yields its bytes one at a time, so that reads end at every position.
    struct ByteByByte<'a>(&'a [u8]);

    impl AsyncRead for ByteByByte<'_> {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some((first, rest)) = self.0.split_first() {
                into.put_slice(&[*first]);
                self.0 = rest;
            }
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn cuts_at_newlines() {
        check(SMALL, b"", &[]).await;
        check(SMALL, b"a\nbc\n", &["a", "bc"]).await;
        check(SMALL, b"a\r\nb\r\n", &["a", "b"]).await;
        check(SMALL, b"\n\n  \n \t\r\na\n\n", &["a"]).await;
        check(SMALL, b"\xef\xbb\xbfa\n\xef\xbb\xbf b \n", &["a", "b"]).await;
        check(SMALL, b"\xef\xbb\xbf\n\xef\xbb\xbf", &[]).await;
        check(SMALL, b"a\0\xff\nb\n", &["a\0\u{fffd}", "b"]).await;
    }

    #[tokio::test]
    async fn the_last_line_needs_no_newline() {
        check(SMALL, b"a\nb", &["a", "b"]).await;
        check(SMALL, b"a\nb\r", &["a", "b"]).await;
        check(SMALL, b"a\n  ", &["a"]).await;
    }

    #[tokio::test]
    async fn a_line_too_long_is_one_error() {
        check(SMALL, b"0123456789abcdef\na\n", &["0123456789abcdef", "a"]).await;
        check(SMALL, b"0123456789abcdefX\na\n", &["too long: 16 None", "a"]).await;
        check(SMALL, b"0123456789abcdefXYZ", &["too long: 16 None"]).await;
        let (long, two) = ([b'x'; 500], "too long: 16 None");
        check(SMALL, &[&long[..], b"\n", &long, b"\n", b"a"].concat(), &[two, two, "a"]).await;
    }

    #[tokio::test]
    async fn a_line_too_long_is_answered_with_its_id() {
        check(SMALL, b"{\"id\":7,\"method\":\"a\"}\n", &["too long: 16 Some(Integer(7))"]).await;
        let error = FrameError::TooLong { limit: 16, id: Some(Id::from(7)) };
        let bad = error.into_bad_message().unwrap();
        assert_eq!((bad.id, bad.message.as_str()), (Some(Id::from(7)), "a line is longer than 16 bytes"));
    }

    #[tokio::test]
    async fn a_line_without_end_takes_no_more_than_the_limit() {
        let limits = FrameLimits { max_frame_bytes: 1024 * 1024 };
        let endless = repeat(b'x').take(64 * 1024 * 1024);
        let mut reader = FrameReader::new(endless.chain(&b"\nnext\n"[..]), limits);
        assert!(matches!(reader.next().await, Some(Err(FrameError::TooLong { .. }))));
        assert!(reader.buffer.capacity() <= KEPT_BYTES, "given back before it is thrown away further");
        assert_eq!(reader.next().await.unwrap().unwrap(), b"next");
        assert!(reader.buffer.capacity() <= KEPT_BYTES);
    }

    #[tokio::test]
    async fn the_buffer_shrinks_after_a_long_line() {
        let (mut client, server) = duplex(KEPT_BYTES);
        let mut reader = FrameReader::new(server, FrameLimits::default());
        let long = vec![b'x'; 3_000_000];
        let write = async {
            client.write_all(&long).await.unwrap();
            client.write_all(b"\na\n").await.unwrap();
        };
        let read = async {
            assert_eq!(reader.next().await.unwrap().unwrap().len(), long.len());
            assert_eq!(reader.next().await.unwrap().unwrap(), b"a");
        };
        tokio::join!(write, read);
        drop(client);
        assert!(reader.next().await.is_none());
        assert!(reader.buffer.capacity() <= KEPT_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_read_loses_nothing() {
        let (mut client, server) = duplex(64);
        let mut reader = FrameReader::new(server, FrameLimits::default());
        for piece in ["{\"id\"", ":1,", "}"] {
            client.write_all(piece.as_bytes()).await.unwrap();
            let pause = std::time::Duration::from_secs(10);
            assert!(tokio::time::timeout(pause, reader.next()).await.is_err(), "no line yet");
        }
        client.write_all(b"\n").await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap(), b"{\"id\":1,}");
    }

    #[tokio::test]
    async fn a_failure_to_read_is_the_end() {
        struct Broken;
        impl AsyncRead for Broken {
            fn poll_read(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
                _: &mut ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                Poll::Ready(Err(io::Error::other("gone")))
            }
        }
        let mut reader = FrameReader::new((&b"a\nb"[..]).chain(Broken), FrameLimits::default());
        assert_eq!(read_all(&mut reader).await, ["a", "failed: gone"]);
    }
}
