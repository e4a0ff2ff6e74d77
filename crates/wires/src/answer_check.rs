//! Checks whether an answer matches the requested schema. Servers of Chat may ignore a schema, and Messages takes
//! schemas without their bounds, so the answer is checked here.

use model::protocol::{CodexErrorInfo, ContentItem, ResponseItem};
use model::{FailureClass, FailureVerdict, ModelFailure, OutputFormat, RequestBody, StreamEvent};
use serde_json::{Map, Value};

/// Follows the events of one response.
#[derive(Debug, Clone)]
pub(crate) struct AnswerCheck {
    schema: Value,
    /// The last message.
    text: String,
    has_calls: bool,
}

impl AnswerCheck {
    /// `None` without a requested schema.
    pub(crate) fn of(request: &RequestBody) -> Option<Box<Self>> {
        let format = request.text.as_ref().and_then(|text| text.format.as_ref())?;
        let OutputFormat::JsonSchema { schema, .. } = format;
        Some(Box::new(Self { schema: schema.clone(), text: String::new(), has_calls: false }))
    }

    /// Turns the end of a response with an invalid answer into a failure. A response with calls is not the final
    /// answer.
    pub(crate) fn follow(&mut self, events: &mut [StreamEvent]) {
        for event in events {
            match event {
                StreamEvent::ItemDone(item) => self.learn(item),
                StreamEvent::Completed { usage, .. } if !self.has_calls => {
                    if let Err(problem) = self.check() {
                        let spent = usage.take();
                        *event = StreamEvent::Failed(ModelFailure { spent, ..mismatch(&problem) });
                    }
                }
                _ => {}
            }
        }
    }

    fn learn(&mut self, item: &ResponseItem) {
        match item {
            ResponseItem::Message { content, .. } => {
                let texts = content.iter().filter_map(|part| match part {
                    ContentItem::OutputText { text } => Some(text.as_str()),
                    _ => None,
                });
                self.text = texts.collect();
            }
            ResponseItem::FunctionCall { .. }
            | ResponseItem::CustomToolCall { .. }
            | ResponseItem::LocalShellCall { .. }
            | ResponseItem::ToolSearchCall { .. } => self.has_calls = true,
            _ => {}
        }
    }

    fn check(&self) -> Result<(), String> {
        let value = serde_json::from_str(&self.text).map_err(|error| format!("it is no JSON: {error}"))?;
        let mut walk = SchemaWalk { root: &self.schema, left: MOST_STEPS, depth: 0 };
        walk.check(&self.schema, &value, "")
    }
}

/// Not retried, because it would cost as much and may fail again.
fn mismatch(problem: &str) -> ModelFailure {
    let message = format!("the answer does not match the schema that it was asked for: {problem}");
    ModelFailure {
        verdict: Some(FailureVerdict { info: CodexErrorInfo::Other, may_retry: false }),
        ..ModelFailure::new(FailureClass::InvalidRequest, message)
    }
}

/// Limits of nested alternatives and recursive schemas. Unchecked parts count as matching.
const MOST_STEPS: usize = 200_000;
const MOST_DEPTH: usize = 200;

/// Compares a value with a schema. Unknown keywords are ignored.
struct SchemaWalk<'a> {
    root: &'a Value,
    left: usize,
    depth: usize,
}

impl<'a> SchemaWalk<'a> {
    fn check(&mut self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        if self.left == 0 || self.depth == MOST_DEPTH {
            return Ok(());
        }
        (self.left, self.depth) = (self.left - 1, self.depth + 1);
        let checked = self.keywords(schema, value, at);
        self.depth -= 1;
        checked
    }

    fn keywords(&mut self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let fields = match schema {
            Value::Bool(false) => return Err(problem(at, "nothing may be here")),
            Value::Object(fields) => fields,
            _ => return Ok(()),
        };
        if let Some(target) = fields.get("$ref").and_then(Value::as_str).and_then(|place| self.find(place)) {
            self.check(target, value, at)?;
        }
        kind(fields, value, at)?;
        self.alternatives(fields, value, at)?;
        match value {
            Value::Object(object) => self.object(fields, object, at),
            Value::Array(items) => self.array(fields, items, at),
            Value::String(text) => {
                bounds(fields, text.chars().count() as f64, ("minLength", "maxLength"), "characters", at)
            }
            Value::Number(number) => number_bounds(fields, number.as_f64().unwrap_or_default(), at),
            Value::Bool(_) | Value::Null => Ok(()),
        }
    }

    fn find(&self, place: &str) -> Option<&'a Value> {
        self.root.pointer(place.strip_prefix('#')?)
    }

    fn alternatives(
        &mut self,
        fields: &'a Map<String, Value>,
        value: &Value,
        at: &str,
    ) -> Result<(), String> {
        let list = |name: &str| fields.get(name).and_then(Value::as_array).map(Vec::as_slice);
        for schema in list("allOf").unwrap_or_default() {
            self.check(schema, value, at)?;
        }
        for (name, only_one) in [("anyOf", false), ("oneOf", true)] {
            let Some(schemas) = list(name) else { continue };
            let matching = schemas.iter().filter(|schema| self.check(schema, value, at).is_ok()).count();
            if matching == 0 {
                return Err(problem(at, "it matches none of the alternatives"));
            }
            if only_one && matching > 1 {
                return Err(problem(at, "it matches more than one of the alternatives"));
            }
        }
        match fields.get("not") {
            Some(schema) if self.check(schema, value, at).is_ok() => {
                Err(problem(at, "it matches what it must not"))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        fields: &'a Map<String, Value>,
        object: &Map<String, Value>,
        at: &str,
    ) -> Result<(), String> {
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !object.contains_key(name) {
                return Err(problem(at, &format!("`{name}` is missing")));
            }
        }
        bounds(fields, object.len() as f64, ("minProperties", "maxProperties"), "fields", at)?;
        let properties = fields.get("properties").and_then(Value::as_object);
        for (name, value) in object {
            let place = format!("{at}/{name}");
            match (properties.and_then(|known| known.get(name)), fields.get("additionalProperties")) {
                (Some(schema), _) => self.check(schema, value, &place)?,
                (None, Some(Value::Bool(false))) if !fields.contains_key("patternProperties") => {
                    return Err(problem(at, &format!("`{name}` is not part of the schema")));
                }
                (None, Some(schema)) => self.check(schema, value, &place)?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn array(&mut self, fields: &'a Map<String, Value>, items: &[Value], at: &str) -> Result<(), String> {
        bounds(fields, items.len() as f64, ("minItems", "maxItems"), "items", at)?;
        let unique = fields.get("uniqueItems") == Some(&Value::Bool(true));
        if unique && items.iter().enumerate().any(|(index, item)| items[..index].contains(item)) {
            return Err(problem(at, "an item is there twice"));
        }
        let first = fields.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| fields.get("items")) {
                self.check(schema, item, &format!("{at}/{index}"))?;
            }
        }
        Ok(())
    }
}

fn problem(at: &str, words: &str) -> String {
    if at.is_empty() { words.to_owned() } else { format!("at {at}: {words}") }
}

fn kind(fields: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
    let is = |name: &str| match (name, value) {
        ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("string", Value::String(_))
        | ("number", Value::Number(_))
        | ("boolean", Value::Bool(_))
        | ("null", Value::Null) => true,
        ("integer", Value::Number(number)) => number.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    };
    let wanted = match fields.get("type") {
        Some(Value::String(name)) => vec![name.as_str()],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !wanted.is_empty() && !wanted.iter().any(|name| is(name)) {
        return Err(problem(at, &format!("it is no {}", wanted.join(" or "))));
    }
    let allowed = fields.get("enum").and_then(Value::as_array);
    let is_other = allowed.is_some_and(|allowed| !allowed.contains(value))
        || fields.get("const").is_some_and(|only| only != value);
    if is_other { Err(problem(at, "it is none of the values that are allowed")) } else { Ok(()) }
}

fn bounds(
    fields: &Map<String, Value>,
    count: f64,
    (least, most): (&str, &str),
    unit: &str,
    at: &str,
) -> Result<(), String> {
    let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
    if let Some(least) = bound(least).filter(|least| count < *least) {
        return Err(problem(at, &format!("it has {count} {unit}, and needs at least {least}")));
    }
    if let Some(most) = bound(most).filter(|most| count > *most) {
        return Err(problem(at, &format!("it has {count} {unit}, and may have at most {most}")));
    }
    Ok(())
}

fn number_bounds(fields: &Map<String, Value>, number: f64, at: &str) -> Result<(), String> {
    type Holds = fn(f64, f64) -> bool;
    let rules: [(&str, &str, Holds); 5] = [
        ("minimum", "at least", |number, bound| number >= bound),
        ("maximum", "at most", |number, bound| number <= bound),
        ("exclusiveMinimum", "more than", |number, bound| number > bound),
        ("exclusiveMaximum", "less than", |number, bound| number < bound),
        ("multipleOf", "a multiple of", |number, bound| bound == 0.0 || is_whole(number / bound)),
    ];
    for (name, words, holds) in rules {
        if let Some(bound) = fields.get(name).and_then(Value::as_f64).filter(|bound| !holds(number, *bound)) {
            return Err(problem(at, &format!("{number} is not {words} {bound}")));
        }
    }
    Ok(())
}

/// 0.3 divided by 0.1 is not quite 3.
fn is_whole(number: f64) -> bool {
    (number - number.round()).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, answer: &str, expected: &str) {
        let check = AnswerCheck { schema: schema.clone(), text: answer.to_owned(), has_calls: false };
        assert_eq!(check.check().err().unwrap_or_default(), expected, "{answer}");
    }

    #[test]
    fn every_keyword_that_vendors_leave_out_is_checked() {
        let schema = json!({
            "type": "object", "required": ["rows"], "additionalProperties": false,
            "$defs": {"row": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "multipleOf": 2}}}},
            "properties": {
                "rows": {"type": "array", "minItems": 1, "maxItems": 2, "uniqueItems": true, "items": {"$ref": "#/$defs/row"}},
                "word": {"type": ["string", "null"], "minLength": 2, "maxLength": 3},
                "kind": {"enum": ["a", "b"]},
                "way": {"oneOf": [{"type": "string"}, {"const": 3}]},
            },
        });
        check(&schema, r#"{"rows":[{"n":2}],"word":"äöü","kind":"a","way":3}"#, "");
        check(&schema, r#"{"rows":[{}],"word":null}"#, "");
        for (answer, expected) in [
            ("[]", "it is no object"),
            ("{}", "`rows` is missing"),
            (r#"{"rows":[]}"#, "at /rows: it has 0 items, and needs at least 1"),
            (r#"{"rows":[{"n":2},{"n":4},{"n":6}]}"#, "at /rows: it has 3 items, and may have at most 2"),
            (r#"{"rows":[{},{}]}"#, "at /rows: an item is there twice"),
            (r#"{"rows":[{"n":0}]}"#, "at /rows/0/n: 0 is not at least 1"),
            (r#"{"rows":[{"n":3}]}"#, "at /rows/0/n: 3 is not a multiple of 2"),
            (r#"{"rows":[{"n":2.5}]}"#, "at /rows/0/n: it is no integer"),
            (r#"{"rows":[{}],"word":"x"}"#, "at /word: it has 1 characters, and needs at least 2"),
            (r#"{"rows":[{}],"kind":"c"}"#, "at /kind: it is none of the values that are allowed"),
            (r#"{"rows":[{}],"way":4}"#, "at /way: it matches none of the alternatives"),
            (r#"{"rows":[{}],"more":1}"#, "`more` is not part of the schema"),
        ] {
            check(&schema, answer, expected);
        }
        check(&schema, "Sure! {", "it is no JSON: expected value at line 1 column 1");
        check(&schema, "", "it is no JSON: EOF while parsing a value at line 1 column 0");
    }

    #[test]
    fn a_schema_that_refers_to_itself_comes_to_an_end() {
        check(&json!({"$ref": "#"}), "1", "");
        let doubling = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]});
        check(&doubling, "1", "");
    }
}
