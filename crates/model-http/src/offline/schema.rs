//! Makes the smallest value a JSON Schema allows.

use std::cell::Cell;

use serde_json::{Map, Number, Value, json};

/// A value for the schema. Covers what structured output uses: types, enums, required properties, bounds, alternatives
/// and references within the schema. A `pattern` is the one thing it does not try.
pub(super) fn smallest(schema: &Value) -> Value {
    Maker { root: schema, left: Cell::new(MAX_STEPS) }.make(schema, 0)
}

struct Maker<'a> {
    root: &'a Value,
    left: Cell<usize>,
}

/// A schema that requires itself has no finite value, and one that requires itself twice grows without end in breadth.
const MAX_DEPTH: usize = 32;
const MAX_STEPS: usize = 10_000;

impl Maker<'_> {
    fn make(&self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH || self.is_exhausted() {
            return Value::Null;
        }
        let schema = self.flattened(schema, depth);
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(value) = schema.get("enum").and_then(|values| values.get(0)) {
            return value.clone();
        }
        for alternatives in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = schema.get(alternatives) {
                // The simplest one: an alternative that refers back to us may never end.
                let null = choices.iter().find(|choice| kind(choice) == "null");
                return null.or(choices.first()).map_or(Value::Null, |choice| self.make(choice, depth + 1));
            }
        }
        match kind(&schema) {
            "null" => Value::Null,
            "boolean" => Value::Bool(false),
            "integer" => json!(Bounds::read(&schema).integer()),
            "number" => Number::from_f64(Bounds::read(&schema).number()).map_or(json!(0), tidy),
            "array" => self.array(&schema, depth),
            "object" => self.object(&schema, depth),
            _ => Value::String(string(&schema)),
        }
    }

    fn is_exhausted(&self) -> bool {
        self.left.set(self.left.get().saturating_sub(1));
        self.left.get() == 0
    }

    /// Follows references and puts the parts of `allOf` together.
    fn flattened(&self, schema: &Value, depth: usize) -> Value {
        let mut schema = schema.clone();
        for _ in depth..MAX_DEPTH {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            schema = target.cloned().unwrap_or(Value::Null);
        }
        let parts = schema.as_object_mut().and_then(|fields| fields.remove("allOf"));
        for part in parts.as_ref().and_then(Value::as_array).into_iter().flatten() {
            if self.is_exhausted() {
                break;
            }
            merge(&mut schema, self.flattened(part, depth + 1));
        }
        schema
    }

    fn array(&self, schema: &Value, depth: usize) -> Value {
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(1_000) as usize;
        let any = json!({});
        let rest = schema.get("items").filter(|items| items.is_object()).unwrap_or(&any);
        (0..count).map(|at| self.make(prefix.get(at).unwrap_or(rest), depth + 1)).collect()
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let any = json!({});
        let property = |name: &str| schema.get("properties").and_then(|all| all.get(name)).unwrap_or(&any);
        let fields = required.filter_map(Value::as_str);
        fields
            .map(|name| (name.to_owned(), self.make(property(name), depth + 1)))
            .collect::<Map<_, _>>()
            .into()
    }
}

fn merge(schema: &mut Value, part: Value) {
    let (Value::Object(fields), Value::Object(part)) = (schema, part) else { return };
    for (name, value) in part {
        match (fields.get_mut(&name), value) {
            (Some(Value::Object(own)), Value::Object(more)) => own.extend(more),
            (Some(Value::Array(own)), Value::Array(more)) => own.extend(more),
            (_, value) => drop(fields.insert(name, value)),
        }
    }
}

/// The first type named, or the one that the other keywords imply.
fn kind(schema: &Value) -> &str {
    let named = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    let implied = || {
        let has = |names: &[&str]| names.iter().any(|name| schema.get(name).is_some());
        if has(&["properties", "required"]) {
            "object"
        } else if has(&["items", "prefixItems", "minItems"]) {
            "array"
        } else {
            "string"
        }
    };
    named.unwrap_or_else(implied)
}

/// The bounds of a number.
struct Bounds {
    least: f64,
    most: f64,
    /// Allowed up to them, but not themselves.
    excluded: [Option<f64>; 2],
    step: Option<f64>,
}

impl Bounds {
    fn read(schema: &Value) -> Self {
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        let excluded = [bound("exclusiveMinimum"), bound("exclusiveMaximum")];
        let least = [bound("minimum"), excluded[0]].into_iter().flatten().fold(f64::NEG_INFINITY, f64::max);
        let most = [bound("maximum"), excluded[1]].into_iter().flatten().fold(f64::INFINITY, f64::min);
        Self { least, most, excluded, step: bound("multipleOf").filter(|step| *step > 0.0) }
    }

    fn integer(&self) -> i64 {
        let value = self.nearest(0.0_f64.max(self.least.ceil()).min(self.most.floor()));
        let inward = if self.excluded[0] == Some(value) { 1.0 } else { -1.0 };
        let value = if self.is_excluded(value) { self.nearest(value + inward) } else { value };
        value as i64
    }

    fn number(&self) -> f64 {
        let value = self.nearest(0.0_f64.max(self.least).min(self.most));
        match self.is_excluded(value) {
            true if self.step.is_some() => {
                self.nearest(value + if value == self.least { 1e-9 } else { -1e-9 })
            }
            true if self.least.is_finite() && self.most.is_finite() => f64::midpoint(self.least, self.most),
            true if value == self.least => value + 1.0,
            true => value - 1.0,
            false => value,
        }
    }

    fn is_excluded(&self, value: f64) -> bool {
        self.excluded.contains(&Some(value))
    }

    /// The multiple of the step that is next to the value, away from zero.
    fn nearest(&self, value: f64) -> f64 {
        let steps = |step: f64| if value > 0.0 { (value / step).ceil() } else { (value / step).floor() };
        self.step.map_or(value, |step| steps(step) * step)
    }
}

/// `1` rather than `1.0`.
fn tidy(number: Number) -> Value {
    match number.as_f64() {
        Some(value) if value.fract() == 0.0 && value.abs() < 1e15 => json!(value as i64),
        _ => Value::Number(number),
    }
}

const WORD: &str = "offline";

fn string(schema: &Value) -> String {
    let formatted = match schema.get("format").and_then(Value::as_str) {
        Some("date-time") => "1970-01-01T00:00:00Z",
        Some("date") => "1970-01-01",
        Some("time") => "00:00:00Z",
        Some("duration") => "PT0S",
        Some("email") => "offline@example.com",
        Some("uri") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "127.0.0.1",
        Some("ipv6") => "::1",
        Some("uuid") => "00000000-0000-0000-0000-000000000000",
        _ => {
            let length = |name: &str| {
                schema.get(name).and_then(Value::as_u64).map(|length| length.min(100_000) as usize)
            };
            let least = length("minLength").unwrap_or(0);
            let most = length("maxLength").unwrap_or(usize::MAX);
            return WORD.chars().cycle().take(WORD.len().max(least).min(most)).collect();
        }
    };
    formatted.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says what is wrong with a value. Written against the standard and not against the maker.
    fn complaint(root: &Value, schema: &Value, value: &Value) -> Option<String> {
        let fail = |what: &str| Some(format!("{value} breaks `{what}` of {schema}"));
        if let Some(reference) = schema.get("$ref") {
            let target = root.pointer(&reference.as_str()?[1..])?;
            return complaint(root, target, value);
        }
        let each = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
        if let Some(problem) = each("allOf").iter().find_map(|part| complaint(root, part, value)) {
            return Some(problem);
        }
        for name in ["anyOf", "oneOf"] {
            if schema[name].is_array() && each(name).iter().all(|part| complaint(root, part, value).is_some())
            {
                return fail(name);
            }
        }
        if schema.get("const").is_some_and(|wanted| wanted != value) {
            return fail("const");
        }
        if schema["enum"].is_array() && !each("enum").contains(value) {
            return fail("enum");
        }
        let is = |kind: &str| match kind {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            _ => value.is_object(),
        };
        let kinds = schema["type"].as_str().map(|kind| vec![kind.into()]).unwrap_or_else(|| each("type"));
        if !kinds.is_empty() && !kinds.iter().any(|kind: &Value| is(kind.as_str().unwrap())) {
            return fail("type");
        }
        let bound = |name: &str| schema[name].as_f64();
        let breaks = |bad: bool, name: &str| if bad { fail(name) } else { None };
        if let Some(number) = value.as_f64() {
            return breaks(bound("minimum").is_some_and(|least| number < least), "minimum")
                .or_else(|| {
                    breaks(bound("exclusiveMinimum").is_some_and(|least| number <= least), "exclusiveMinimum")
                })
                .or_else(|| breaks(bound("maximum").is_some_and(|most| number > most), "maximum"))
                .or_else(|| {
                    breaks(bound("exclusiveMaximum").is_some_and(|most| number >= most), "exclusiveMaximum")
                })
                .or_else(|| {
                    breaks(bound("multipleOf").is_some_and(|step| number % step != 0.0), "multipleOf")
                });
        }
        if let Some(text) = value.as_str() {
            let length = text.chars().count() as f64;
            return breaks(bound("minLength").is_some_and(|least| length < least), "minLength")
                .or_else(|| breaks(bound("maxLength").is_some_and(|most| length > most), "maxLength"));
        }
        if let Some(items) = value.as_array() {
            let prefix = each("prefixItems");
            let wrong = items
                .iter()
                .enumerate()
                .find_map(|(at, item)| complaint(root, prefix.get(at).unwrap_or(&schema["items"]), item));
            return wrong.or_else(|| {
                breaks(bound("minItems").is_some_and(|least| (items.len() as f64) < least), "minItems")
            });
        }
        let fields = value.as_object()?;
        if each("required").iter().any(|name| !fields.contains_key(name.as_str().unwrap())) {
            return fail("required");
        }
        fields.iter().find_map(|(name, value)| complaint(root, &schema["properties"][name], value))
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value)]
    fn check(schema: Value, expected: Value) {
        let value = smallest(&schema);
        assert_eq!(complaint(&schema, &schema, &value), None);
        assert_eq!(value, expected);
    }

    #[test]
    fn plain_types() {
        check(json!({"type": "string"}), json!("offline"));
        check(json!({"type": "string", "minLength": 10}), json!("offlineoff"));
        check(json!({"type": "string", "maxLength": 3}), json!("off"));
        check(json!({"type": "string", "format": "date"}), json!("1970-01-01"));
        check(json!({"type": ["string", "null"]}), json!("offline"));
        check(json!({"type": "boolean"}), json!(false));
        check(json!({"enum": ["b", "a"]}), json!("b"));
        check(json!({"const": 7}), json!(7));
        check(json!({}), json!("offline"));
    }

    #[test]
    fn numbers_keep_their_bounds() {
        check(json!({"type": "integer"}), json!(0));
        check(json!({"type": "integer", "minimum": 3, "maximum": 9}), json!(3));
        check(json!({"type": "integer", "exclusiveMinimum": 3}), json!(4));
        check(json!({"type": "integer", "maximum": -2}), json!(-2));
        check(json!({"type": "integer", "minimum": 7, "multipleOf": 5}), json!(10));
        check(json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1}), json!(0.5));
        check(json!({"type": "number", "minimum": 2}), json!(2));
        check(json!({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.25}), json!(0.125));
        check(json!({"type": "number", "exclusiveMaximum": 0}), json!(-1));
        check(json!({"type": "number", "exclusiveMinimum": 3, "multipleOf": 1.5}), json!(4.5));
        check(json!({"type": "integer", "minimum": 2.5}), json!(3));
        check(json!({"type": "integer", "exclusiveMinimum": 5, "multipleOf": 5}), json!(10));
        check(json!({"type": "integer", "exclusiveMaximum": 0}), json!(-1));
    }

    #[test]
    fn objects_have_what_is_required_and_arrays_what_is_least() {
        check(
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "tags": {"type": "array", "items": {"enum": ["x"]}, "minItems": 2},
                    "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean"}], "minItems": 2},
                    "note": {"type": "string"},
                },
                "required": ["name", "tags", "pair"],
                "additionalProperties": false,
            }),
            json!({"name": "offline", "tags": ["x", "x"], "pair": [0, false]}),
        );
        check(json!({"type": "array", "items": {"type": "string"}}), json!([]));
    }

    #[test]
    fn references_and_alternatives() {
        check(
            json!({
                "$defs": {"tree": {
                    "type": "object",
                    "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}},
                    "required": ["value", "next"],
                }},
                "$ref": "#/$defs/tree",
            }),
            json!({"value": 0, "next": null}),
        );
        check(
            json!({"allOf": [
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"oneOf": [{"const": "x"}, {"const": "y"}]}}, "required": ["b"]},
            ]}),
            json!({"a": 0, "b": "x"}),
        );
    }

    #[test]
    fn a_schema_without_a_finite_value_still_ends() {
        let schema = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "type": "object", "required": ["x"],
                            "properties": {"x": {"$ref": "#"}, "y": {"$ref": "#/$defs/a"}}});
        assert!(smallest(&schema).is_object());
        assert_eq!(smallest(&json!({"$ref": "#/nowhere"})), json!("offline"));
        assert_eq!(smallest(&json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})), json!("offline"));
        let twice = json!({"required": ["a", "b"], "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
        assert!(smallest(&twice).is_object());
    }
}
