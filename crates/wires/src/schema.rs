//! Adapts JSON schemas to vendors' limits.

use serde_json::{Map, Value, json};

/// An object schema without alternatives at its root: some vendors refuse both. The alternatives are merged into one
/// object in which only properties required by every alternative are required; the tool itself checks the rest.
pub(crate) fn with_object_root(schema: &Value) -> Value {
    let Some(root) = schema.as_object() else { return empty() };
    let mut root = root.clone();
    let resolved = |reference: &Value| target(schema, reference, MOST_HOPS).cloned();
    if let Some(target) = resolved(schema) {
        root.remove("$ref");
        merge(&mut root, std::slice::from_ref(&target), true);
        for (keyword, value) in target.as_object().into_iter().flatten() {
            root.entry(keyword).or_insert_with(|| value.clone());
        }
    }
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let Some(Value::Array(mut alternatives)) = root.remove(keyword) else { continue };
        for alternative in &mut alternatives {
            if let Some(target) = resolved(alternative) {
                *alternative = target;
            }
        }
        merge(&mut root, &alternatives, keyword == "allOf");
    }
    // An enumeration or a negation at the root; the tool checks it.
    root.remove("not");
    root.remove("enum");
    root.insert("type".to_owned(), json!("object"));
    root.entry("properties").or_insert_with(|| json!({}));
    Value::Object(root)
}

/// Limit of consecutive references, against cycles.
const MOST_HOPS: usize = 8;

/// The target of a local reference.
fn target<'a>(schema: &'a Value, reference: &Value, hops: usize) -> Option<&'a Value> {
    let place = reference["$ref"].as_str()?.strip_prefix('#').filter(|place| !place.is_empty())?;
    let found = schema.pointer(place)?;
    match found.get("$ref") {
        Some(_) if hops == 0 => None,
        Some(_) => target(schema, found, hops - 1),
        None => Some(found),
    }
}

/// Names of definition tables.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// An object with this schema as its only property, with valid local references.
pub(crate) fn as_property(schema: &Value, name: &str) -> Value {
    let mut inner = schema.clone();
    refer_below(&mut inner, &format!("#/properties/{name}"));
    let mut root = json!({ "type": "object", "properties": {}, "required": [name] });
    for table in DEFINITIONS {
        if let Some(definitions) = inner.as_object_mut().and_then(|inner| inner.remove(table)) {
            root[table] = definitions;
        }
    }
    root["properties"][name] = inner;
    root
}

/// Rewrites references, except those to the tables, which are moved to the new root.
fn refer_below(schema: &mut Value, place: &str) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| refer_below(item, place)),
        Value::Object(fields) => {
            for (keyword, value) in fields {
                match (keyword.as_str(), value) {
                    ("$ref", Value::String(reference)) => {
                        if let Some(rest) = reference.strip_prefix('#')
                            && !DEFINITIONS.iter().any(|table| rest.starts_with(&format!("/{table}/")))
                        {
                            *reference = format!("{place}{rest}");
                        }
                    }
                    // Values, not schemas.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    // Names, not keywords.
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions",
                        Value::Object(schemas),
                    ) => {
                        schemas.values_mut().for_each(|schema| refer_below(schema, place));
                    }
                    (_, value) => refer_below(value, place),
                }
            }
        }
        _ => {}
    }
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

/// Whether a schema refers to itself, directly or indirectly. Structured output refuses that.
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

/// Keywords with bounds, which structured output refuses: added to the description instead.
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

/// A schema for structured output: objects are closed, bounds are in the description.
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
        let tables = json!({
            "A": {"$ref": "#/$defs/B"},
            "B": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
            "C": {"properties": {"c": {"$ref": "#/$defs/B"}}, "required": ["c"]},
            "Round": {"$ref": "#/$defs/Round"}});
        let either = json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/C"}], "$defs": tables});
        assert_eq!(
            with_object_root(&either),
            json!({"type": "object", "$defs": tables, "properties": {
                "b": {"type": "string"}, "c": {"$ref": "#/$defs/B"}}})
        );
        let named = with_object_root(&json!({"$ref": "#/$defs/U", "$defs": {"U": {"oneOf": [
            {"properties": {"a": true}}, {"properties": {"b": true}}]}}}));
        assert_eq!(named["properties"], json!({"a": true, "b": true}));
        let whole = with_object_root(&json!({"$ref": "#/$defs/A", "$defs": tables}));
        assert_eq!(
            (&whole["properties"]["b"]["type"], &whole["required"]),
            (&json!("string"), &json!(["b"]))
        );
        let round = with_object_root(&json!({"$ref": "#/$defs/Round", "$defs": tables}));
        assert_eq!(round["type"], "object");
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
    fn a_schema_in_a_property_still_finds_what_it_refers_to() {
        let schema = json!({"$ref": "#/$defs/Row", "$defs": {"Row": {"properties": {
            "next": {"$ref": "#/$defs/Row"}, "like": {"$ref": "#/properties/a"}, "far": {"$ref": "https://x/y"},
            "enum": {"$ref": "#"}, "k": {"const": {"$ref": "#"}}}}}});
        assert_eq!(
            as_property(&schema, "answer"),
            json!({"type": "object", "required": ["answer"],
                "properties": {"answer": {"$ref": "#/$defs/Row"}},
                "$defs": {"Row": {"properties": {
                    "next": {"$ref": "#/$defs/Row"}, "like": {"$ref": "#/properties/answer/properties/a"},
                    "far": {"$ref": "https://x/y"}, "enum": {"$ref": "#/properties/answer"}, "k": {"const": {"$ref": "#"}}}}}})
        );
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
