//! Values of the command line (`-c key=value`) and of a request's `config` map.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml::{Table, Value};

use crate::json::to_json;
use crate::{ConfigError, merge};

/// The parts of a dotted key. No known one has more than a few.
pub(crate) const MAX_PARTS: usize = 32;
/// Of a key that is no key, in an error.
const SHOWN_BYTES: usize = 200;

/// Splits `key=value` at the first `=`.
pub fn parse_flag(text: &str) -> Result<(String, String), ConfigError> {
    let refuse = |problem: &str| ConfigError::InvalidFlag {
        message: format!("`-c {text}` {problem}; write it like -c key=value"),
    };
    let (key, value) = text.split_once('=').ok_or_else(|| refuse("has no `=`"))?;
    match key.trim() {
        "" => Err(refuse("has no key")),
        key => Ok((key.to_owned(), value.trim().to_owned())),
    }
}

/// The table of flags and then the request's map. Keys are split at dots; there is no quoting.
pub(crate) fn session_table(
    flags: &[(String, String)],
    request: Option<&BTreeMap<String, Json>>,
) -> Result<Table, ConfigError> {
    let mut table = Table::new();
    for (key, value) in flags {
        set(&mut table, key, flag_value(value))?;
    }
    for (key, value) in request.into_iter().flatten() {
        set(&mut table, key, from_json(value))?;
    }
    Ok(table)
}

fn set(table: &mut Table, key: &str, value: Value) -> Result<(), ConfigError> {
    let key = if key == "use_legacy_landlock" { "features.use_legacy_landlock" } else { key };
    let path: Vec<&str> = key.split('.').collect();
    if path.iter().any(|part| part.is_empty()) {
        let message = format!("config key `{}` has an empty part; write it like a.b.c", shown_key(key));
        return Err(ConfigError::InvalidFlag { message });
    }
    // Each part is a table in a table: whoever walks through them needs room on the stack for each.
    if path.len() > MAX_PARTS {
        let message =
            format!("config key `{}` has {} parts, and {MAX_PARTS} are the most", shown_key(key), path.len());
        return Err(ConfigError::InvalidFlag { message });
    }
    merge::set(table, &path, value);
    Ok(())
}

pub(crate) fn shown_key(key: &str) -> String {
    match key.len() > SHOWN_BYTES {
        true => format!("{}…", &key[..key.floor_char_boundary(SHOWN_BYTES)]),
        false => key.to_owned(),
    }
}

/// A TOML value, otherwise the text itself.
fn flag_value(text: &str) -> Value {
    let text = text.trim();
    let parsed =
        toml::de::ValueDeserializer::parse(text).and_then(<Value as serde::Deserialize>::deserialize);
    parsed.unwrap_or_else(|_| Value::String(text.trim_matches(['"', '\'']).to_owned()))
}

/// The value of a flag as a write takes it.
pub fn value_of_flag(text: &str) -> Json {
    to_json(&flag_value(text))
}

/// TOML has no null; it becomes an empty text.
fn from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::String(String::new()),
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(float)) => Value::Float(float),
            (None, None) => Value::String(number.to_string()),
        },
        Json::String(text) => Value::String(text.clone()),
        Json::Array(values) => Value::Array(values.iter().map(from_json).collect()),
        Json::Object(fields) => {
            Value::Table(fields.iter().map(|(key, value)| (key.clone(), from_json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_flag_is_toml_or_else_text() {
        let cases = [
            ("1", json!(1)),
            ("true", json!(true)),
            ("o3", json!("o3")),
            ("\"o3\"", json!("o3")),
            ("'half", json!("half")),
            ("[1, 2]", json!([1, 2])),
            ("{ a = \"b\" }", json!({"a": "b"})),
            ("a=b", json!("a=b")),
            ("", json!("")),
            ("1 2", json!("1 2")),
        ];
        for (text, expected) in cases {
            assert_eq!(serde_json::to_value(flag_value(text)).ok(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_key_of_very_many_parts_is_refused_in_few_words() {
        let key = format!("a{}", ".b".repeat(100_000));
        let request = BTreeMap::from([(key.clone(), json!(1))]);
        for refused in [session_table(&[], Some(&request)), session_table(&[(key, "1".to_owned())], None)] {
            let error = refused.expect_err("it is too deep").to_string();
            assert!(error.contains("has 100001 parts, and 32 are the most"), "{error}");
            assert!(error.len() < 400, "{} bytes", error.len());
        }
    }

    #[test]
    fn only_the_first_equals_sign_splits() {
        assert_eq!(parse_flag(" a.b = c=d ").ok(), Some(("a.b".to_owned(), "c=d".to_owned())));
        for (text, problem) in [("a", "has no `=`"), ("=b", "has no key")] {
            let error = parse_flag(text).err().map(|error| error.to_string());
            assert!(error.is_some_and(|error| error.contains(problem)), "{text}");
        }
    }

    #[test]
    fn flags_come_before_the_request() {
        let flags = ["a.b=1", "a.c=2", "use_legacy_landlock=true", "d=1", "d.e=2"].map(parse_flag);
        let flags: Vec<_> = flags.into_iter().flatten().collect();
        let request =
            BTreeMap::from([("a".to_owned(), json!({"c": 3, "n": null})), ("f.g".to_owned(), json!(1.5))]);
        let table = session_table(&flags, Some(&request)).ok();
        assert_eq!(
            serde_json::to_value(table).ok(),
            Some(json!({
                "a": {"b": 1, "c": 3, "n": ""}, "d": {"e": 2}, "f": {"g": 1.5},
                "features": {"use_legacy_landlock": true},
            }))
        );
        assert!(session_table(&[("a..b".to_owned(), String::new())], None).is_err());
    }
}
