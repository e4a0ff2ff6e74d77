//! Tables for people: columns as wide as their longest cell, the last one as long as it is.

use std::fmt::Write as _;

use crate::terminal::clean;

/// A longer cell is cut.
const MAX_CELL: usize = 60;

pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let cells: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| shortened(cell)).collect()).collect();
    let width = |column: usize| {
        let longest = cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        longest.unwrap_or(0).max(head.get(column).map_or(0, |title| title.len()))
    };
    let mut text = String::new();
    let titles: Vec<String> = head.iter().map(|title| (*title).to_owned()).collect();
    for row in std::iter::once(&titles).chain(&cells) {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column + 1 == row.len() {
                line.push_str(cell);
            } else {
                // Writing to a text cannot fail.
                let _ = write!(line, "{cell:<width$}  ", width = width(column));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// One line without control characters.
fn shortened(cell: &str) -> String {
    let line = clean(&cell.split_whitespace().collect::<Vec<_>>().join(" ")).to_string();
    match line.chars().count() > MAX_CELL {
        true => line.chars().take(MAX_CELL - 1).chain(['…']).collect(),
        false => line,
    }
}

/// How long ago, in one word.
pub(crate) fn age(since_ms: i64, now_ms: i64) -> String {
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
        let shown = table(&["ID", "WHAT", "REST"], &rows);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines[0].starts_with("ID       WHAT"), "{shown}");
        assert_eq!(lines[0].find("REST"), lines[2].find("end"), "{shown}");
        assert!(!shown.contains('\x1b') && lines[1].ends_with('…'), "{shown}");
    }

    #[test]
    fn ages_are_one_word() {
        let shown: Vec<String> =
            [5, 65, 7_300, 400_000].iter().map(|seconds| age(0, seconds * 1_000)).collect();
        assert_eq!(shown, ["5s", "1m", "2h", "4d"]);
    }
}
