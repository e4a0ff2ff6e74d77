//! Finds the place where a value first departs from a schema. Only used on the way to an error message.

use serde_json::{Map, Value};

use crate::scalar::AbsolutePath;

/// The path of the first mismatch, or `None` when the value fits.
pub(crate) fn first_mismatch(root: &Value, value: &Value) -> Option<String> {
    let mut found = Vec::new();
    Walker { root }.check(root, value, "", &mut found);
    found.into_iter().next()
}

/// Limit of collected mismatches: only the first is shown, and a few suffice to choose a variant.
const MOST: usize = 64;

struct Walker<'a> {
    root: &'a Value,
}

impl<'a> Walker<'a> {
    /// Adds the paths of all mismatches, the first one first.
    fn check(&self, schema: &'a Value, value: &Value, path: &str, found: &mut Vec<String>) {
        if found.len() >= MOST {
            return;
        }
        let (schema, is_path) = self.resolve(schema);
        let Some(schema) = schema.as_object() else { return };
        let is_relative = is_path && value.as_str().is_some_and(|text| AbsolutePath::new(text).is_none());
        if is_relative || !type_fits(schema, value) || !constant_fits(schema, value) {
            found.push(path.to_owned());
            return;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.check(part, value, path, found);
        }
        match value {
            Value::Object(fields) => self.check_object(schema, fields, path, found),
            Value::Array(elements) => {
                for (items, (index, element)) in
                    schema.get("items").into_iter().cycle().zip(elements.iter().enumerate())
                {
                    self.check(items, element, &format!("{path}[{index}]"), found);
                }
            }
            _ => {}
        }
        for variants in ["oneOf", "anyOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()) {
            self.check_union(variants, value, path, found);
        }
    }

    fn check_object(
        &self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
        path: &str,
        found: &mut Vec<String>,
    ) {
        let properties = schema.get("properties").and_then(Value::as_object);
        let other = schema.get("additionalProperties");
        for (name, value) in fields {
            match (properties.and_then(|properties| properties.get(name)), other) {
                (None, Some(Value::Bool(false))) => found.push(join(path, name)),
                (Some(schema), _) | (None, Some(schema)) => {
                    self.check(schema, value, &join(path, name), found);
                }
                (None, None) => {}
            }
        }
        // Like serde, reports missing fields after wrong ones.
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing = required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
        found.extend(missing.map(|name| join(path, name)));
    }

    /// A union fits if one variant does. Otherwise the variant with the fewest mismatches was probably meant.
    fn check_union(&self, variants: &'a [Value], value: &Value, path: &str, found: &mut Vec<String>) {
        let mut best: Option<Vec<String>> = None;
        for variant in variants {
            let mut mismatches = Vec::new();
            self.check(variant, value, path, &mut mismatches);
            if mismatches.is_empty() {
                return;
            }
            // A wrong tag means another variant was meant, so further mismatches do not matter.
            let at_all = mismatches.iter().any(|place| place == path);
            let meant = !at_all && self.is_meant(variant, value);
            if meant && best.as_ref().is_none_or(|best| mismatches.len() < best.len()) {
                best = Some(mismatches);
            }
        }
        match best {
            Some(mismatches) => found.extend(mismatches),
            None => {
                let tag = variants.iter().find_map(|variant| self.tag(variant)).filter(|_| value.is_object());
                found.push(tag.map_or(path.to_owned(), |(tag, _)| join(path, tag)));
            }
        }
    }

    fn is_meant(&self, variant: &'a Value, value: &Value) -> bool {
        match self.tag(variant) {
            Some((tag, constant)) => value.get(tag) == Some(constant),
            // Externally tagged: the one key names the variant. Untagged: any object may be meant.
            None => {
                let (variant, _) = self.resolve(variant);
                let Some(properties) = variant.get("properties").and_then(Value::as_object) else {
                    return true;
                };
                properties.len() != 1 || properties.keys().all(|key| value.get(key).is_some())
            }
        }
    }

    /// The field whose constant identifies the variant.
    fn tag(&self, variant: &'a Value) -> Option<(&'a str, &'a Value)> {
        let properties = self.resolve(variant).0.get("properties")?.as_object()?;
        properties
            .iter()
            .find_map(|(name, schema)| Some((name.as_str(), self.resolve(schema).0.get("const")?)))
    }

    /// Follows references; also returns whether they lead to an absolute path.
    fn resolve(&self, schema: &'a Value) -> (&'a Value, bool) {
        let mut schema = schema;
        let mut is_path = false;
        while let Some(pointer) = schema.get("$ref").and_then(Value::as_str) {
            is_path |= pointer.ends_with("/AbsolutePathBuf");
            match self.root.pointer(pointer.trim_start_matches('#')) {
                Some(target) => schema = target,
                None => break,
            }
        }
        (schema, is_path)
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn type_fits(schema: &Map<String, Value>, value: &Value) -> bool {
    let fits = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    let fits_type = match schema.get("type") {
        Some(Value::String(name)) => fits(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
        _ => true,
    };
    fits_type && in_range(schema, value)
}

/// Formats say more than `minimum` and `maximum`, which not every integer has.
fn in_range(schema: &Map<String, Value>, value: &Value) -> bool {
    match schema.get("format").and_then(Value::as_str) {
        _ if !(value.is_i64() || value.is_u64()) => true,
        Some("uint8") => value.as_u64().is_some_and(|number| u8::try_from(number).is_ok()),
        Some("uint16") => value.as_u64().is_some_and(|number| u16::try_from(number).is_ok()),
        Some("uint32") => value.as_u64().is_some_and(|number| u32::try_from(number).is_ok()),
        Some("uint64") => value.is_u64(),
        Some("int32") => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        Some("int64") => value.is_i64(),
        _ => true,
    }
}

fn constant_fits(schema: &Map<String, Value>, value: &Value) -> bool {
    let listed = schema.get("enum").and_then(Value::as_array).is_none_or(|values| values.contains(value));
    listed && schema.get("const").is_none_or(|constant| constant == value)
}
