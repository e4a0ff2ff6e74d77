//! Tables for people: columns as wide as their longest cell. On a screen they fit its width; a pipe gets all of them.

use std::io::IsTerminal;

use crate::safe::clean;
use crate::width::{cut, cut_front, display_width};

/// A longer cell is cut.
const MAX_CELL: usize = 60;
/// On a narrow screen no column gets less than this.
const LEAST: usize = 6;
const BETWEEN: &str = "  ";

/// The columns of the screen that standard output is.
fn screen() -> Option<usize> {
    std::io::stdout().is_terminal().then(crate::width::columns)
}

/// As much of an id as tells threads apart: the time it was made at, to the millisecond.
pub fn short_id(id: &str) -> &str {
    const CHARACTERS: usize = 13;
    id.get(..CHARACTERS).unwrap_or(id)
}

/// An id as a table shows it: on a screen as much as tells it from others, which every command takes.
pub fn shown_id(id: &str) -> String {
    if screen().is_some() { short_id(id).to_owned() } else { id.to_owned() }
}

pub fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    fitted(head, rows, screen())
}

fn fitted(head: &[&str], rows: &[Vec<String>], screen: Option<usize>) -> String {
    let mut lines: Vec<Vec<String>> = vec![head.iter().map(|title| (*title).to_owned()).collect()];
    lines.extend(rows.iter().map(|row| row.iter().map(|cell| one_line(cell)).collect()));
    let text = head.iter().skip(1).map(|_| TableColumn::Text { least: LEAST });
    aligned(&lines, &[TableColumn::Whole].into_iter().chain(text).collect::<Vec<_>>(), screen)
}

/// How a column takes its part in a table that has to fit the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableColumn {
    /// Never cut.
    Whole,
    /// Never cut, and its cells end in line.
    Number,
    /// Cut at its end.
    Text { least: usize },
    /// Cut at its beginning: the end of a path says more.
    Path { least: usize },
}

impl TableColumn {
    fn least(self) -> Option<usize> {
        match self {
            Self::Whole | Self::Number => None,
            Self::Text { least } | Self::Path { least } => Some(least),
        }
    }

    fn padded(self, cell: &str, width: usize) -> String {
        let cell = if let Self::Path { .. } = self { cut_front(cell, width) } else { cut(cell, width) };
        let space = " ".repeat(width.saturating_sub(display_width(&cell)));
        if self == Self::Number { space + &cell } else { cell + &space }
    }
}

/// Rows of cells, the headings among them, as lines. On a screen of so many columns they fit, where they can.
pub fn aligned(rows: &[Vec<String>], columns: &[TableColumn], screen: Option<usize>) -> String {
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| display_width(cell)).max();
    let mut widths: Vec<usize> = (0..columns.len()).map(|at| widest(at).unwrap_or(0)).collect();
    if let Some(screen) = screen {
        shrink(&mut widths, columns, screen);
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(columns).zip(&widths);
        let cells: Vec<String> = cells.map(|((cell, column), width)| column.padded(cell, *width)).collect();
        text.push_str(cells.join(BETWEEN).trim_end());
        text.push('\n');
    }
    text
}

/// Takes from the widest column that may be cut, until all fit or none has more to give.
fn shrink(widths: &mut [usize], columns: &[TableColumn], screen: usize) {
    let between = BETWEEN.len() * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + between > screen {
        let may_shrink = |at: &usize| columns[*at].least().is_some_and(|least| widths[*at] > least);
        let Some(widest) = (0..widths.len()).filter(may_shrink).max_by_key(|at| widths[*at]) else { return };
        widths[widest] -= 1;
    }
}

/// Bytes in the unit that leaves one to three digits before the point.
pub fn byte_size(bytes: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    if bytes < 1_000 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 9_995 && unit + 1 < units.len() {
        tenths /= 1_000;
        unit += 1;
    }
    match tenths {
        ..100 => format!("{}.{} {}", tenths / 10, tenths % 10, units[unit]),
        _ => format!("{} {}", tenths / 10, units[unit]),
    }
}

/// One line without control characters.
fn one_line(cell: &str) -> String {
    cut(&clean(&cell.split_whitespace().collect::<Vec<_>>().join(" ")), MAX_CELL)
}

/// How long ago, in one word.
pub fn age(since_ms: i64, now_ms: i64) -> String {
    let seconds = (now_ms - since_ms).max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_draws_on_the_terminal() {
        let rows = vec![
            vec!["a".to_owned(), "one\x1b[31m\ntwo".to_owned(), "x".repeat(80)],
            vec!["long id".to_owned(), String::new(), "end".to_owned()],
        ];
        let shown = fitted(&["ID", "WHAT", "REST"], &rows, None);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].starts_with("ID       WHAT"), "{shown}");
        assert_eq!(lines[0].find("REST"), lines[2].find("end"), "{shown}");
        assert!(!shown.contains('\x1b') && lines[1].ends_with('…'), "{shown}");
    }

    #[test]
    fn a_table_fits_the_screen() {
        let rows = vec![vec!["0199c0de-0001".to_owned(), "running".to_owned(), "x".repeat(80)]];
        for columns in [40, 60, 200] {
            let shown = fitted(&["ID", "STATE", "TASK"], &rows, Some(columns));
            assert!(shown.lines().all(|line| display_width(line) <= columns), "{columns}: {shown}");
            assert!(shown.contains("0199c0de-0001  running  xxx"), "{columns}: {shown}");
        }
    }

    #[test]
    fn sizes_have_few_digits() {
        let shown = [0, 999, 1_000, 9_949, 12_345, 999_400, 1_500_000, 23_456_789_000].map(byte_size);
        assert_eq!(shown, ["0 B", "999 B", "1.0 KB", "9.9 KB", "12 KB", "999 KB", "1.5 MB", "23 GB"]);
    }

    #[test]
    fn ages_are_one_word() {
        let shown: Vec<String> =
            [5, 65, 7_300, 400_000].iter().map(|seconds| age(0, seconds * 1_000)).collect();
        assert_eq!(shown, ["5s", "1m", "2h", "4d"]);
    }
}
