//! Items in progress: redrawn while they grow, and printed once when they end.

use std::collections::VecDeque;
use std::time::Duration;

use super::TerminalState;
use super::facts::clock;
use crate::markdown::MarkdownStream;
use crate::rows::{Ink, ScreenRow, rows};
use crate::safe::{one_line, readable};

/// Rows of a running command's output that are shown.
const TAIL_ROWS: usize = 5;
/// Bytes of it that are kept for that.
const TAIL_BYTES: usize = 4_096;

#[derive(Debug)]
pub(super) struct LiveItem {
    pub(super) id: String,
    pub(super) began: Duration,
    pub(super) kind: LiveKind,
}

#[derive(Debug)]
pub(super) enum LiveKind {
    /// A message of the agent. Whole lines are printed as they come.
    Message {
        text: MarkdownStream,
        has_begun: bool,
    },
    Reasoning {
        text: String,
    },
    /// Anything with a name, and output that is shown by its end.
    Work {
        what: String,
        tail: String,
    },
}

/// The items of one thread: its own, or those of the agent that the user looks at.
#[derive(Debug, Default)]
pub(super) struct ShownItems {
    /// The agent's thread. None for the thread of the session.
    pub(super) agent: Option<String>,
    pub(super) live: LiveItems,
    /// Sent, and not yet told back by the server.
    pub(super) sent: VecDeque<String>,
    pub(super) plan: Vec<ScreenRow>,
    /// The review that was shown last.
    pub(super) review: Option<String>,
    pub(super) is_review_beginning: bool,
}

#[derive(Debug, Default)]
pub(super) struct LiveItems(Vec<LiveItem>);

impl LiveItems {
    pub(super) fn get(&mut self, id: &str) -> Option<&mut LiveItem> {
        self.0.iter_mut().find(|item| item.id == id)
    }

    pub(super) fn take(&mut self, id: &str) -> Option<LiveItem> {
        let at = self.0.iter().position(|item| item.id == id)?;
        Some(self.0.remove(at))
    }

    pub(super) fn add(&mut self, item: LiveItem) {
        self.take(&item.id);
        self.0.push(item);
    }

    pub(super) fn take_all(&mut self) -> Vec<LiveItem> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &LiveItem> {
        self.0.iter()
    }
}

impl TerminalState {
    pub(super) fn begin_live(&mut self, id: &str, kind: LiveKind) {
        self.items.live.add(LiveItem { id: id.to_owned(), began: self.now, kind });
    }

    pub(super) fn message_delta(&mut self, id: &str, delta: &str) {
        if self.items.live.get(id).is_none() {
            self.begin_live(id, LiveKind::Message { text: MarkdownStream::default(), has_begun: false });
        }
        let Some(LiveItem { kind: LiveKind::Message { text, has_begun }, .. }) = self.items.live.get(id)
        else {
            return;
        };
        let whole = text.push(delta);
        if whole.is_empty() {
            return;
        }
        let is_first = !std::mem::replace(has_begun, true);
        if is_first {
            self.say(whole);
        } else {
            self.print(whole);
        }
    }

    /// The last line of a message. The whole text, where nothing came before.
    pub(super) fn message_end(&mut self, id: &str, whole: &str) {
        let Some(LiveItem { kind: LiveKind::Message { mut text, has_begun }, .. }) = self.items.live.take(id)
        else {
            self.say(crate::markdown::markdown(whole));
            return;
        };
        let is_silent = !has_begun && text.unfinished().is_none();
        let last = if is_silent { crate::markdown::markdown(whole) } else { text.finish() };
        match has_begun {
            true => self.print(last),
            false if last.is_empty() => {}
            false => self.say(last),
        }
    }

    pub(super) fn output_delta(&mut self, id: &str, delta: &str) {
        let Some(LiveItem { kind: LiveKind::Work { tail, .. }, .. }) = self.items.live.get(id) else {
            return;
        };
        tail.push_str(delta);
        if tail.len() > 2 * TAIL_BYTES {
            let from = tail.len() - TAIL_BYTES;
            let from = (from..tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
            tail.drain(..from);
        }
    }

    pub(super) fn reasoning_delta(&mut self, id: &str, delta: &str) {
        if self.items.live.get(id).is_none() {
            self.begin_live(id, LiveKind::Reasoning { text: String::new() });
        }
        if let Some(LiveItem { kind: LiveKind::Reasoning { text }, .. }) = self.items.live.get(id) {
            text.push_str(delta);
        }
    }

    /// Items that never ended are printed as they are.
    pub(super) fn flush_live(&mut self) {
        for item in self.items.live.take_all() {
            match item.kind {
                LiveKind::Message { mut text, has_begun } => {
                    let last = text.finish();
                    match has_begun {
                        true => self.print(last),
                        false if last.is_empty() => {}
                        false => self.say(last),
                    }
                }
                LiveKind::Work { what, .. } => {
                    let mark = self.glyphs.bad;
                    self.say(vec![ScreenRow::new(
                        Ink::Careful,
                        format!("{mark} {} (no end was told)", one_line(&what)),
                    )]);
                }
                LiveKind::Reasoning { .. } => {}
            }
        }
    }

    /// The rows of items in progress, for the live region.
    pub(super) fn live_rows(&self) -> Vec<ScreenRow> {
        let mut shown = Vec::new();
        for item in self.items_in_view().live.iter() {
            match &item.kind {
                LiveKind::Message { text, .. } => shown.extend(text.unfinished()),
                LiveKind::Reasoning { text } => {
                    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("thinking");
                    shown.push(ScreenRow::new(Ink::Faint, one_line(&last.replace("**", ""))));
                }
                LiveKind::Work { what, tail } => {
                    let time = clock(self.now.saturating_sub(item.began));
                    let head = ScreenRow::new(Ink::Busy, format!("{} ", self.glyphs.busy))
                        .with(Ink::Plain, one_line(what))
                        .with(Ink::Faint, format!(" {time}"));
                    shown.push(head);
                    shown.extend(self.tail(tail));
                }
            }
        }
        shown.extend(self.agent_rows());
        shown
    }

    fn tail(&self, output: &str) -> Vec<ScreenRow> {
        let output = readable(output);
        let lines = rows(Ink::Faint, &output);
        let from = lines.len().saturating_sub(TAIL_ROWS);
        let mark = format!("  {} ", self.glyphs.output);
        let marked = |row: &ScreenRow| {
            let mut marked = ScreenRow::new(Ink::Faint, &mark);
            row.parts.iter().for_each(|part| marked.push(part.ink, &part.text));
            marked
        };
        lines[from..].iter().map(marked).collect()
    }
}
