//! Every field and every variant the schemas name is in some fixture, so a new one without a fixture fails here.

use std::collections::BTreeSet;

use oarlock_protocol::schemas::{Contract, definitions};
use serde_json::{Value, json};

use crate::fixtures::{DIRECTIONS, all};

#[test]
fn every_field_and_variant_of_the_schemas_is_recorded() {
    let schemas = Schemas::load();
    let mut expected = BTreeSet::new();
    for direction in &DIRECTIONS {
        for wire in direction.methods.iter().filter_map(direction.wire) {
            if let Some(root) = schemas.root(wire.name) {
                schemas.list(&root, &mut BTreeSet::new(), &mut expected);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for fixture in all() {
        if let Some(root) = schemas.root(fixture.wire().name) {
            schemas.visit(&root, &fixture.payload, &mut seen);
        }
    }
    let missing: Vec<String> = expected.difference(&seen).map(|place| schemas.describe(place)).collect();
    assert!(missing.is_empty(), "{} not in any fixture:\n{}", missing.len(), missing.join("\n"));
    println!("{} fields, variants and words of the schemas are covered", expected.len());
}

/// The schemas of all types. A place in them is a JSON pointer.
struct Schemas(Value);

impl Schemas {
    fn load() -> Self {
        Self(json!({ "definitions": definitions(Contract::Read) }))
    }

    /// `None` for methods without params.
    fn root(&self, name: &str) -> Option<String> {
        let place = format!("/definitions/{name}");
        self.0.pointer(&place).is_some().then_some(place)
    }

    fn at(&self, place: &str) -> &Value {
        self.0.pointer(place).unwrap_or_else(|| panic!("nothing at {place}"))
    }

    fn resolve(&self, place: &str) -> String {
        match self.at(place).get("$ref").and_then(Value::as_str) {
            Some(reference) => self.resolve(reference.trim_start_matches('#')),
            None => place.to_owned(),
        }
    }

    fn describe(&self, place: &str) -> String {
        let schema = self.0.pointer(place).map(Value::to_string).unwrap_or_default();
        format!("{place}  {}", schema.chars().take(160).collect::<String>())
    }

    /// Everything a value at this place could show: fields, variants, words and kinds of JSON.
    fn list(&self, place: &str, listed: &mut BTreeSet<String>, expected: &mut BTreeSet<String>) {
        let place = self.resolve(place);
        if !listed.insert(place.clone()) {
            return;
        }
        let schema = self.at(&place);
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields = fields.map(|(name, _)| format!("{place}/properties/{}", escape(name)));
        let variants = ["oneOf", "anyOf"].into_iter().flat_map(|word| elements(&place, schema, word));
        let shown: Vec<String> = fields.chain(variants).filter(|place| !self.is_null(place)).collect();
        expected.extend(shown.iter().cloned().chain(choices(&place, schema)));
        let inner = ["items", "additionalProperties"].into_iter().filter(|word| schema.get(word).is_some());
        let inner = inner.map(|word| format!("{place}/{word}")).chain(elements(&place, schema, "allOf"));
        shown.into_iter().chain(inner).for_each(|place| self.list(&place, listed, expected));
    }

    fn is_null(&self, place: &str) -> bool {
        self.at(place).get("type").is_some_and(|kind| kind == "null")
    }

    /// Notes every place this value goes through. Of several variants it takes the first that fits, as Rust does.
    fn visit(&self, place: &str, value: &Value, seen: &mut BTreeSet<String>) {
        if value.is_null() {
            return;
        }
        seen.insert(place.to_owned());
        let place = self.resolve(place);
        let schema = self.at(&place);
        seen.insert(place.clone());
        seen.extend(choices(&place, schema).into_iter().filter(|choice| self.chooses(choice, value)));
        for word in ["oneOf", "anyOf"] {
            let variants = schema.get(word).and_then(Value::as_array).into_iter().flatten();
            if let Some((index, _)) = variants.enumerate().find(|(_, variant)| self.fits(variant, value)) {
                self.visit(&format!("{place}/{word}/{index}"), value, seen);
            }
        }
        elements(&place, schema, "allOf").iter().for_each(|place| self.visit(place, value, seen));
        match value {
            Value::Array(elements) if schema.get("items").is_some() => {
                elements.iter().for_each(|element| self.visit(&format!("{place}/items"), element, seen));
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let declared = format!("{place}/properties/{}", escape(name));
                    let other = format!("{place}/additionalProperties");
                    let known = [declared, other].into_iter().find(|place| self.0.pointer(place).is_some());
                    known.into_iter().for_each(|place| self.visit(&place, field, seen));
                }
            }
            _ => {}
        }
    }

    fn chooses(&self, choice: &str, value: &Value) -> bool {
        match choice.rsplit_once("/kind/") {
            Some((_, kind)) => is_kind(kind, value),
            None => self.at(choice) == value,
        }
    }

    fn fits(&self, schema: &Value, value: &Value) -> bool {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return self.fits(self.at(reference.trim_start_matches('#')), value);
        }
        let list = |word: &str| schema.get(word).and_then(Value::as_array);
        let kinds = kinds(schema);
        let fields = value.as_object();
        let declared = |name: &str| schema.get("properties").and_then(|properties| properties.get(name));
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        (kinds.is_empty() || kinds.iter().any(|kind| is_kind(kind, value)))
            && schema.get("const").is_none_or(|constant| constant == value)
            && list("enum").is_none_or(|words| words.contains(value))
            && ["oneOf", "anyOf"]
                .iter()
                .filter_map(|word| list(word))
                .all(|variants| variants.iter().any(|variant| self.fits(variant, value)))
            && list("required")
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .all(|name| value.get(name).is_some())
            && fields
                .into_iter()
                .flatten()
                .all(|(name, field)| declared(name).map_or(!closed, |schema| self.fits(schema, field)))
            && value
                .as_array()
                .into_iter()
                .flatten()
                .all(|element| schema.get("items").is_none_or(|items| self.fits(items, element)))
    }
}

/// The places of a list of schemas.
fn elements(place: &str, schema: &Value, word: &str) -> Vec<String> {
    let length = schema.get(word).and_then(Value::as_array).map_or(0, Vec::len);
    (0..length).map(|index| format!("{place}/{word}/{index}")).collect()
}

/// The words of an enum, and the kinds of JSON where there are several, each a place of its own.
fn choices(place: &str, schema: &Value) -> Vec<String> {
    let mut choices = elements(place, schema, "enum");
    let kinds: Vec<&str> = kinds(schema).into_iter().filter(|kind| *kind != "null").collect();
    if kinds.len() > 1 {
        choices.extend(kinds.iter().map(|kind| format!("{place}/kind/{kind}")));
    }
    choices
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
