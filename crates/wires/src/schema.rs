//! JSON schemas within the limits of vendors.

use serde_json::{Map, Value, json};

/// A schema of an object, without alternatives at its root: some vendors refuse both. The alternatives are merged into
/// one object whose properties are all optional but those that every alternative needs; the tool itself checks the rest.
pub(crate) fn with_object_root(schema: &Value) -> Value {
    let Some(root) = schema.as_object() else { return empty() };
    let mut root = root.clone();
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let Some(Value::Array(alternatives)) = root.remove(keyword) else { continue };
        merge(&mut root, &alternatives, keyword == "allOf");
    }
    // An enumeration or a negation at the root says nothing about an object that the tool does not check.
    root.remove("not");
    root.remove("enum");
    root.insert("type".to_owned(), json!("object"));
    root.entry("properties").or_insert_with(|| json!({}));
    Value::Object(root)
}

fn empty() -> Value {
    json!({ "type": "object", "properties": {} })
}

fn merge(root: &mut Map<String, Value>, alternatives: &[Value], all_apply: bool) {
    let names = |schema: &Value| -> Vec<Value> { schema["required"].as_array().cloned().unwrap_or_default() };
    let mut required = root.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let first = alternatives.first().map(names).unwrap_or_default();
    let needed: Vec<Value> = match all_apply {
        true => alternatives.iter().flat_map(names).collect(),
        false => first
            .into_iter()
            .filter(|name| alternatives.iter().all(|one| names(one).contains(name)))
            .collect(),
    };
    for name in needed {
        if !required.contains(&name) {
            required.push(name);
        }
    }
    let properties = root.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (name, schema) in alternatives.iter().filter_map(|one| one["properties"].as_object()).flatten() {
            match properties.get_mut(name) {
                None => drop(properties.insert(name.clone(), schema.clone())),
                Some(known) if known == schema => {}
                // Below the root, alternatives are allowed.
                Some(known) => *known = json!({ "anyOf": [known.clone(), schema.clone()] }),
            }
        }
    }
    if !required.is_empty() {
        root.insert("required".to_owned(), Value::Array(required));
    }
}

/// Whether a schema refers to itself, by whatever way round. Structured output takes none that do.
pub(crate) fn is_recursive(schema: &Value) -> bool {
    let mut references = Vec::new();
    collect_references(schema, &mut references);
    references.iter().any(|first| {
        let (mut seen, mut waiting) = (Vec::new(), vec![*first]);
        while let Some(place) = waiting.pop() {
            if place == "#" {
                return true;
            }
            let target = place.strip_prefix('#').and_then(|pointer| schema.pointer(pointer));
            let mut further = Vec::new();
            target.into_iter().for_each(|target| collect_references(target, &mut further));
            for next in further {
                if next == *first {
                    return true;
                }
                if !seen.contains(&next) {
                    seen.push(next);
                    waiting.push(next);
                }
            }
        }
        false
    })
}

fn collect_references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|value| collect_references(value, found));
        }
        _ => {}
    }
}

/// Keywords that bound values, which structured output refuses: told in the description instead.
const BOUNDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// A schema for structured output: objects are closed, bounds are said in words.
pub(crate) fn closed(schema: &Value) -> Value {
    match schema {
        Value::Array(items) => Value::Array(items.iter().map(closed).collect()),
        Value::Object(object) => closed_object(object),
        other => other.clone(),
    }
}

fn closed_object(object: &Map<String, Value>) -> Value {
    let mut bounds = Vec::new();
    let mut closed_fields = Map::new();
    for (name, value) in object {
        if BOUNDS.contains(&name.as_str()) && !value.is_object() {
            bounds.push(format!("{name}: {value}"));
        } else if matches!(name.as_str(), "const" | "enum" | "default" | "required") {
            closed_fields.insert(name.clone(), value.clone());
        } else if name == "properties" {
            // Property names are no keywords.
            let properties = value.as_object().into_iter().flatten();
            let properties = properties.map(|(name, schema)| (name.clone(), closed(schema)));
            closed_fields.insert(name.clone(), Value::Object(properties.collect()));
        } else {
            closed_fields.insert(name.clone(), closed(value));
        }
    }
    if closed_fields.get("type") == Some(&json!("object")) || closed_fields.contains_key("properties") {
        closed_fields.insert("additionalProperties".to_owned(), json!(false));
    }
    if !bounds.is_empty() {
        let said = closed_fields.get("description").and_then(Value::as_str).unwrap_or_default();
        let said = format!("{said} ({})", bounds.join(", "));
        closed_fields.insert("description".to_owned(), json!(said.trim_start()));
    }
    Value::Object(closed_fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_at_the_root_become_one_object() {
        let schema = json!({"oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "k": {"const": 1}}, "required": ["a", "k"]},
            {"type": "object", "properties": {"b": {"type": "string"}, "k": {"const": 2}}, "required": ["b", "k"]},
        ]});
        assert_eq!(
            with_object_root(&schema),
            json!({"type": "object", "required": ["k"], "properties": {
                "a": {"type": "string"}, "b": {"type": "string"}, "k": {"anyOf": [{"const": 1}, {"const": 2}]}}})
        );
        let all = json!({"allOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": true, "b": true}});
        assert_eq!(with_object_root(&all)["required"], json!(["a", "b"]));
        for odd in [json!(null), json!(true), json!({"type": "string"}), json!([])] {
            assert_eq!(with_object_root(&odd)["type"], "object", "{odd}");
        }
    }

    #[test]
    fn schemas_that_refer_to_themselves_are_found() {
        let tree = json!({"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"});
        let round = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"items": {"$ref": "#/$defs/a"}}}});
        let shared = json!({"$defs": {"n": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/n"}}});
        assert!(
            is_recursive(&tree) && is_recursive(&round) && is_recursive(&json!({"items": {"$ref": "#"}}))
        );
        assert!(!is_recursive(&shared) && !is_recursive(&json!({"$ref": "#/nowhere"})));
    }

    #[test]
    fn a_plain_schema_stays_as_it_is() {
        let schema = json!({"type": "object", "properties": {"a": {"oneOf": [{}, {}]}}, "required": ["a"]});
        assert_eq!(with_object_root(&schema), schema);
    }

    #[test]
    fn structured_output_is_closed_and_bounds_are_words() {
        let schema = json!({"type": "object", "properties": {
            "minimum": {"type": "integer", "minimum": 1, "description": "A size"},
            "rows": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {}}}}});
        assert_eq!(
            closed(&schema),
            json!({"type": "object", "additionalProperties": false, "properties": {
                "minimum": {"type": "integer", "description": "A size (minimum: 1)"},
                "rows": {"type": "array", "description": "(minItems: 2)",
                         "items": {"type": "object", "properties": {}, "additionalProperties": false}}}})
        );
    }
}
