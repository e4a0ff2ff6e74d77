//! Adapts servers' schemas to model providers: every part has a type, and the size is limited.

use serde_json::{Map, Value, json};

const MAX_DEPTH: usize = 24;
/// A tool with a larger schema is not offered.
const MAX_BYTES: usize = 64 * 1024;

/// The parameters of a tool. `Err` says why they are unusable.
pub(crate) fn parameters(schema: Option<&Value>) -> Result<Value, &'static str> {
    let mut schema = match schema {
        None | Some(Value::Null) => json!({"type": "object", "properties": {}}),
        Some(schema @ Value::Object(_)) => schema.clone(),
        Some(_) => return Err("its inputSchema is not a JSON Schema"),
    };
    if schema.to_string().len() > MAX_BYTES {
        return Err("its inputSchema is too large");
    }
    mend(&mut schema, 0);
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("its inputSchema is not the schema of an object");
    }
    if let Some(object) = schema.as_object_mut()
        && !object.get("properties").is_some_and(Value::is_object)
    {
        object.insert("properties".to_owned(), json!({}));
    }
    Ok(schema)
}

/// Adds a missing type.
fn mend(schema: &mut Value, depth: usize) {
    // Booleans are valid schemas, but not for every provider.
    let Value::Object(object) = schema else {
        *schema = json!({"type": "string"});
        return;
    };
    if depth >= MAX_DEPTH {
        *object = Map::from_iter([("type".to_owned(), json!("string"))]);
        return;
    }
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        properties.values_mut().for_each(|property| mend(property, depth + 1));
    }
    if let Some(items) = object.get_mut("items") {
        mend(items, depth + 1);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(choices)) = object.get_mut(key) {
            choices.iter_mut().for_each(|choice| mend(choice, depth + 1));
        }
    }
    if let Some(more) = object.get_mut("additionalProperties")
        && !more.is_boolean()
    {
        mend(more, depth + 1);
    }
    let has = |key: &str| object.contains_key(key);
    if !has("type") && !["anyOf", "oneOf", "allOf", "$ref"].into_iter().any(has) {
        let inferred = if has("properties") || has("required") || has("additionalProperties") {
            "object"
        } else if has("items") || has("prefixItems") {
            "array"
        } else if has("minimum") || has("maximum") || has("multipleOf") {
            "number"
        } else {
            "string"
        };
        object.insert("type".to_owned(), json!(inferred));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_types_are_inferred() {
        let given = json!({"properties": {"a": {}, "b": {"items": true}, "c": {"minimum": 1},
            "d": {"anyOf": [{"type": "null"}, {}]}, "e": false, "f": {"properties": {}}}});
        let expected = json!({"properties": {"a": {"type": "string"},
            "b": {"items": {"type": "string"}, "type": "array"}, "c": {"minimum": 1, "type": "number"},
            "d": {"anyOf": [{"type": "null"}, {"type": "string"}]}, "e": {"type": "string"},
            "f": {"properties": {}, "type": "object"}}, "type": "object"});
        assert_eq!(parameters(Some(&given)), Ok(expected));
        assert_eq!(parameters(None), Ok(json!({"type": "object", "properties": {}})));
        let empty = json!({"type": "object"});
        assert_eq!(parameters(Some(&empty)), Ok(json!({"type": "object", "properties": {}})));
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for given in [json!("nonsense"), json!(5), json!([]), json!({"type": "string"})] {
            assert!(parameters(Some(&given)).is_err(), "{given}");
        }
        let large = json!({"type": "object", "description": "x".repeat(MAX_BYTES)});
        assert!(parameters(Some(&large)).is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"properties": {"a": deep}});
        }
        let fit = parameters(Some(&deep)).expect("it is a schema").to_string();
        assert!(fit.matches("properties").count() <= MAX_DEPTH, "{fit}");
    }
}
