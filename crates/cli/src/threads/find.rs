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

/// What a word on the command line can name: by its id, the beginning of it, or its name.
pub(crate) trait Nameable {
    /// The word for it in an error.
    const KIND: &'static str;
    /// Of several with one name the first is meant, which was used last.
    const FIRST_COUNTS: bool;
    fn id(&self) -> &str;
    fn name(&self) -> Option<&str>;
    /// Tells it from others.
    fn about(&self) -> String;
}

impl Nameable for ThreadRow {
    const KIND: &'static str = "thread";
    const FIRST_COUNTS: bool = true;

    fn id(&self) -> &str {
        self.thread_id.as_str()
    }

    fn name(&self) -> Option<&str> {
        self.summary.name.as_deref()
    }

    fn about(&self) -> String {
        about(self)
    }
}

/// The row that `text` names. Those used last come first.
pub(crate) fn choose<'a, T: Nameable>(rows: &'a [T], text: &str) -> Result<&'a T> {
    let wanted = text.trim().to_ascii_lowercase();
    if let Some(row) = rows.iter().find(|row| row.id() == wanted) {
        return Ok(row);
    }
    let named: Vec<&T> = rows.iter().filter(|row| row.name() == Some(text)).collect();
    match named.as_slice() {
        [row] => return Ok(row),
        [row, ..] if T::FIRST_COUNTS => return Ok(row),
        [] => {}
        several => bail!("several have the name `{text}`; write the id of one:{}", lines(several, true)),
    }
    let begin = plain(&wanted);
    let fits = |row: &&T| begin.len() >= SHORTEST && plain(row.id()).starts_with(&begin);
    let fitting: Vec<&T> = rows.iter().filter(fits).collect();
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

fn miss<T: Nameable>(rows: &[T], text: &str) -> String {
    let kind = T::KIND;
    if rows.is_empty() {
        return format!("there is no {kind} `{text}`: there are no {kind}s yet");
    }
    let names = rows.iter().filter_map(Nameable::name);
    if let Some(near) = nearest(text, names) {
        return format!("there is no {kind} `{text}`; did you mean `{near}`?");
    }
    // Ids that differ in a letter or two, or else those used last.
    let near = |row: &&T| {
        let id = row.id();
        nearest(text, [id.get(..text.len()).unwrap_or(id)]).is_some() && text.len() >= SHORTEST
    };
    match rows.iter().filter(near).take(NAMED).collect::<Vec<_>>() {
        near if near.is_empty() => {
            let latest: Vec<&T> = rows.iter().take(NAMED).collect();
            format!("there is no {kind} `{text}`; used last were:{}", lines(&latest, false))
        }
        near => format!("there is no {kind} `{text}`; near ones are:{}", lines(&near, false)),
    }
}

fn lines<T: Nameable>(rows: &[&T], whole: bool) -> String {
    let mut text = String::new();
    for row in rows.iter().take(NAMED) {
        let id = if whole { row.id() } else { short_id(row.id()) };
        let _ = write!(text, "\n  {id}  {}", clean_line(&row.about()));
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
