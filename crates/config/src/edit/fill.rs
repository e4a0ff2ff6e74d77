//! Adds missing keys to a file. Existing ones stay unchanged.

use std::path::Path;

use toml::{Table, Value};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike};

use super::edit_file;
use crate::ConfigError;
use crate::home::create_private;
use crate::layer::read_optional;

/// The part of `wanted` that none of these files has.
pub(crate) fn missing_keys(files: &[&Path], wanted: &Table) -> Result<Table, ConfigError> {
    let mut missing = wanted.clone();
    for path in files {
        let Some(text) = read_optional(path)? else { continue };
        let found: Table =
            toml::from_str(&text).map_err(|error| ConfigError::in_file(path, &text, &error))?;
        missing = without(missing, &found);
    }
    Ok(missing)
}

/// Keys with any existing value are not missing; tables on both sides are compared key by key.
fn without(wanted: Table, found: &Table) -> Table {
    let left = wanted.into_iter().filter_map(|(key, value)| match (value, found.get(&key)) {
        (value, None) => Some((key, value)),
        (Value::Table(inner), Some(Value::Table(found))) => {
            let inner = without(inner, found);
            (!inner.is_empty()).then_some((key, Value::Table(inner)))
        }
        _ => None,
    });
    left.collect()
}

/// Adds the missing part of `wanted` to the file, creating the file and its folder if needed.
pub(crate) fn fill_config(path: &Path, wanted: &Table) -> Result<(), ConfigError> {
    if let Some(folder) = path.parent() {
        create_private(folder).map_err(|error| ConfigError::write(folder, error))?;
    }
    edit_file(path, |document: &mut DocumentMut| {
        fill(document.as_table_mut(), wanted);
        Ok(())
    })
}

fn fill(into: &mut dyn TableLike, wanted: &Table) {
    for (key, value) in wanted {
        match (into.get_mut(key), value) {
            (None, value) => {
                into.insert(key, item(value));
            }
            (Some(found), Value::Table(inner)) => {
                if let Some(found) = found.as_table_like_mut() {
                    fill(found, inner);
                }
            }
            _ => {}
        }
    }
}

/// Tables get their own headers; inside values they are inline.
pub(super) fn item(value: &Value) -> Item {
    match value {
        Value::Table(inner) => {
            let mut table = toml_edit::Table::new();
            inner.iter().for_each(|(key, value)| {
                table.insert(key, item(value));
            });
            // A table that contains only tables needs no header.
            table.set_implicit(inner.values().all(Value::is_table) && !inner.is_empty());
            Item::Table(table)
        }
        other => Item::Value(plain(other)),
    }
}

pub(super) fn plain(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(at) => at.to_string().into(),
        Value::Array(values) => values.iter().map(plain).collect::<toml_edit::Array>().into(),
        Value::Table(inner) => {
            let pairs = inner.iter().map(|(key, value)| (key.as_str(), plain(value)));
            pairs.collect::<InlineTable>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(before: &str, wanted: &str, missing: &str, after: &str) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sub/config.toml");
        if !before.is_empty() {
            fs::create_dir(folder.path().join("sub")).expect("a folder");
            fs::write(&path, before).expect("a file");
        }
        let table = |text: &str| toml::from_str::<Table>(text).expect("TOML");
        assert_eq!(missing_keys(&[&path], &table(wanted)).expect("readable"), table(missing));
        fill_config(&path, &table(wanted)).expect("written");
        assert_eq!(fs::read_to_string(&path).unwrap_or_default(), after);
        assert!(missing_keys(&[&path], &table(wanted)).is_ok_and(|missing| missing.is_empty()));
    }

    #[test]
    fn only_what_is_missing_is_added() {
        let wanted = "mode = \"w\"\n[env]\ninherit = \"core\"\n[env.set]\nA = \"1\"\nB = \"2\"\n";
        check("", wanted, wanted, wanted_as_written());
        check(
            "# mine\nmode = \"other\" # why\n\n[env.set]\nB = \"9\"\n",
            wanted,
            "[env]\ninherit = \"core\"\n[env.set]\nA = \"1\"\n",
            "# mine\nmode = \"other\" # why\n\n[env]\ninherit = \"core\"\n\n[env.set]\nB = \"9\"\nA = \"1\"\n",
        );
        check("env = { inherit = \"all\" }\nmode = 1\n", wanted, "[env.set]\nA = \"1\"\nB = \"2\"\n", INLINE);
        // A value of another kind is not missing.
        check("env = 5\nmode = 1\n", wanted, "", "env = 5\nmode = 1\n");
    }

    fn wanted_as_written() -> &'static str {
        "mode = \"w\"\n\n[env]\ninherit = \"core\"\n\n[env.set]\nA = \"1\"\nB = \"2\"\n"
    }

    /// The space before the comma is the user's own.
    const INLINE: &str = "env = { inherit = \"all\" , set = { A = \"1\", B = \"2\" } }\nmode = 1\n";

    #[test]
    fn a_file_that_is_no_toml_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config.toml");
        fs::write(&path, "a = [\n").expect("a file");
        let wanted: Table = toml::from_str("b = 1").expect("TOML");
        assert!(missing_keys(&[&path], &wanted).is_err() && fill_config(&path, &wanted).is_err());
        assert_eq!(fs::read_to_string(&path).expect("readable"), "a = [\n");
    }
}
