//! Sets, merges or clears one value. Comments, order and spacing of the rest are kept.

use protocol::MergeStrategy;
use toml::Value;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike};

use super::fill::{item, plain};

/// Sets the value. A value in place of a table is replaced.
pub(crate) fn set_value(document: &mut DocumentMut, path: &[&str], value: &Value, strategy: MergeStrategy) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in parents {
        make_way(table, key);
        let entry = table.entry(key).or_insert_with(new_table);
        let Some(inner) = entry.as_table_like_mut() else { return };
        table = inner;
    }
    put(table, last, value, strategy);
}

/// Removes the key. False if it does not exist.
pub(crate) fn clear_value(document: &mut DocumentMut, path: &[&str]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for key in parents {
        let Some(inner) = table.get_mut(key).and_then(Item::as_table_like_mut) else { return false };
        table = inner;
    }
    table.remove(last);
    true
}

/// A header is written only for a table with its own values.
fn new_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Removes a value that is no table, with the spaces around its key.
fn make_way(table: &mut dyn TableLike, key: &str) {
    if table.get(key).is_some_and(|found| !found.is_table_like()) {
        table.remove(key);
    }
}

fn put(table: &mut dyn TableLike, key: &str, value: &Value, strategy: MergeStrategy) {
    if value.is_table() {
        make_way(table, key);
    }
    let Some(found) = table.get_mut(key) else {
        table.insert(key, item(value));
        return;
    };
    match (value, &mut *found) {
        (Value::Table(wanted), found) if found.is_table_like() => {
            let Some(inner) = found.as_table_like_mut() else { return };
            if strategy == MergeStrategy::Replace {
                let keys: Vec<String> = inner.iter().map(|(key, _)| key.to_owned()).collect();
                keys.iter().filter(|key| !wanted.contains_key(*key)).for_each(|key| drop(inner.remove(key)));
            }
            for (key, value) in wanted {
                put(inner, key, value, strategy);
            }
        }
        (Value::Array(values), Item::ArrayOfTables(tables)) if values.iter().all(Value::is_table) => {
            *tables = tables_of(values);
        }
        (value, Item::Value(old)) => {
            let mut new = plain(value);
            if is_same(old, &new) {
                return;
            }
            // The comment after the value, and the spaces around it.
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        (value, found) => *found = item(value),
    }
}

fn tables_of(values: &[Value]) -> ArrayOfTables {
    let tables = values.iter().filter_map(|value| item(value).into_table().ok());
    tables.collect()
}

/// Whether both values are equal, in any notation.
fn is_same(one: &toml_edit::Value, other: &toml_edit::Value) -> bool {
    use toml_edit::Value as V;
    match (one, other) {
        (V::String(one), V::String(other)) => one.value() == other.value(),
        (V::Integer(one), V::Integer(other)) => one.value() == other.value(),
        (V::Float(one), V::Float(other)) => one.value().to_bits() == other.value().to_bits(),
        (V::Boolean(one), V::Boolean(other)) => one.value() == other.value(),
        (V::Array(one), V::Array(other)) => same_lists(one, other),
        (V::InlineTable(one), V::InlineTable(other)) => {
            let is_there =
                |(key, value): (&str, &V)| other.get(key).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_there)
        }
        _ => false,
    }
}

fn same_lists(one: &Array, other: &Array) -> bool {
    one.len() == other.len() && one.iter().zip(other.iter()).all(|(one, other)| is_same(one, other))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    #[track_caller]
    fn check(before: &str, path: &str, value: Json, strategy: MergeStrategy, after: &str) {
        let mut document: DocumentMut = before.parse().expect("TOML");
        let value: Value = serde_json::from_value(value).expect("a value");
        set_value(&mut document, &path.split('.').collect::<Vec<_>>(), &value, strategy);
        assert_eq!(document.to_string(), after, "{path}");
    }

    #[test]
    fn values_are_set_and_comments_stay() {
        use MergeStrategy::{Replace, Upsert};
        let file = "# mine\na = 1 # one\n\n# about t\n[t] # here\nx = 1 # x\ny = 2\n";
        check(file, "a", json!(2), Replace, &file.replace("a = 1", "a = 2"));
        check(file, "t.x", json!("s"), Replace, &file.replace("x = 1", "x = \"s\""));
        check(file, "t", json!({"x": 3}), Upsert, &file.replace("x = 1", "x = 3"));
        check(file, "t", json!({"x": 3}), Replace, &file.replace("x = 1", "x = 3").replace("y = 2\n", ""));
        check("a = 1\n", "p.q.m", json!("v"), Upsert, "a = 1\n\n[p.q]\nm = \"v\"\n");
        check("a = 1\n", "a.b", json!(true), Replace, "[a]\nb = true\n");
        check("t = { x = 1, y = 2 }\n", "t.x", json!(5), Replace, "t = { x = 5, y = 2 }\n");
        check("l = [ 1,\n 2 ] # list\n", "l", json!([1, 2]), Replace, "l = [ 1,\n 2 ] # list\n");
        check("s = 'x'\n", "s", json!("x"), Replace, "s = 'x'\n");
        check("[[l]]\nx = 1\n", "l", json!([{"x": 2}, {"x": 3}]), Replace, "[[l]]\nx = 2\n\n[[l]]\nx = 3\n");
    }

    #[test]
    fn clearing_needs_the_way_to_be_there() {
        let mut document: DocumentMut = "a = 1\n[t]\nx = 1 # x\ny = 2\n".parse().expect("TOML");
        assert!(clear_value(&mut document, &["t", "x"]) && clear_value(&mut document, &["none"]));
        assert!(!clear_value(&mut document, &["none", "x"]) && !clear_value(&mut document, &["a", "x"]));
        assert_eq!(document.to_string(), "a = 1\n[t]\ny = 2\n");
    }
}
