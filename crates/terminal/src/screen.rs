//! The bytes for the terminal: lines that stay, and below them a small region that is drawn again and again. No other
//! screen is opened, so that the terminal's own scrollback is the transcript.

use std::fmt::Write as _;

use crate::rows::ScreenRow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenSize {
    pub columns: usize,
    pub rows: usize,
}

impl ScreenSize {
    pub fn of_terminal() -> Self {
        let (columns, rows) = crossterm::terminal::size().unwrap_or((80, 24));
        Self { columns: usize::from(columns).max(1), rows: usize::from(rows).max(1) }
    }
}

/// The part at the bottom that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveRegion {
    /// Each fits the width.
    pub(crate) rows: Vec<ScreenRow>,
    /// Row and column.
    pub(crate) cursor: (usize, usize),
}

/// The abilities of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScreenStyle {
    pub has_colours: bool,
    /// Letters and signs of ASCII alone.
    pub is_ascii: bool,
    /// The cursor can be moved. Else there is no region, and lines are only added.
    pub can_redraw: bool,
}

#[derive(Debug)]
pub(crate) struct ScreenWriter {
    style: ScreenStyle,
    drawn: LiveRegion,
}

impl ScreenWriter {
    pub(crate) fn new(style: ScreenStyle) -> Self {
        Self { style, drawn: LiveRegion::default() }
    }

    /// Adds lines above the region and draws the region again. Nothing to do gives nothing.
    pub(crate) fn frame(&mut self, added: &[ScreenRow], region: LiveRegion, size: ScreenSize) -> String {
        if !self.style.can_redraw {
            return self.plain(added, size);
        }
        if added.is_empty() && region == self.drawn {
            return String::new();
        }
        let mut out = String::from("\u{1b}[?2026h\u{1b}[?25l");
        self.erase(&mut out, size);
        self.lines(added, size, &mut out);
        for (number, row) in region.rows.iter().enumerate() {
            if number > 0 {
                out.push_str("\r\n");
            }
            row.paint(self.style.has_colours, &mut out);
        }
        let below = region.rows.len().saturating_sub(1 + region.cursor.0);
        if below > 0 {
            let _ = write!(out, "\u{1b}[{below}A");
        }
        out.push('\r');
        if region.cursor.1 > 0 {
            let _ = write!(out, "\u{1b}[{}C", region.cursor.1);
        }
        out.push_str("\u{1b}[?25h\u{1b}[?2026l");
        self.drawn = region;
        out
    }

    /// Removes the region for good; the cursor stands at the left edge below the last line.
    pub(crate) fn finish(&mut self, added: &[ScreenRow], size: ScreenSize) -> String {
        if !self.style.can_redraw {
            return self.plain(added, size);
        }
        let mut out = String::new();
        self.erase(&mut out, size);
        self.lines(added, size, &mut out);
        self.drawn = LiveRegion::default();
        out
    }

    fn plain(&self, added: &[ScreenRow], size: ScreenSize) -> String {
        let mut out = String::new();
        self.lines(added, size, &mut out);
        out.replace("\r\n", "\n")
    }

    fn lines(&self, added: &[ScreenRow], size: ScreenSize, out: &mut String) {
        for row in added.iter().flat_map(|row| row.wrapped(size.columns)) {
            row.paint(self.style.has_colours, out);
            out.push_str("\r\n");
        }
    }

    /// Goes to the beginning of the region and clears from there. A terminal that became narrower has broken the rows
    /// that no longer fit, so they are counted by the width of now.
    fn erase(&self, out: &mut String, size: ScreenSize) {
        let columns = size.columns.max(1);
        let height = |row: &ScreenRow| row.width().max(1).div_ceil(columns);
        let above: usize = self.drawn.rows.iter().take(self.drawn.cursor.0).map(height).sum();
        let above = above + self.drawn.cursor.1 / columns;
        out.push('\r');
        if above > 0 {
            let _ = write!(out, "\u{1b}[{}A", above.min(size.rows.saturating_sub(1)));
        }
        // Not from the corner of the screen: tmux keeps in its scrollback what is cleared from there.
        out.push_str("\u{1b}[K\u{1b}[C\u{1b}[J\r");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: ScreenStyle = ScreenStyle { has_colours: false, is_ascii: false, can_redraw: true };
    const SIZE: ScreenSize = ScreenSize { columns: 10, rows: 5 };

    fn region(rows: &[&str], cursor: (usize, usize)) -> LiveRegion {
        LiveRegion { rows: rows.iter().map(ScreenRow::plain).collect(), cursor }
    }

    fn bare(frame: &str) -> String {
        ["\u{1b}[?2026h", "\u{1b}[?25l", "\u{1b}[?25h", "\u{1b}[?2026l"]
            .iter()
            .fold(frame.to_owned(), |text, code| text.replace(code, ""))
    }

    #[test]
    fn lines_are_added_above_the_region() {
        let mut screen = ScreenWriter::new(STYLE);
        let first = screen.frame(&[], region(&["> a", "status"], (0, 3)), SIZE);
        assert_eq!(bare(&first), "\r\u{1b}[K\u{1b}[C\u{1b}[J\r> a\r\nstatus\u{1b}[1A\r\u{1b}[3C");
        let again = screen.frame(&[], region(&["> a", "status"], (0, 3)), SIZE);
        assert_eq!(again, "", "nothing changed");
        let more = screen.frame(&[ScreenRow::plain("said")], region(&["x", "> a"], (1, 3)), SIZE);
        assert_eq!(bare(&more), "\r\u{1b}[K\u{1b}[C\u{1b}[J\rsaid\r\nx\r\n> a\r\u{1b}[3C");
        let last = screen.frame(&[], region(&["> "], (0, 2)), SIZE);
        assert_eq!(bare(&last), "\r\u{1b}[1A\u{1b}[K\u{1b}[C\u{1b}[J\r> \r\u{1b}[2C");
        assert_eq!(screen.finish(&[ScreenRow::plain("bye")], SIZE), "\r\u{1b}[K\u{1b}[C\u{1b}[J\rbye\r\n");
    }

    #[test]
    fn rows_that_a_narrower_terminal_broke_are_counted() {
        let mut screen = ScreenWriter::new(STYLE);
        screen.frame(&[], region(&["1234567890", "> abcdefg"], (1, 9)), SIZE);
        let narrow = ScreenSize { columns: 4, rows: 9 };
        let frame = screen.frame(&[], region(&["1"], (0, 0)), narrow);
        // Three rows of the first, and two of the second before the cursor.
        assert!(bare(&frame).starts_with("\r\u{1b}[5A\u{1b}[K\u{1b}[C\u{1b}[J\r"), "{frame:?}");
    }

    #[test]
    fn a_dumb_terminal_gets_lines_alone() {
        let mut screen = ScreenWriter::new(ScreenStyle { can_redraw: false, ..STYLE });
        assert_eq!(screen.frame(&[ScreenRow::plain("a b")], region(&["> "], (0, 2)), SIZE), "a b\n");
    }
}
