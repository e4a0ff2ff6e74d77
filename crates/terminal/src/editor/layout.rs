//! Where the typed text stands on the screen.

use unicode_segmentation::UnicodeSegmentation;

use super::InputEditor;
use crate::rows::{Ink, ScreenRow, width};

/// Rows that fit, and where the cursor is among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct InputLayout {
    pub(crate) rows: Vec<ScreenRow>,
    pub(crate) cursor: (usize, usize),
}

impl InputLayout {
    /// `mark` stands before the first line; the others are moved in by its width. Of many rows those around the
    /// cursor are shown.
    pub(crate) fn new(editor: &InputEditor, mark: &ScreenRow, columns: usize, most_rows: usize) -> Self {
        let margin = mark.width();
        // One column is left free, for a cursor behind the last character.
        let room = columns.saturating_sub(margin + 1).max(2);
        let mut layout = Self::default();
        let mut at = 0;
        for line in editor.text().split('\n') {
            layout.line(editor, line, at, room);
            at += line.len() + 1;
        }
        let head = |row: usize| if row == 0 { mark.clone() } else { ScreenRow::plain(" ".repeat(margin)) };
        let with_head = |(number, row): (usize, ScreenRow)| {
            let mut whole = head(number);
            row.parts.iter().for_each(|part| whole.push(part.ink, &part.text));
            whole
        };
        layout.rows = layout.rows.into_iter().enumerate().map(with_head).collect();
        layout.cursor.1 += margin;
        layout.keep(most_rows.max(1));
        layout
    }

    fn line(&mut self, editor: &InputEditor, line: &str, start: usize, room: usize) {
        let mut row = ScreenRow::default();
        let mut used = 0;
        for (offset, cluster) in line.grapheme_indices(true) {
            let shown = match cluster {
                _ if editor.is_secret => "*",
                "\t" => "    ",
                cluster => cluster,
            };
            let needed = width(shown);
            if used + needed > room {
                self.rows.push(std::mem::take(&mut row));
                used = 0;
            }
            if start + offset == editor.cursor() {
                self.cursor = (self.rows.len(), used);
            }
            row.push(Ink::Plain, shown);
            used += needed;
        }
        if start + line.len() == editor.cursor() {
            self.cursor = (self.rows.len(), used);
        }
        self.rows.push(row);
    }

    fn keep(&mut self, most: usize) {
        if self.rows.len() <= most {
            return;
        }
        let first = self.cursor.0.saturating_sub(most - 1).min(self.rows.len() - most);
        self.rows.drain(..first);
        self.rows.truncate(most);
        self.cursor.0 -= first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str, columns: usize, most: usize) -> (Vec<String>, (usize, usize)) {
        let mut editor = InputEditor::default();
        editor.set(text);
        let layout = InputLayout::new(&editor, &ScreenRow::plain("> "), columns, most);
        (layout.rows.iter().map(ScreenRow::text).collect(), layout.cursor)
    }

    #[test]
    fn the_cursor_is_behind_the_last_character() {
        assert_eq!(layout("", 10, 9), (vec!["> ".to_owned()], (0, 2)));
        assert_eq!(layout("ab", 10, 9).1, (0, 4));
        assert_eq!(layout("漢字", 10, 9).1, (0, 6));
        assert_eq!(layout("ab\n", 10, 9), (vec!["> ab".to_owned(), "  ".to_owned()], (1, 2)));
    }

    #[test]
    fn long_lines_go_on_below() {
        assert_eq!(layout("abcdefgh", 7, 9), (vec!["> abcd".to_owned(), "  efgh".to_owned()], (1, 6)));
        assert_eq!(layout("漢字漢", 7, 9).0, ["> 漢字", "  漢"]);
    }

    #[test]
    fn of_many_rows_the_last_are_shown() {
        assert_eq!(layout("a\nb\nc\nd", 9, 2), (vec!["  c".to_owned(), "  d".to_owned()], (1, 3)));
    }

    #[test]
    fn secrets_are_stars() {
        let mut editor = InputEditor { is_secret: true, ..InputEditor::default() };
        editor.set("häß");
        assert_eq!(InputLayout::new(&editor, &ScreenRow::plain("> "), 20, 3).rows[0].text(), "> ***");
    }
}
