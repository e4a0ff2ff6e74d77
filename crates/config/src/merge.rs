//! Merges tables.

use toml::{Table, Value};

/// Tables merge key by key; anything else is replaced.
pub(crate) fn merge(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (Some(below), value) => *below = value.clone(),
            (None, value) => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Sets one value under keys joined by dots. A value in place of a table is replaced.
pub(crate) fn set(table: &mut Table, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => match (table.get_mut(*key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, &above),
            (_, value) => {
                table.insert((*key).to_owned(), value);
            }
        },
        [key, rest @ ..] => {
            let entry = table.entry(*key).or_insert_with(|| Value::Table(Table::new()));
            if !entry.is_table() {
                *entry = Value::Table(Table::new());
            }
            if let Value::Table(inner) = entry {
                set(inner, rest, value);
            }
        }
    }
}
