//! Threads as lines that fit the screen.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use journal::ThreadRow;
use runtime::{Clock, SystemClock};
pub(crate) use turn_view::short_id;
use turn_view::{TableColumn, aligned, byte_size, cut};

use crate::terminal::{clean, clean_line};

/// Where a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListPlace {
    /// In so many columns, with short ids.
    Screen(usize),
    /// A program reads it: nothing is cut off but what was said.
    Pipe,
}

impl ListPlace {
    pub(super) fn of(is_terminal: bool) -> Self {
        if is_terminal { Self::Screen(turn_view::columns()) } else { Self::Pipe }
    }

    fn columns(self) -> Option<usize> {
        if let Self::Screen(columns) = self { Some(columns) } else { None }
    }
}

const HEADINGS: [&str; 6] = ["THREAD", "USED", "SIZE", "MODEL", "ABOUT", "FOLDER"];
const COLUMNS: [TableColumn; 6] = [
    TableColumn::Whole,
    TableColumn::Whole,
    TableColumn::Number,
    TableColumn::Text { least: 12 },
    TableColumn::Text { least: 16 },
    TableColumn::Path { least: 10 },
];
/// The widths of two columns on a wide screen.
const MODEL: usize = 24;
const ABOUT: usize = 48;

/// The time of day where this machine is.
pub(super) fn now() -> Zoned {
    Timestamp::from_millisecond(SystemClock.now_ms()).unwrap_or_default().to_zoned(TimeZone::system())
}

/// Aligned, one thread per line.
pub(super) fn table(rows: &[ThreadRow], now: &Zoned, place: ListPlace) -> String {
    if rows.is_empty() {
        return "No threads. `oarlock exec \"...\"` starts one.\n".to_owned();
    }
    let mut cells = vec![HEADINGS.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| line(row, now, place).map(|cell| clean_line(&cell)).to_vec()));
    aligned(&cells, &COLUMNS, place.columns())
}

fn line(row: &ThreadRow, now: &Zoned, place: ListPlace) -> [String; 6] {
    let summary = &row.summary;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
    let id = match place {
        ListPlace::Screen(_) => short_id(row.thread_id.as_str()).to_owned(),
        ListPlace::Pipe => row.thread_id.to_string(),
    };
    [
        id,
        when(summary.updated_at_ms, now),
        byte_size(row.length),
        cut(&format!("{}/{}", or_unknown(&summary.model_provider), or_unknown(&summary.model)), MODEL),
        about(row),
        or_unknown(&summary.cwd),
    ]
}

/// The name of a thread, or how it began.
pub(super) fn about(row: &ThreadRow) -> String {
    let about = row.summary.name.clone().or_else(|| row.summary.preview.clone()).unwrap_or_default();
    let damaged = if row.is_damaged { " (damaged)" } else { "" };
    format!("{}{damaged}", shortened(&about))
}

/// As near as a person needs it, in local time.
pub(super) fn when(at_ms: i64, now: &Zoned) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return "?".to_owned() };
    let seconds = now.timestamp().as_second() - at.as_second();
    match seconds {
        ..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => at.to_zoned(local(now)).date().to_string(),
    }
}

fn local(now: &Zoned) -> TimeZone {
    now.time_zone().clone()
}

pub(super) fn shortened(text: &str) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    cut(&line, ABOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_near_or_a_date() {
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC) + jiff::Span::new().hours(48);
        let ago = |seconds: i64| when((2 * 86_400 - seconds) * 1_000, &now);
        assert_eq!(ago(-5), "just now");
        assert_eq!(ago(59), "just now");
        assert_eq!(ago(60), "1 min ago");
        assert_eq!(ago(7_200), "2 h ago");
        assert_eq!(ago(90_000), "1970-01-01");
    }

    #[test]
    fn long_and_loud_texts_fit_a_line() {
        assert_eq!(shortened("a\n b\u{1b}[2J\tc"), "a b[2J c");
        assert_eq!(shortened(&"x".repeat(60)).chars().count(), 48);
    }

    fn row(number: u64, about: &str, folder: &str) -> ThreadRow {
        let summary = journal::Summary {
            preview: Some(about.to_owned()),
            cwd: Some(folder.to_owned()),
            model: Some("gpt-5.2-codex".to_owned()),
            model_provider: Some("openai".to_owned()),
            ..journal::Summary::default()
        };
        ThreadRow {
            thread_id: protocol::ThreadId::new(format!("0199c0de-{number:04}-7000-8000-000000000000")),
            path: "/x".into(),
            is_archived: false,
            is_damaged: false,
            length: 12_345 * number,
            summary,
        }
    }

    #[test]
    fn tables_fit_the_screen_and_pipes_get_everything() {
        let now = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC) + jiff::Span::new().hours(48);
        let rows = [
            row(1, "say hello", "/home/me/project"),
            row(
                2,
                "why does the parser skip the last line of a file without a newline?",
                "/home/me/code/parser",
            ),
        ];
        let narrow = table(&rows, &now, ListPlace::Screen(80));
        assert_eq!(
            narrow,
            "THREAD         USED         SIZE  MODEL          ABOUT             FOLDER\n\
             0199c0de-0001  1970-01-01  12 KB  openai/gpt-5…  say hello         …e/me/project\n\
             0199c0de-0002  1970-01-01  24 KB  openai/gpt-5…  why does the pa…  …/code/parser\n"
        );
        let piped = table(&rows, &now, ListPlace::Pipe);
        assert!(piped.lines().skip(1).all(|line| line.contains("-7000-8000-")), "{piped}");
        assert!(piped.contains("  /home/me/code/parser\n"), "{piped}");
    }
}
