//! Diffs in colours.

use crate::rows::{Ink, ScreenRow};
use crate::safe::readable;

/// The rows of a unified diff, at most so many.
pub(crate) fn diff(text: &str, most: usize) -> Vec<ScreenRow> {
    let text = readable(text);
    let count = text.lines().count();
    let mut rows: Vec<ScreenRow> = text.lines().take(most).map(line).collect();
    if count > most {
        rows.push(ScreenRow::new(Ink::Faint, format!("... {} more lines; /diff shows all", count - most)));
    }
    rows
}

fn line(line: &str) -> ScreenRow {
    let ink = match line.chars().next() {
        Some('+') if !line.starts_with("+++ ") => Ink::Good,
        Some('-') if !line.starts_with("--- ") => Ink::Bad,
        Some('@') => Ink::Busy,
        Some(' ') | None => Ink::Plain,
        _ => Ink::Faint,
    };
    ScreenRow::new(ink, line).hanging(1).literal()
}

/// How many lines came and went.
pub(crate) fn counts(text: &str) -> (usize, usize) {
    let count = |mark: char, head: &str| {
        text.lines().filter(|line| line.starts_with(mark) && !line.starts_with(head)).count()
    };
    (count('+', "+++ "), count('-', "--- "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_ink_of_their_mark() {
        let text = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n same\n";
        let inks: Vec<Ink> = diff(text, 99).iter().map(|row| row.parts[0].ink).collect();
        assert_eq!(inks, [Ink::Faint, Ink::Faint, Ink::Busy, Ink::Bad, Ink::Good, Ink::Plain]);
        assert_eq!(counts(text), (1, 1));
    }

    #[test]
    fn long_ones_are_cut() {
        let rows = diff("+a\n+b\n+c\n", 2);
        assert_eq!(rows.last().map(ScreenRow::text).as_deref(), Some("... 1 more lines; /diff shows all"));
    }
}
