//! Live lines at the end of the screen: running commands, their last output and a clock. They are removed before anything
//! lasting is written.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use protocol::ItemId;

use crate::safe::clean_line;
use crate::width::{cut, display_width};

/// The last lines of a command that runs.
const TAIL: usize = 3;
/// The most pieces of work that are shown at once.
const SHOWN: usize = 3;
/// The longest line that is kept while it grows.
const LONGEST: usize = 4_096;

/// A terminal whose lines can be written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveScreen {
    pub columns: usize,
    pub rows: usize,
    /// No characters beyond ASCII.
    pub is_ascii: bool,
}

/// The lines, and how many of them are on the screen.
#[derive(Debug)]
pub(crate) struct LiveBlock {
    pub(crate) screen: LiveScreen,
    /// Since the turn began.
    pub(crate) elapsed: Duration,
    work: Vec<LiveWork>,
    /// How wide the lines are that are on the screen.
    drawn: Vec<usize>,
    is_over: bool,
}

#[derive(Debug)]
struct LiveWork {
    id: ItemId,
    what: String,
    since: Duration,
    tail: VecDeque<String>,
    line: String,
}

impl LiveBlock {
    pub(crate) fn new(screen: LiveScreen) -> Self {
        Self { screen, elapsed: Duration::ZERO, work: Vec::new(), drawn: Vec::new(), is_over: false }
    }

    pub(crate) fn begin(&mut self, id: &ItemId, what: &str) {
        self.end(id);
        let what = clean_line(what);
        let (since, tail) = (self.elapsed, VecDeque::new());
        self.work.push(LiveWork { id: id.clone(), what, since, tail, line: String::new() });
    }

    pub(crate) fn end(&mut self, id: &ItemId) {
        self.work.retain(|work| work.id != *id);
    }

    /// A command has written something.
    pub(crate) fn output(&mut self, id: &ItemId, text: &str) {
        let Some(work) = self.work.iter_mut().find(|work| work.id == *id) else { return };
        for piece in text.split_inclusive(['\n', '\r']) {
            work.line.push_str(&clean_line(piece));
            if work.line.len() > LONGEST {
                work.line.clear();
            }
            if piece.ends_with(['\n', '\r']) {
                let line = std::mem::take(&mut work.line);
                if !line.trim().is_empty() {
                    work.tail.push_back(line.trim_end().to_owned());
                }
                if work.tail.len() > TAIL {
                    work.tail.pop_front();
                }
            }
        }
    }

    /// Nothing goes on any more.
    pub(crate) fn finish(&mut self) {
        self.is_over = true;
    }

    /// Takes the lines away.
    pub(crate) fn lift(&mut self, out: &mut impl Write) -> io::Result<()> {
        // A screen that has become narrower has broken them.
        let columns = self.screen.columns.max(1);
        let lines: usize =
            std::mem::take(&mut self.drawn).iter().map(|width| width.div_ceil(columns).max(1)).sum();
        match lines {
            0 => Ok(()),
            lines => write!(out, "\u{1b}[{lines}A\r\u{1b}[J"),
        }
    }

    /// `unfinished` is text that is being written.
    pub(crate) fn draw(&mut self, out: &mut impl Write, unfinished: &[String]) -> io::Result<()> {
        self.lift(out)?;
        if self.is_over {
            return Ok(());
        }
        let rows = self.rows(unfinished);
        self.drawn = rows.iter().map(|row| display_width(&without_colours(row))).collect();
        rows.iter().try_for_each(|row| writeln!(out, "{row}"))
    }

    fn rows(&self, unfinished: &[String]) -> Vec<String> {
        // A line that fills the last column would wrap on some terminals.
        let columns = self.screen.columns.saturating_sub(1);
        let (dot, bar, busy) = if self.screen.is_ascii { ("-", "|", "*") } else { ("·", "│", "•") };
        let mut rows: Vec<String> = Vec::new();
        for work in self.work.iter().take(SHOWN) {
            let clock = clock(self.elapsed.saturating_sub(work.since));
            rows.push(cut(&format!("{busy} {} {dot} {clock}", work.what), columns));
            let open = Some(&work.line).filter(|line| !line.trim().is_empty());
            let lines: Vec<&String> = work.tail.iter().chain(open).collect();
            let first = lines.len().saturating_sub(TAIL);
            rows.extend(lines[first..].iter().map(|line| cut(&format!("  {bar} {line}"), columns)));
        }
        if self.work.len() > SHOWN {
            rows.push(format!("  and {} more", self.work.len() - SHOWN));
        }
        let doing = match (self.work.is_empty(), unfinished.is_empty()) {
            (false, _) => "working",
            (true, false) => "answering",
            (true, true) => "thinking",
        };
        rows.push(cut(&format!("{busy} {doing} {dot} {} {dot} Ctrl-C stops", clock(self.elapsed)), columns));
        // Rows that have left the screen at the top cannot be erased.
        let room = self.screen.rows.saturating_sub(1).max(1);
        rows.drain(..rows.len().saturating_sub(room));
        let first = unfinished.len().saturating_sub(room - rows.len());
        unfinished[first..].iter().cloned().chain(rows).collect()
    }
}

/// Only codes of colours are in it.
fn without_colours(row: &str) -> String {
    let mut parts = row.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once('m').map_or(part, |(_, text)| text));
    [first].into_iter().chain(rest.map(str::to_owned)).collect()
}

/// As a clock that ticks in seconds shows it.
fn clock(elapsed: Duration) -> String {
    match elapsed.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(is_ascii: bool) -> LiveBlock {
        LiveBlock::new(LiveScreen { columns: 40, rows: 24, is_ascii })
    }

    fn shown(block: &mut LiveBlock, unfinished: &[&str]) -> String {
        let mut out = Vec::new();
        let unfinished: Vec<String> = unfinished.iter().map(|line| (*line).to_owned()).collect();
        assert!(block.draw(&mut out, &unfinished).is_ok());
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_clock_a_command_and_its_last_lines() {
        let mut block = block(false);
        assert_eq!(shown(&mut block, &[]), "• thinking · 0 s · Ctrl-C stops\n");
        block.elapsed = Duration::from_secs(3);
        let id = ItemId::new("c");
        block.begin(&id, "run cargo test --workspace --all-targets");
        block.output(&id, "one\ntwo\n\nthr");
        block.output(&id, "ee\nfour\u{1b}[2J\nfi");
        block.elapsed = Duration::from_secs(75);
        assert_eq!(
            shown(&mut block, &[]),
            "\u{1b}[1A\r\u{1b}[J• run cargo test --workspace --all-tar…\n  │ three\n  │ four[2J\n  │ fi\n\
             • working · 1 min 15 s · Ctrl-C stops\n"
        );
        block.end(&id);
        assert_eq!(
            shown(&mut block, &["an answ"]),
            "\u{1b}[5A\r\u{1b}[Jan answ\n• answering · 1 min 15 s · Ctrl-C stops\n"
        );
        block.finish();
        assert_eq!(shown(&mut block, &[]), "\u{1b}[2A\r\u{1b}[J");
        assert_eq!(shown(&mut block, &[]), "");
    }

    #[test]
    fn only_what_is_on_the_screen_is_taken_away() {
        let mut block = block(false);
        block.screen.rows = 4;
        let long: Vec<String> = (0..9).map(|number| format!("line {number}")).collect();
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert_eq!(shown(&mut block, &long), "line 7\nline 8\n• answering · 0 s · Ctrl-C stops\n");
        let text = shown(&mut block, &["\u{1b}[1mtwelve chars\u{1b}[0m"]);
        assert!(text.starts_with("\u{1b}[3A\r\u{1b}[J"), "{text:?}");
        // 12 and 32 columns are 1 and 2 lines of a screen of 20.
        block.screen.columns = 20;
        let text = shown(&mut block, &[]);
        assert_eq!(text, "\u{1b}[3A\r\u{1b}[J• thinking · 0 s ·…\n");
    }

    #[test]
    fn ascii_stays_ascii_and_many_are_counted() {
        let mut block = block(true);
        for number in 0..5 {
            block.begin(&ItemId::new(format!("{number}")), "call x");
        }
        let text = shown(&mut block, &[]);
        assert!(text.is_ascii() && text.contains("  and 2 more\n"), "{text}");
    }
}
