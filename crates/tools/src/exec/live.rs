//! A command's live output for clients: whole characters, in pieces of a useful size, and limited. Never makes the
//! command wait.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use protocol::{CommandExecutionOutputDeltaNotification, ServerNotification};
use sandbox::{Chunk, OutputStream, Utf8Chunks};
use tokio::sync::{Notify, watch};

use super::setting::Setting;
use crate::BoxFuture;
use crate::files::shown::cut;

/// Limit of all pieces of one command. With the item's own text, a client gets less than a megabyte per command.
const MOST_BYTES: usize = 512 << 10;
/// Limit of one piece.
const PIECE_BYTES: usize = 8_192;
/// In bytes.
const LONGEST_CHARACTER: usize = 4;
const MOST_PIECES: usize = 10_000;
/// How long text is collected before it is sent. Later pieces are collected longer, so that the budget lasts for a day.
const GATHER: Duration = Duration::from_millis(20);
const GATHER_LATER: Duration = Duration::from_millis(500);
const QUICK_PIECES: usize = 500;
/// The last piece of a command that writes too much.
const ENOUGH: &str = "\n[There is more output than is shown while the command runs.]\n";

/// The buffer between the reader of the output and the task that notifies clients.
#[derive(Debug)]
pub(crate) struct Live {
    state: Mutex<LiveState>,
    news: Notify,
    /// Set when no further notification may be sent.
    quiet: watch::Sender<bool>,
}

#[derive(Debug)]
struct LiveState {
    stdout: Utf8Chunks,
    stderr: Utf8Chunks,
    /// Pieces; only the last one may still grow.
    waiting: VecDeque<String>,
    room: usize,
    is_complete: bool,
}

impl Live {
    pub(crate) fn new() -> Self {
        let decoder = || Utf8Chunks::new(usize::MAX);
        let (waiting, room) = (VecDeque::new(), MOST_BYTES);
        let state = LiveState { stdout: decoder(), stderr: decoder(), waiting, room, is_complete: false };
        Self { state: Mutex::new(state), news: Notify::new(), quiet: watch::Sender::new(false) }
    }

    pub(crate) fn push(&self, chunk: &Chunk) {
        let mut state = self.state();
        if state.room == 0 {
            return;
        }
        let decoder = match chunk.stream {
            OutputStream::Stdout => &mut state.stdout,
            OutputStream::Stderr => &mut state.stderr,
        };
        let text = decoder.push(&chunk.bytes).concat();
        state.add(&text);
        self.news.notify_one();
    }

    /// No further output.
    pub(crate) fn complete(&self) {
        let mut state = self.state();
        let rest = state.stdout.finish().concat() + &state.stderr.finish().concat();
        state.add(&rest);
        state.is_complete = true;
        self.news.notify_one();
    }

    /// Continues after all, with another attempt.
    pub(crate) fn reopen(&self) {
        self.state().is_complete = false;
    }

    /// Drops output that was not sent yet.
    pub(crate) fn silence(&self) {
        self.quiet.send_replace(true);
    }

    /// Sends all pieces in order, until the output is complete.
    pub(crate) async fn notify<'a>(&self, tell: impl Fn(String) -> BoxFuture<'a, ()>) {
        let mut quiet = self.quiet.subscribe();
        tokio::select! {
            biased;
            // The sender is owned by `self`, so this cannot fail.
            _ = quiet.wait_for(|quiet| *quiet) => {}
            () = self.notify_all(tell) => {}
        }
    }

    async fn notify_all<'a>(&self, tell: impl Fn(String) -> BoxFuture<'a, ()>) {
        let mut told = 0;
        while told < MOST_PIECES {
            let (piece, is_complete) = self.state().take();
            if !piece.is_empty() {
                told += 1;
                tell(piece).await;
            } else if is_complete {
                return;
            } else {
                self.news.notified().await;
                if !self.state().is_ready() {
                    tokio::time::sleep(if told < QUICK_PIECES { GATHER } else { GATHER_LATER }).await;
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        self.state.lock()
    }
}

impl LiveState {
    fn add(&mut self, text: &str) {
        if self.room == 0 {
            return;
        }
        let fits = cut(text, self.room);
        self.append(fits);
        self.room -= fits.len();
        if fits.len() < text.len() || self.room == 0 {
            self.append(ENOUGH);
            self.room = 0;
        }
    }

    fn append(&mut self, mut text: &str) {
        while !text.is_empty() {
            let last = match self.waiting.back_mut() {
                Some(last) if last.len() + LONGEST_CHARACTER <= PIECE_BYTES => last,
                _ => self.waiting.push_back_mut(String::new()),
            };
            let fits = cut(text, PIECE_BYTES - last.len());
            last.push_str(fits);
            text = &text[fits.len()..];
        }
    }

    fn is_ready(&self) -> bool {
        self.is_complete || self.waiting.len() > 1
    }

    fn take(&mut self) -> (String, bool) {
        (self.waiting.pop_front().unwrap_or_default(), self.is_complete)
    }
}

/// The notification for one piece of output.
pub(crate) fn delta(setting: &Setting, delta: String) -> ServerNotification {
    ServerNotification::CommandExecutionOutputDelta(CommandExecutionOutputDeltaNotification {
        thread_id: setting.thread_id.clone(),
        turn_id: setting.turn_id.clone(),
        item_id: setting.item_id(),
        delta,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn chunk(stream: OutputStream, bytes: &[u8]) -> Chunk {
        Chunk { stream, bytes: bytes.to_vec().into() }
    }

    async fn told(live: &Live) -> Vec<String> {
        let pieces = Arc::new(Mutex::new(Vec::new()));
        let keep = pieces.clone();
        live.notify(move |piece| {
            keep.lock().push(piece);
            Box::pin(std::future::ready(()))
        })
        .await;
        std::mem::take(&mut *pieces.lock())
    }

    #[tokio::test]
    async fn a_character_in_two_writes_is_one_character() {
        let live = Live::new();
        live.push(&chunk(OutputStream::Stdout, b"a\xc3"));
        live.push(&chunk(OutputStream::Stderr, b"!"));
        live.push(&chunk(OutputStream::Stdout, b"\xa4\xff\xe2\x82"));
        live.complete();
        assert_eq!(told(&live).await, ["a!ä\u{fffd}\u{fffd}"]);
    }

    #[tokio::test]
    async fn many_small_writes_are_few_pieces() {
        let live = Live::new();
        for _ in 0..20_000 {
            live.push(&chunk(OutputStream::Stdout, b"x"));
        }
        live.complete();
        let pieces = told(&live).await;
        assert_eq!((pieces.len(), pieces.concat().len()), (3, 20_000));
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
    }

    #[tokio::test]
    async fn a_flood_is_cut_off() {
        let live = Live::new();
        let block = "ä".repeat(32 * 1024);
        for _ in 0..1_000 {
            live.push(&chunk(OutputStream::Stdout, block.as_bytes()));
        }
        live.complete();
        let pieces = told(&live).await;
        let all = pieces.concat();
        assert!(all.len() <= MOST_BYTES + ENOUGH.len() && all.ends_with(ENOUGH));
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
    }

    #[tokio::test]
    async fn a_listener_that_never_responds_can_be_abandoned() {
        let live = Live::new();
        live.push(&chunk(OutputStream::Stdout, b"x"));
        live.complete();
        let telling = live.notify(|_| Box::pin(std::future::pending()));
        let silence = async {
            tokio::task::yield_now().await;
            live.silence();
        };
        tokio::join!(telling, silence);
    }
}
