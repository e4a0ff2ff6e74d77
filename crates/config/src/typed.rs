//! From a table to typed keys. Parsing tracks no positions; the invalid value and its position are found after an
//! error.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use crate::error::one_line;
use crate::{ConfigError, mask};

/// A value that does not fit its key.
#[derive(Debug)]
pub(crate) struct TypeMismatch {
    pub(crate) message: String,
    /// The keys from the top to the value.
    way: Vec<KeyStep>,
}

#[derive(Debug, Clone)]
enum KeyStep {
    Key(String),
    Element(usize),
}

pub(crate) fn typed<T: DeserializeOwned>(table: &Table) -> Result<T, TypeMismatch> {
    T::deserialize(table.clone()).map_err(|error| {
        let is_same =
            |rest: Value| T::deserialize(rest).is_err_and(|other| other.message() == error.message());
        let message = one_line(error.message());
        let message = unknown_key(&message).unwrap_or(message);
        let way = culprit(Value::Table(table.clone()), &is_same);
        let is_secret = way.iter().any(|step| matches!(step, KeyStep::Key(key) if mask::may_be_secret(key)));
        TypeMismatch { message: if is_secret { without_value(&message) } else { message }, way }
    })
}

/// The error about a value, without the value.
fn without_value(message: &str) -> String {
    match (message.split_once("string \""), message.rsplit_once('"')) {
        (Some((before, _)), Some((_, after))) => format!("{before}string{after}"),
        _ => message.to_owned(),
    }
}

/// The error about an unknown key, with the most similar known one.
fn unknown_key(message: &str) -> Option<String> {
    let (key, known) = message.strip_prefix("unknown field `")?.split_once("`, expected ")?;
    Some(match nearest(key, known.split('`').skip(1).step_by(2)) {
        Some(near) => format!("unknown key `{key}`; did you mean `{near}`?"),
        None => format!("unknown key `{key}`; known are {}", known.trim_start_matches("one of ")),
    })
}

/// The known name most similar to a misspelt one.
pub fn nearest<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|known| (distance(key, known), known));
    distances.filter(|(distance, _)| *distance <= 2.max(key.len() / 4)).min().map(|(_, known)| known)
}

/// The edit distance, ignoring case, `-` and `_`.
fn distance(one: &str, other: &str) -> usize {
    let plain = |text: &str| -> Vec<char> {
        text.chars()
            .filter(|letter| !"-_".contains(*letter))
            .map(|letter| letter.to_ascii_lowercase())
            .collect()
    };
    let (one, other) = (plain(one), plain(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

/// The path to the value that causes the error. Removes one part after another until the error changes, so that
/// repeated mistakes are found too.
fn culprit(mut whole: Value, is_same: &dyn Fn(Value) -> bool) -> Vec<KeyStep> {
    let mut taken = 0;
    while let Some((step, part)) = take_first(&mut whole, taken) {
        taken += 1;
        if is_same(whole.clone()) {
            continue;
        }
        let inner = culprit(part, &|part| is_same(with_first(whole.clone(), &step, part)));
        return [vec![step], inner].concat();
    }
    Vec::new()
}

fn take_first(whole: &mut Value, taken: usize) -> Option<(KeyStep, Value)> {
    match whole {
        Value::Table(table) => {
            let key = table.keys().next()?.clone();
            table.remove(&key).map(|value| (KeyStep::Key(key), value))
        }
        Value::Array(list) if !list.is_empty() => Some((KeyStep::Element(taken), list.remove(0))),
        _ => None,
    }
}

fn with_first(mut rest: Value, step: &KeyStep, part: Value) -> Value {
    match (&mut rest, step) {
        (Value::Table(table), KeyStep::Key(key)) => drop(table.insert(key.clone(), part)),
        (Value::Array(list), KeyStep::Element(_)) => list.insert(0, part),
        _ => {}
    }
    rest
}

impl TypeMismatch {
    /// The error for a value of this file, with its position.
    pub(crate) fn in_file(&self, path: &Path, text: &str) -> ConfigError {
        ConfigError::invalid(path, text, self.span(text), self.message.clone())
    }

    /// With the keys, for values that are in no file.
    pub(crate) fn sentence(&self) -> String {
        let keys = self.way.iter().filter_map(|step| match step {
            KeyStep::Key(key) => Some(key.as_str()),
            KeyStep::Element(_) => None,
        });
        match keys.collect::<Vec<_>>().as_slice() {
            [] => self.message.clone(),
            keys => format!("{} in `{}`", self.message, keys.join(".")),
        }
    }

    /// Like [`TypeMismatch::sentence`], with the keys on their own line, as clients of writes expect.
    pub(crate) fn lines(&self) -> String {
        let sentence = self.sentence();
        match sentence[self.message.len()..].trim() {
            "" => format!("{sentence}\n"),
            keys => format!("{}\n{keys}\n", self.message),
        }
    }

    /// The position of the value in the text.
    fn span(&self, text: &str) -> Range<usize> {
        let Ok(document) = DeTable::parse(text) else { return 0..0 };
        let mut steps = self.way.iter();
        let mut place = match steps.next() {
            Some(KeyStep::Key(key)) => document.get_ref().get(key.as_str()),
            _ => None,
        };
        for step in steps {
            let next = place.and_then(|value| match step {
                KeyStep::Key(key) => value.get_ref().get(key.as_str()),
                KeyStep::Element(at) => value.get_ref().get(*at),
            });
            place = next.or(place);
        }
        place.map_or(0..0, |value| value.span())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    #[allow(dead_code, reason = "only read")]
    struct Keys {
        name: String,
        words: Vec<String>,
        tables: BTreeMap<String, Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only read")]
    struct Inner {
        needed: String,
        number: Option<u8>,
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let table: Table = toml::from_str(text).expect("TOML");
        let found = match typed::<Keys>(&table) {
            Ok(_) => "fits".to_owned(),
            Err(misfit) => format!("{} | {}", misfit.sentence(), &text[misfit.span(text)]),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn the_value_that_does_not_fit_is_found() {
        check("name = 'a'\nother = 1", "fits");
        check("name = 5", "invalid type: integer `5`, expected a string in `name` | 5");
        check("words = ['a', true]", "invalid type: boolean `true`, expected a string in `words` | true");
        check(
            "[tables.'a.b']\nneeded = 'x'\nnumber = 'many'",
            "invalid type: string \"many\", expected u8 in `tables.a.b.number` | 'many'",
        );
        check(
            "[tables.one]\nneeded = 1\n[tables.two]\nneeded = 1",
            "invalid type: integer `1`, expected a string in `tables.two.needed` | 1",
        );
    }

    #[test]
    fn a_misspelt_key_is_told_with_what_it_looks_like() {
        let known = ["base_url", "env_key", "name", "http_headers", "env_http_headers"];
        for (key, expected) in [
            ("base_ur", Some("base_url")),
            ("baseUrl", Some("base_url")),
            ("url_base", None),
            ("envkey", Some("env_key")),
            ("headers", None),
            ("http-headers", Some("http_headers")),
            ("", None),
        ] {
            assert_eq!(nearest(key, known), expected, "{key}");
        }
        let message = "unknown field `base_ur`, expected one of `name`, `base_url`";
        assert_eq!(unknown_key(message).as_deref(), Some("unknown key `base_ur`; did you mean `base_url`?"));
        let message = "unknown field `x`, expected `deny_read` or `allow_read`";
        let told = unknown_key(message);
        assert_eq!(told.as_deref(), Some("unknown key `x`; known are `deny_read` or `allow_read`"));
    }

    #[test]
    fn what_is_missing_is_looked_for_where_it_should_be() {
        check(
            "[tables.one]\nneeded = 'x'\n[tables.two]\nnumber = 1\n",
            "missing field `needed` in `tables.two` | [tables.two]",
        );
    }
}
