//! The JSON Schema of a tool's arguments, cut down to what model providers read.

use engine::ToolPayload;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::ToolError;

/// The arguments of a tool that takes JSON.
pub(crate) fn parse_function<A: DeserializeOwned>(
    name: &'static str,
    payload: ToolPayload,
) -> Result<A, ToolError> {
    match payload {
        ToolPayload::Function { arguments } => Ok(serde_json::from_str(&arguments)?),
        ToolPayload::Custom { .. } => Err(ToolError::NotJson(name)),
    }
}

/// The whole entry of the request's tool list.
pub(crate) fn function_json<A: JsonSchema>(name: &str, about: &str) -> Value {
    json!({
        "type": "function",
        "name": name,
        "description": about,
        "strict": false,
        "parameters": parameters::<A>(),
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
        // What the tool does is said once, in its description.
        root.remove("description");
        // A tool without arguments has no properties of its own accord.
        root.entry("properties").or_insert_with(|| json!({}));
        close(root);
    }
    schema
}

/// Leaves types, descriptions and structure; drops names, defaults and number formats, which only cost tokens.
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

/// An optional argument is one that is not required; that it may also be null need not be said.
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
            // The field's own words come before those of its type.
            node.entry(key).or_insert(value);
        }
        without_null(node);
    }
}

/// In the order providers document them, and nothing beyond what is named.
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
