//! Where in a payload something is, and how to change what is there.

use std::fmt;

use serde_json::Value;

/// Steps from the payload to a value in it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place(Vec<Step>);

#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

impl Place {
    fn then(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    pub(crate) fn parent(&self) -> Self {
        Self(self.0.split_last().map(|(_, way)| way.to_vec()).unwrap_or_default())
    }

    /// Without the indices at its end: the place of the field it is in.
    pub(crate) fn field(&self) -> Self {
        let length = self.0.iter().rposition(|step| matches!(step, Step::Key(_))).map_or(0, |last| last + 1);
        Self(self.0[..length].to_vec())
    }

    /// The name of that field.
    pub(crate) fn name(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Index(_) => None,
        })
    }

    pub(crate) fn find<'a>(&self, payload: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(payload, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }

    /// All places in a payload, with what is there.
    pub(crate) fn all(payload: &Value) -> Vec<(Self, &Value)> {
        let mut places = Vec::new();
        collect(payload, &Self::default(), &mut places);
        places
    }

    /// Replaces the value, or removes it.
    pub(crate) fn set(&self, payload: &mut Value, replacement: Option<Value>) {
        let Some((last, way)) = self.0.split_last() else { return };
        let parent = way.iter().fold(payload, |value, step| match step {
            Step::Key(key) => &mut value[key],
            Step::Index(index) => &mut value[index],
        });
        match (parent, last, replacement) {
            (parent, Step::Key(key), Some(value)) => parent[key] = value,
            (parent, Step::Index(index), Some(value)) => parent[index] = value,
            (Value::Object(fields), Step::Key(key), None) => {
                fields.shift_remove(key);
            }
            (Value::Array(elements), Step::Index(index), None) => {
                elements.remove(*index);
            }
            _ => {}
        }
    }
}

fn collect<'a>(value: &'a Value, place: &Place, places: &mut Vec<(Place, &'a Value)>) {
    if !place.0.is_empty() {
        places.push((place.clone(), value));
    }
    match value {
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .for_each(|(index, element)| collect(element, &place.then(Step::Index(index)), places)),
        Value::Object(fields) => {
            fields
                .iter()
                .for_each(|(key, field)| collect(field, &place.then(Step::Key(key.clone())), places));
        }
        _ => {}
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if index == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
