//! Output of a client's command: sent in pieces, or kept for the response, up to a limit per stream.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::{CommandExecOutputDeltaNotification, CommandExecOutputStream};
use sandbox::{Output, OutputStream};
use tokio::time::{Instant, timeout_at};

use super::error::CommandExecError;
use futures_util::future::BoxFuture;

/// A shorter piece waits briefly for more, so that a program that writes single bytes does not cause a message for
/// each.
const SHORT_BYTES: usize = 4 * 1024;
/// The wait, too short to notice in a terminal.
const GATHERING: Duration = Duration::from_millis(2);
/// Limit of each stream in a response, whatever the client allows: all of it is in memory.
pub(super) const MAX_KEPT_BYTES: usize = 32 * 1024 * 1024;

/// Receives a command's output. The command waits while the future does.
#[derive(Clone)]
pub struct DeltaSink(Arc<dyn Fn(CommandExecOutputDeltaNotification) -> BoxFuture<'static, ()> + Send + Sync>);

impl DeltaSink {
    pub fn new(
        sink: impl Fn(CommandExecOutputDeltaNotification) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(sink))
    }
}

impl fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeltaSink")
    }
}

/// Sends output as it arrives.
pub(super) struct OutputNotifier {
    pub(super) process_id: String,
    pub(super) sink: DeltaSink,
}

impl OutputNotifier {
    /// Sends everything up to the limit, and reads on after that, so that the command is not blocked.
    pub(super) async fn notify_all(&self, output: &mut Output, cap_bytes: Option<u64>) {
        let mut caps = Caps::new(cap_bytes);
        let mut pieces = Pieces { output, held: None };
        while let Some(OutputPiece { stream, bytes }) = pieces.next().await {
            if let Some((bytes, cap_reached)) = caps.of(stream).take(&bytes) {
                let stream = match stream {
                    OutputStream::Stdout => CommandExecOutputStream::Stdout,
                    OutputStream::Stderr => CommandExecOutputStream::Stderr,
                };
                let delta_base64 = STANDARD.encode(bytes);
                let process_id = self.process_id.clone();
                let delta =
                    CommandExecOutputDeltaNotification { process_id, stream, delta_base64, cap_reached };
                (self.sink.0)(delta).await;
            }
        }
    }
}

/// The output kept for the response.
#[derive(Debug, Default)]
pub(super) struct KeptOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl KeptOutput {
    /// An error if the client wants all and there is more than a response can contain.
    pub(super) async fn read_all(
        &mut self,
        output: &mut Output,
        cap_bytes: Option<u64>,
    ) -> Result<(), CommandExecError> {
        let mut caps = Caps::new(cap_bytes);
        while let Some(chunk) = output.next().await {
            let Some((bytes, _)) = caps.of(chunk.stream).take(&chunk.bytes) else { continue };
            let kept = match chunk.stream {
                OutputStream::Stdout => &mut self.stdout,
                OutputStream::Stderr => &mut self.stderr,
            };
            if kept.len() + bytes.len() > MAX_KEPT_BYTES {
                let message = format!(
                    "the output is larger than {MAX_KEPT_BYTES} bytes; set a smaller outputBytesCap or \
                     streamStdoutStderr"
                );
                return Err(CommandExecError::Failed(message));
            }
            kept.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// Output and errors.
    pub(super) fn into_texts(self, cap_bytes: Option<u64>) -> (String, String) {
        let text = |bytes: Vec<u8>| {
            let is_cut = cap_bytes.is_some_and(|cap| bytes.len() as u64 >= cap);
            text(bytes, is_cut)
        };
        (text(self.stdout), text(self.stderr))
    }
}

/// Invalid UTF-8 is replaced. A character cut by the limit is left out.
fn text(mut bytes: Vec<u8>, is_cut: bool) -> String {
    if is_cut
        && let Some(last) = bytes.utf8_chunks().last()
        && std::str::from_utf8(last.invalid()).is_err_and(|error| error.error_len().is_none())
    {
        let unfinished = last.invalid().len();
        bytes.truncate(bytes.len() - unfinished);
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The remaining limit of each stream.
#[derive(Debug)]
struct Caps {
    stdout: Cap,
    stderr: Cap,
}

impl Caps {
    fn new(cap_bytes: Option<u64>) -> Self {
        let cap = || Cap { left: cap_bytes, is_reached: false };
        Self { stdout: cap(), stderr: cap() }
    }

    fn of(&mut self, stream: OutputStream) -> &mut Cap {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

#[derive(Debug)]
struct Cap {
    left: Option<u64>,
    is_reached: bool,
}

impl Cap {
    /// The part within the limit, and whether it is the last; `None` after that.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<(&'a [u8], bool)> {
        if self.is_reached {
            return None;
        }
        let Some(left) = &mut self.left else { return Some((bytes, false)) };
        let fits = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
        *left -= fits as u64;
        self.is_reached = *left == 0;
        Some((&bytes[..fits], self.is_reached))
    }
}

struct OutputPiece {
    stream: OutputStream,
    bytes: Vec<u8>,
}

/// Output in pieces of a useful size.
struct Pieces<'a> {
    output: &'a mut Output,
    /// Of the other stream, read while waiting for more of one.
    held: Option<sandbox::Chunk>,
}

impl Pieces<'_> {
    async fn next(&mut self) -> Option<OutputPiece> {
        let first = match self.held.take() {
            Some(chunk) => chunk,
            None => self.output.next().await?,
        };
        let mut piece = OutputPiece { stream: first.stream, bytes: first.bytes.to_vec() };
        let deadline = Instant::now() + GATHERING;
        while piece.bytes.len() < SHORT_BYTES {
            match timeout_at(deadline, self.output.next()).await {
                Ok(Some(more)) if more.stream == piece.stream => {
                    piece.bytes.extend_from_slice(&more.bytes);
                }
                Ok(Some(other)) => {
                    self.held = Some(other);
                    break;
                }
                Ok(None) | Err(_) => break,
            }
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cap_is_told_once_and_the_rest_is_dropped() {
        let taken = |cap: Option<u64>| {
            let mut cap = Caps::new(cap);
            let parts = ["abc", "def", "ghi"].map(|part| {
                cap.of(OutputStream::Stdout)
                    .take(part.as_bytes())
                    .map(|(bytes, is_last)| (String::from_utf8_lossy(bytes).into_owned(), is_last))
            });
            parts.into_iter().flatten().collect::<Vec<_>>()
        };
        let words = |words: &[(&str, bool)]| {
            words.iter().map(|(text, last)| ((*text).to_owned(), *last)).collect::<Vec<_>>()
        };
        assert_eq!(taken(None), words(&[("abc", false), ("def", false), ("ghi", false)]));
        assert_eq!(taken(Some(4)), words(&[("abc", false), ("d", true)]));
        assert_eq!(taken(Some(3)), words(&[("abc", true)]));
        assert_eq!(taken(Some(0)), words(&[("", true)]));
        assert_eq!(taken(Some(100)), words(&[("abc", false), ("def", false), ("ghi", false)]));
    }

    #[test]
    fn each_stream_has_its_own_cap() {
        let mut caps = Caps::new(Some(2));
        assert_eq!(caps.of(OutputStream::Stdout).take(b"abc"), Some((&b"ab"[..], true)));
        assert_eq!(caps.of(OutputStream::Stderr).take(b"x"), Some((&b"x"[..], false)));
        assert_eq!(caps.of(OutputStream::Stdout).take(b"d"), None);
    }

    #[test]
    fn a_character_that_the_cap_cuts_is_left_out() {
        let euro = "€".as_bytes();
        assert_eq!(text([b"a", &euro[..2]].concat(), true), "a");
        assert_eq!(text([b"a", &euro[..2]].concat(), false), "a\u{fffd}");
        assert_eq!(text([b"a", euro].concat(), true), "a€");
        assert_eq!(text(b"a\xff".to_vec(), true), "a\u{fffd}");
        assert_eq!(text(b"\xffa".to_vec(), true), "\u{fffd}a");
        assert_eq!(text(Vec::new(), true), "");
    }
}
