//! Rows of styled text. Colours come only from here; text from a server brings none of its own.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::safe::{is_obeyed, without_tabs};

/// The look of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Strong,
    Slanted,
    Faint,
    Good,
    Bad,
    Careful,
    Busy,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "\u{1b}[1m",
            Self::Slanted => "\u{1b}[3m",
            Self::Faint => "\u{1b}[2m",
            Self::Good => "\u{1b}[32m",
            Self::Bad => "\u{1b}[31m",
            Self::Careful => "\u{1b}[33m",
            Self::Busy => "\u{1b}[36m",
        }
    }
}

/// A text in one ink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InkedText {
    pub(crate) ink: Ink,
    pub(crate) text: String,
}

/// One line, of any length until it is wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ScreenRow {
    pub(crate) parts: Vec<InkedText>,
    /// How far lines are moved in that follow from wrapping.
    pub(crate) hang: usize,
    /// Cut at any character instead of between words: code and output.
    pub(crate) is_literal: bool,
}

impl ScreenRow {
    pub(crate) fn new(ink: Ink, text: impl AsRef<str>) -> Self {
        Self::default().with(ink, text)
    }

    pub(crate) fn plain(text: impl AsRef<str>) -> Self {
        Self::new(Ink::Plain, text)
    }

    #[must_use]
    pub(crate) fn with(mut self, ink: Ink, text: impl AsRef<str>) -> Self {
        self.push(ink, text.as_ref());
        self
    }

    #[must_use]
    pub(crate) fn hanging(mut self, hang: usize) -> Self {
        self.hang = hang;
        self
    }

    #[must_use]
    pub(crate) fn literal(mut self) -> Self {
        self.is_literal = true;
        self
    }

    /// A line break is a space here; other characters that a terminal obeys are left out.
    pub(crate) fn push(&mut self, ink: Ink, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = without_tabs(text).replace('\n', " ").replace(is_obeyed, "");
        match self.parts.last_mut() {
            Some(last) if last.ink == ink => last.text.push_str(&text),
            _ => self.parts.push(InkedText { ink, text }),
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.parts.iter().map(|part| part.text.width()).sum()
    }

    /// Without the inks.
    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }

    /// Broken into rows that fit. A row too narrow for anything still makes progress.
    pub(crate) fn wrapped(&self, width: usize) -> Vec<Self> {
        let width = width.max(1);
        if self.width() <= width {
            return vec![self.clone()];
        }
        let mut wrapper = Wrapper::new(width, self.hang.min(width.saturating_sub(2) / 2));
        for part in &self.parts {
            if self.is_literal {
                part.text.graphemes(true).for_each(|cluster| wrapper.word(part.ink, cluster));
            } else {
                part.text.split_word_bounds().for_each(|word| wrapper.word(part.ink, word));
            }
        }
        wrapper.finish()
    }

    /// The beginning that fits, with a mark where something is missing.
    pub(crate) fn cut(&self, width: usize, mark: &str) -> Self {
        if self.width() <= width {
            return self.clone();
        }
        let room = width.saturating_sub(mark.width());
        let mut short = Self::default();
        let mut used = 0;
        'all: for part in &self.parts {
            for cluster in part.text.graphemes(true) {
                used += cluster.width();
                if used > room {
                    break 'all;
                }
                short.push(part.ink, cluster);
            }
        }
        short.with(Ink::Faint, mark)
    }

    /// With our colours, or without any. The last place where a character that a terminal obeys is stopped.
    pub(crate) fn paint(&self, with_colours: bool, out: &mut String) {
        for part in &self.parts {
            let code = if with_colours { part.ink.code() } else { "" };
            out.push_str(code);
            out.extend(part.text.chars().filter(|c| !is_obeyed(*c)));
            if !code.is_empty() {
                out.push_str("\u{1b}[0m");
            }
        }
    }
}

/// The lines of a text, each a row.
pub(crate) fn rows(ink: Ink, text: &str) -> Vec<ScreenRow> {
    text.lines().map(|line| ScreenRow::new(ink, line)).collect()
}

/// Every row moved in.
pub(crate) fn indented(rows: Vec<ScreenRow>, by: usize) -> Vec<ScreenRow> {
    let margin = " ".repeat(by);
    let indent = |row: ScreenRow| {
        let mut moved = ScreenRow::plain(&margin).hanging(row.hang + by);
        moved.is_literal = row.is_literal;
        row.parts.iter().for_each(|part| moved.push(part.ink, &part.text));
        moved
    };
    rows.into_iter().map(indent).collect()
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

struct Wrapper {
    width: usize,
    hang: usize,
    done: Vec<ScreenRow>,
    row: ScreenRow,
    used: usize,
    is_fresh: bool,
}

impl Wrapper {
    fn new(width: usize, hang: usize) -> Self {
        Self { width, hang, done: Vec::new(), row: ScreenRow::default(), used: 0, is_fresh: false }
    }

    fn word(&mut self, ink: Ink, word: &str) {
        let needed = word.width();
        if self.used + needed <= self.width {
            // Spaces at which a line was broken are not shown.
            if self.is_fresh && word.trim().is_empty() && !word.is_empty() {
                return;
            }
            self.is_fresh = false;
            self.row.push(ink, word);
            self.used += needed;
        } else if word.trim().is_empty() {
            self.next_row();
        } else if needed <= self.width - self.hang {
            self.next_row();
            self.word(ink, word);
        } else {
            for cluster in word.graphemes(true) {
                if self.used + cluster.width() > self.width && !self.is_fresh && self.used > 0 {
                    self.next_row();
                }
                self.is_fresh = false;
                self.row.push(ink, cluster);
                self.used += cluster.width();
            }
        }
    }

    fn next_row(&mut self) {
        let mut row = std::mem::replace(&mut self.row, ScreenRow::plain(" ".repeat(self.hang)));
        if let Some(last) = row.parts.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        self.done.push(row);
        self.used = self.hang;
        self.is_fresh = true;
    }

    fn finish(mut self) -> Vec<ScreenRow> {
        if !self.is_fresh {
            self.done.push(self.row);
        }
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(row: &ScreenRow, width: usize) -> Vec<String> {
        row.wrapped(width).iter().map(ScreenRow::text).collect()
    }

    #[test]
    fn words_are_kept_whole_where_they_can_be() {
        let row = ScreenRow::plain("- the quick brown fox").hanging(2);
        assert_eq!(wrapped(&row, 12), ["- the quick", "  brown fox"]);
        assert_eq!(wrapped(&ScreenRow::plain("abcdefgh ij"), 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped(&ScreenRow::plain("ab cd").literal(), 4), ["ab c", "d"]);
        assert_eq!(wrapped(&ScreenRow::plain(""), 4), [""]);
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(wrapped(&ScreenRow::plain("漢字漢字"), 4), ["漢字", "漢字"]);
        assert_eq!(ScreenRow::plain("漢字漢字").cut(5, "…").text(), "漢字…");
        assert!(ScreenRow::plain("👩\u{200d}🚀x").wrapped(2).iter().all(|row| row.width() <= 2));
    }

    #[test]
    fn only_our_own_colours_are_painted() {
        let mut out = String::new();
        let mut row = ScreenRow::new(Ink::Bad, "a\u{1b}[2Jb");
        // As if somebody had gone around `push`.
        row.parts.push(InkedText { ink: Ink::Plain, text: "\u{1b}]0;x\u{7}".to_owned() });
        row.paint(true, &mut out);
        assert_eq!(out, "\u{1b}[31ma[2Jb\u{1b}[0m]0;x");
        out.clear();
        row.paint(false, &mut out);
        assert!(!out.contains('\u{1b}'));
    }

    #[test]
    fn no_width_is_too_small() {
        for width in 0..6 {
            let rows = ScreenRow::plain("ab 漢字 cdefgh").hanging(4).wrapped(width);
            assert!(rows.iter().all(|row| row.width() <= width.max(2)), "{width}: {rows:?}");
            let text: String = rows.iter().map(|row| row.text().replace(' ', "")).collect();
            assert_eq!(text, "ab漢字cdefgh");
        }
    }
}
