//! Queries about a shape that decide how it is printed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::layout;
use crate::ir::{Extra, Field, Literal, ObjectShape, Shape, Type};

/// An arm of the form `{"key": value}`.
pub(super) struct Keyed<'a> {
    pub(super) about: Option<&'a str>,
    pub(super) field: &'a Field,
}

/// The objects of a union of strings and objects with exactly one key.
pub(super) fn keyed(variants: &[Type]) -> Option<Vec<Keyed<'_>>> {
    let mut arms = Vec::new();
    for variant in variants {
        match &variant.shape {
            Shape::Literals(_) => {}
            Shape::Object(ObjectShape { fields, extra: Extra::Refused })
                if fields.len() == 1 && !fields[0].optional =>
            {
                arms.push(Keyed { about: variant.about.as_deref(), field: &fields[0] });
            }
            _ => return None,
        }
    }
    (!arms.is_empty()).then_some(arms)
}

/// The known strings of a union of strings.
pub(super) fn open_values(variants: &[Type]) -> Option<Vec<Literal>> {
    let all = variants.iter().all(|variant| matches!(variant.shape, Shape::Literals(_) | Shape::String));
    let values: Vec<Literal> = variants.iter().flat_map(|variant| values(&variant.shape)).cloned().collect();
    (all && !values.is_empty()).then_some(values)
}

pub(super) fn values(shape: &Shape) -> &[Literal] {
    if let Shape::Literals(values) = shape { values } else { &[] }
}

pub(super) fn constant(shape: &Shape) -> Option<&str> {
    match values(shape) {
        [only] => Some(&only.value),
        _ => None,
    }
}

pub(super) fn is_record(shape: &Shape) -> bool {
    matches!(shape, Shape::Reference(_) | Shape::Object(_) | Shape::Union { .. })
}

/// The types that only their fields tell apart: the arms of unions without a tag, and the enums these must have.
pub(super) fn distinguished(types: &BTreeMap<String, Type>) -> BTreeSet<String> {
    let is_enum = |name: &&String| matches!(types.get(*name).map(|ty| &ty.shape), Some(Shape::Literals(_)));
    let arms = types.values().filter_map(|ty| match &ty.shape {
        Shape::Union { tag: None, variants } => Some(variants),
        _ => None,
    });
    let mut names = BTreeSet::new();
    for name in arms.flatten().filter_map(|arm| reference(&arm.shape)) {
        if let Some(Type { shape: Shape::Object(object), .. }) = types.get(name)
            && object.extra == Extra::Refused
        {
            let required = object.fields.iter().filter(|field| !field.optional);
            names.extend(required.filter_map(|field| reference(&field.shape)).filter(is_enum).cloned());
            names.insert(name.clone());
        }
    }
    names
}

fn reference(shape: &Shape) -> Option<&String> {
    if let Shape::Reference(name) = shape { Some(name) } else { None }
}

/// The text after a field's annotation that gives it a default.
pub(super) fn default_of(annotation: &str, value: &Value) -> String {
    let text = literal(value);
    match value {
        Value::Array(items) if items.is_empty() => " = []".to_owned(),
        Value::Object(items) if items.is_empty() && annotation.starts_with("dict[") => " = {}".to_owned(),
        Value::Array(_) | Value::Object(_) => {
            format!(" = Field(default_factory=lambda: read({annotation}, {text}))")
        }
        _ => format!(" = {text}"),
    }
}

/// JSON as a Python expression.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Object(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|(key, value)| format!("{}: {}", layout::string(key), literal(value)))
                .collect();
            format!("{{{}}}", items.join(", "))
        }
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}
