//! Which thread is meant: by its id, by the beginning of one, or by its name. A miss says what there is.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use journal::ThreadRow;
use protocol::ThreadId;
use runtime::config::{Home, nearest};

use super::list::every_thread;
use super::open_store;
use super::table::{about, short_id};
use crate::terminal::clean_line;

/// The fewest letters that can be the beginning of an id.
const SHORTEST: usize = 4;
/// The most threads that an error names.
const NAMED: usize = 5;

/// The thread that `text` names.
pub(crate) fn named_thread(home: &Home, text: &str) -> Result<ThreadId> {
    if !home.state().is_dir() {
        bail!("there is no thread `{text}`: there are no threads yet");
    }
    let store = open_store(home)?;
    // A whole id needs no look at the others.
    if let Ok(row) = store.summary(&ThreadId::new(text.trim().to_ascii_lowercase())) {
        return Ok(row.thread_id);
    }
    choose(&every_thread(&store)?, text).map(|row| row.thread_id.clone())
}

/// Words that name threads: their names, and ids. Nothing where there are none.
pub(crate) fn thread_words(home: &Home) -> Result<Vec<String>> {
    if !home.state().is_dir() {
        return Ok(Vec::new());
    }
    let rows = every_thread(&open_store(home)?)?;
    let names = rows.iter().filter_map(|row| row.summary.name.clone());
    Ok(names.chain(rows.iter().map(|row| row.thread_id.to_string())).collect())
}

/// The row that `text` names.
pub(super) fn choose<'a>(rows: &'a [ThreadRow], text: &str) -> Result<&'a ThreadRow> {
    let wanted = text.trim().to_ascii_lowercase();
    let is_id = |row: &&ThreadRow| row.thread_id.as_str() == wanted;
    // Those used last come first, so that of a name the newest counts.
    let is_name = |row: &&ThreadRow| row.summary.name.as_deref() == Some(text);
    if let Some(row) = rows.iter().find(is_id).or_else(|| rows.iter().find(is_name)) {
        return Ok(row);
    }
    let begin = plain(&wanted);
    let fits =
        |row: &&ThreadRow| begin.len() >= SHORTEST && plain(row.thread_id.as_str()).starts_with(&begin);
    let fitting: Vec<&ThreadRow> = rows.iter().filter(fits).collect();
    match fitting.as_slice() {
        [row] => Ok(row),
        [] => bail!("{}", miss(rows, text)),
        several => {
            bail!("`{text}` is the beginning of several ids; write more of one:{}", lines(several, true))
        }
    }
}

fn plain(id: &str) -> String {
    id.chars().filter(|letter| *letter != '-').collect()
}

fn miss(rows: &[ThreadRow], text: &str) -> String {
    if rows.is_empty() {
        return format!("there is no thread `{text}`: there are no threads yet");
    }
    let names = rows.iter().filter_map(|row| row.summary.name.as_deref());
    if let Some(near) = nearest(text, names) {
        return format!("there is no thread `{text}`; did you mean `{near}`?");
    }
    // Ids that differ in a letter or two, or else those used last.
    let near = |row: &&ThreadRow| {
        let id = row.thread_id.as_str();
        nearest(text, [id.get(..text.len()).unwrap_or(id)]).is_some() && text.len() >= SHORTEST
    };
    match rows.iter().filter(near).take(NAMED).collect::<Vec<_>>() {
        near if near.is_empty() => {
            let latest: Vec<&ThreadRow> = rows.iter().take(NAMED).collect();
            format!("there is no thread `{text}`; used last were:{}", lines(&latest, false))
        }
        near => format!("there is no thread `{text}`; near ones are:{}", lines(&near, false)),
    }
}

fn lines(rows: &[&ThreadRow], whole: bool) -> String {
    let mut text = String::new();
    for row in rows.iter().take(NAMED) {
        let id = row.thread_id.as_str();
        let id = if whole { id } else { short_id(id) };
        let _ = write!(text, "\n  {id}  {}", clean_line(&about(row)));
    }
    if rows.len() > NAMED {
        let _ = write!(text, "\n  and {} more", rows.len() - NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, name: Option<&str>) -> ThreadRow {
        ThreadRow {
            thread_id: ThreadId::new(id),
            path: "/x".into(),
            is_archived: false,
            is_damaged: false,
            length: 0,
            summary: journal::Summary {
                name: name.map(str::to_owned),
                preview: Some("hello".to_owned()),
                ..journal::Summary::default()
            },
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let rows = [
            row("0199c0de-0001-7000-8000-00000000000a", Some("parser")),
            row("0199c0de-0001-7000-8000-00000000000b", None),
            row("0199c0de-0002-7000-8000-00000000000c", Some("parser")),
        ];
        let found = choose(&rows, text);
        let told = found.map_or_else(|error| error.to_string(), |row| row.thread_id.to_string());
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn ids_beginnings_and_names_find_threads_and_misses_help() {
        check("0199C0DE-0001-7000-8000-00000000000B", "0199c0de-0001-7000-8000-00000000000b");
        check("0199c0de-0002", "0199c0de-0002-7000-8000-00000000000c");
        check("0199c0de0002", "0199c0de-0002-7000-8000-00000000000c");
        check("parser", "0199c0de-0001-7000-8000-00000000000a");
        check("parsr", "there is no thread `parsr`; did you mean `parser`?");
        check(
            "0199c0de-0001",
            "`0199c0de-0001` is the beginning of several ids; write more of one:\
             \n  0199c0de-0001-7000-8000-00000000000a  parser\n  0199c0de-0001-7000-8000-00000000000b  hello",
        );
        check(
            "0199c0de-0012",
            "there is no thread `0199c0de-0012`; near ones are:\n  0199c0de-0001  parser\n  0199c0de-0001  hello\
             \n  0199c0de-0002  parser",
        );
        check(
            "zebra stripes",
            "there is no thread `zebra stripes`; used last were:\n  0199c0de-0001  parser\n  0199c0de-0001  hello\
             \n  0199c0de-0002  parser",
        );
    }
}
