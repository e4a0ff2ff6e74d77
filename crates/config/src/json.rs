//! TOML values as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Value as Toml;

/// Keys come out sorted, whatever order the table has.
pub(crate) fn to_json(value: &Toml) -> Value {
    match value {
        Toml::String(text) => Value::String(text.clone()),
        Toml::Integer(number) => Value::from(*number),
        Toml::Float(number) => Value::from(*number),
        Toml::Boolean(value) => Value::Bool(*value),
        Toml::Datetime(time) => Value::String(time.to_string()),
        Toml::Array(values) => Value::Array(values.iter().map(to_json).collect()),
        Toml::Table(table) => {
            let sorted: BTreeMap<_, _> =
                table.iter().map(|(key, value)| (key.clone(), to_json(value))).collect();
            Value::Object(sorted.into_iter().collect())
        }
    }
}
