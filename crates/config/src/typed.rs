//! From a table to typed keys. Only values are looked at on the way; which of them does not fit, and where it stands in its
//! file, is found out when one does not.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::de::DeTable;
use toml::{Table, Value};

use crate::error::one_line;

/// A value that does not fit its key.
#[derive(Debug)]
pub(crate) struct Misfit {
    pub(crate) message: String,
    /// The way to it from the top.
    way: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Element(usize),
}

pub(crate) fn typed<T: DeserializeOwned>(table: &Table) -> Result<T, Misfit> {
    T::deserialize(table.clone()).map_err(|error| {
        let is_same =
            |rest: Value| T::deserialize(rest).is_err_and(|other| other.message() == error.message());
        Misfit { message: one_line(error.message()), way: culprit(Value::Table(table.clone()), &is_same) }
    })
}

/// The way to the value without which the complaint is another. Parts are taken away one after another until it is, so that
/// the same mistake made twice is found too.
fn culprit(mut whole: Value, is_same: &dyn Fn(Value) -> bool) -> Vec<Step> {
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

fn take_first(whole: &mut Value, taken: usize) -> Option<(Step, Value)> {
    match whole {
        Value::Table(table) => {
            let key = table.keys().next()?.clone();
            table.remove(&key).map(|value| (Step::Key(key), value))
        }
        Value::Array(list) if !list.is_empty() => Some((Step::Element(taken), list.remove(0))),
        _ => None,
    }
}

fn with_first(mut rest: Value, step: &Step, part: Value) -> Value {
    match (&mut rest, step) {
        (Value::Table(table), Step::Key(key)) => drop(table.insert(key.clone(), part)),
        (Value::Array(list), Step::Element(_)) => list.insert(0, part),
        _ => {}
    }
    rest
}

impl Misfit {
    /// With the keys, for values that stand in no file.
    pub(crate) fn sentence(&self) -> String {
        let keys = self.way.iter().filter_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Element(_) => None,
        });
        match keys.collect::<Vec<_>>().as_slice() {
            [] => self.message.clone(),
            keys => format!("{} in `{}`", self.message, keys.join(".")),
        }
    }

    /// Where the value stands in the text that the table was read from.
    pub(crate) fn span(&self, text: &str) -> Range<usize> {
        let Ok(document) = DeTable::parse(text) else { return 0..0 };
        let mut steps = self.way.iter();
        let mut place = match steps.next() {
            Some(Step::Key(key)) => document.get_ref().get(key.as_str()),
            _ => None,
        };
        for step in steps {
            let next = place.and_then(|value| match step {
                Step::Key(key) => value.get_ref().get(key.as_str()),
                Step::Element(at) => value.get_ref().get(*at),
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
    fn what_is_missing_is_looked_for_where_it_should_be() {
        check(
            "[tables.one]\nneeded = 'x'\n[tables.two]\nnumber = 1\n",
            "missing field `needed` in `tables.two` | [tables.two]",
        );
    }
}
