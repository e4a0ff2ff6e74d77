//! The JSON Schema of a tool's arguments, reduced to what model providers read.

use std::borrow::Cow;

use engine::ToolPayload;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::{ToolError, whole_numbers};

/// Parses the arguments of a tool that takes JSON.
pub(crate) fn parse_function<A: DeserializeOwned>(
    name: &'static str,
    payload: ToolPayload,
) -> Result<A, ToolError> {
    match payload {
        ToolPayload::Function { arguments } | ToolPayload::Search { arguments } => Ok(from_json(&arguments)?),
        ToolPayload::Custom { .. } => Err(ToolError::NotJson(name)),
    }
}

/// JSON Schema accepts `5.0` as an integer, but serde does not.
fn from_json<A: DeserializeOwned>(arguments: &str) -> Result<A, serde_json::Error> {
    serde_json::from_str(arguments).or_else(|error| match whole_numbers::in_digits(arguments) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(in_digits) => serde_json::from_str(&in_digits),
    })
}

/// The tool's entry in the request's tool list.
pub(crate) fn function_json<A: JsonSchema>(name: &str, about: &str) -> Value {
    json!({
        "type": "function",
        "name": name,
        "description": about,
        "strict": false,
        "parameters": parameters::<A>(),
    })
}

/// The entry of a tool that takes free text with a grammar.
pub(crate) fn freeform_json(name: &str, about: &str, grammar: &str) -> Value {
    json!({
        "type": "custom",
        "name": name,
        "description": about,
        "format": { "type": "grammar", "syntax": "lark", "definition": grammar },
    })
}

fn parameters<A: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    simplify(&mut schema);
    if let Value::Object(root) = &mut schema {
        // The tool's own description says this already.
        root.remove("description");
        // A tool without arguments has no `properties`, which providers require.
        root.entry("properties").or_insert_with(|| json!({}));
        close(root);
    }
    schema
}

/// Keeps types, descriptions and structure; removes names, defaults and number formats, which only cost tokens.
fn simplify(schema: &mut Value) {
    let Value::Object(node) = schema else { return };
    for key in ["title", "format", "default", "$schema"] {
        node.remove(key);
    }
    without_null(node);
    if let Some(Value::Object(properties)) = node.get_mut("properties") {
        properties.values_mut().for_each(simplify);
        properties.sort_keys();
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = node.get_mut(key) {
            simplify(inner);
        }
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(choices)) = node.get_mut(key) {
            choices.iter_mut().for_each(simplify);
        }
    }
    if node.contains_key("properties") {
        close(node);
    }
}

/// An optional argument is not required; `null` need not be mentioned.
fn without_null(node: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = node.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            node.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = node.get_mut("anyOf") else { return };
    choices.retain(|choice| *choice != json!({"type": "null"}));
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        node.remove("anyOf");
        for (key, value) in only {
            // The field's description overrides that of its type.
            node.entry(key).or_insert(value);
        }
        without_null(node);
    }
}

/// In the providers' documented key order, with no further properties allowed.
fn close(node: &mut Map<String, Value>) {
    node.insert("additionalProperties".to_owned(), Value::Bool(false));
    let mut rest = std::mem::take(node);
    for key in ["type", "properties", "required", "additionalProperties"] {
        if let Some(value) = rest.shift_remove(key) {
            node.insert(key.to_owned(), value);
        }
    }
    node.extend(rest);
}

#[cfg(test)]
#[expect(dead_code, reason = "read by the schema only")]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}

    /// Words about the type, which the tool's description replaces.
    #[derive(Deserialize, JsonSchema)]
    struct Everything {
        /// How many.
        zeal: Option<u32>,
        #[serde(default)]
        keep: bool,
        /// The field's words.
        inner: Option<Inner>,
        many: Vec<Inner>,
        labels: BTreeMap<String, String>,
        pace: Pace,
    }

    /// The type's words.
    #[derive(Deserialize, JsonSchema)]
    struct Inner {
        name: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Pace {
        Slow,
        VeryFast,
    }

    #[test]
    fn a_type_becomes_closed_parameters() {
        let inner = |words: &str| {
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                   "additionalProperties": false, "description": words})
        };
        assert_eq!(
            parameters::<Everything>(),
            json!({
                "type": "object",
                "properties": {
                    "inner": inner("The field's words."),
                    "keep": {"type": "boolean"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "many": {"type": "array", "items": inner("The type's words.")},
                    "pace": {"type": "string", "enum": ["slow", "very_fast"]},
                    "zeal": {"type": "integer", "description": "How many.", "minimum": 0},
                },
                "required": ["many", "labels", "pace"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let read = |zeal: &str| {
            let arguments =
                format!(r#"{{"zeal": {zeal}, "many": [], "labels": {{"a": "1.0"}}, "pace": "slow"}}"#);
            parse_function::<Everything>("t", ToolPayload::Function { arguments })
        };
        for (given, expected) in [("5", 5), ("5.0", 5), ("5e1", 50), ("0.0", 0), ("-0.0", 0)] {
            let args = read(given).expect(given);
            assert_eq!((args.zeal, args.labels["a"].as_str()), (Some(expected), "1.0"), "{given}");
        }
        for (given, problem) in [
            ("5.5", "invalid type: floating point `5.5`, expected u32"),
            ("-5.0", "invalid value: integer `-5`, expected u32"),
            ("\"5.0\"", "invalid type: string \"5.0\", expected u32"),
            ("5.0, \"zeal\": 6.0", "duplicate field `zeal`"),
            ("5.0, \"paces\": 6.0, \"pace\": \"slow\"", "duplicate field `pace`"),
            ("5.0,", "key must be a string"),
        ] {
            let error = read(given).err().expect(given).to_string();
            assert!(error.starts_with(&format!("failed to parse function arguments: {problem}")), "{error}");
        }
    }

    #[test]
    fn no_arguments_are_an_empty_closed_object() {
        assert_eq!(
            function_json::<Nothing>("rest", "Do nothing."),
            json!({
                "type": "function", "name": "rest", "description": "Do nothing.", "strict": false,
                "parameters": {"type": "object", "properties": {}, "additionalProperties": false},
            })
        );
    }

    #[test]
    fn keys_stand_in_the_documented_order() {
        let text = parameters::<Inner>().to_string();
        assert_eq!(
            text,
            r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}"#
        );
    }
}
