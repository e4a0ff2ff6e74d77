//! Recorded messages of our own making go through Rust and Python and come back as they were; damaged ones are either
//! refused with an error that names the field, or read in a way that no longer changes.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

mod coverage;
mod fixtures;
mod mutations;
mod place;
mod python;
mod random;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::fixtures::{DIRECTIONS, Fixture, all, differences, parse};

#[test]
fn every_fixture_comes_back_equal() {
    let fixtures = all();
    let changed: Vec<String> = fixtures
        .iter()
        .filter_map(|fixture| match fixture.round_trip(&fixture.payload.to_string()) {
            Ok(back) if parse(&back) == fixture.payload => None,
            Ok(back) => {
                Some(format!("{fixture}: {}", differences(&fixture.payload, &parse(&back)).join(", ")))
            }
            Err(error) => Some(format!("{fixture}: {error}")),
        })
        .collect();
    assert!(changed.is_empty(), "{} are not what Rust writes:\n{}", changed.len(), changed.join("\n"));
    println!("{} fixtures came back equal", fixtures.len());
}

#[test]
fn every_method_has_a_fixture_in_every_direction() {
    let recorded: BTreeSet<_> =
        all().iter().map(|fixture| (fixture.direction.name, fixture.method.name)).collect();
    let expected: BTreeSet<_> = DIRECTIONS
        .iter()
        .flat_map(|direction| direction.methods.iter().map(|method| (direction.name, method.name)))
        .collect();
    let missing: Vec<_> = expected.difference(&recorded).collect();
    assert!(missing.is_empty(), "no fixture for {missing:?}");
    println!("{} methods by direction are covered", expected.len());
}

/// Fields for which missing, null and a value mean three things: by method, with a JSON pointer.
const TRI_STATE_FIELDS: [(&str, &str); 8] = [
    ("thread/start", "/serviceTier"),
    ("thread/resume", "/serviceTier"),
    ("thread/fork", "/serviceTier"),
    ("turn/start", "/serviceTier"),
    ("thread/goal/set", "/tokenBudget"),
    ("thread/metadata/update", "/gitInfo/sha"),
    ("thread/metadata/update", "/gitInfo/branch"),
    ("thread/metadata/update", "/gitInfo/originUrl"),
];

#[test]
fn tri_state_fields_are_recorded_missing_null_and_set() {
    let fixtures = all();
    for (method, pointer) in TRI_STATE_FIELDS {
        let states: BTreeSet<&str> = fixtures
            .iter()
            .filter(|fixture| fixture.direction.name == "clientRequest" && fixture.method.name == method)
            .map(|fixture| match fixture.payload.pointer(pointer) {
                None => "missing",
                Some(Value::Null) => "null",
                Some(_) => "set",
            })
            .collect();
        assert_eq!(states, BTreeSet::from(["missing", "null", "set"]), "{method} {pointer}");
    }
}

/// A value that writers and readers tend to get wrong, and how to recognise it.
type Oddity = (&'static str, fn(&Value) -> bool);

const ODDITIES: [Oddity; 13] = [
    ("an integer no double can hold", |value| value.as_i64() == Some((1 << 53) + 1)),
    ("the largest i64", |value| value.as_i64() == Some(i64::MAX)),
    ("the smallest i64", |value| value.as_i64() == Some(i64::MIN)),
    ("the largest u64", |value| value.as_u64() == Some(u64::MAX)),
    ("a fraction", |value| value.is_f64() && value.as_f64().is_some_and(|number| number.fract() != 0.0)),
    ("a whole number written as a float", |value| {
        value.is_f64() && value.as_f64().is_some_and(|number| number.fract() == 0.0)
    }),
    ("a character outside the basic plane", |value| has_char(value, |char| char > '\u{ffff}')),
    ("a bidirectional control", |value| has_char(value, |char| char == '\u{202e}')),
    ("a NUL", |value| has_char(value, |char| char == '\0')),
    ("an empty string", |value| value.as_str() == Some("")),
    ("an empty list", |value| value.as_array().is_some_and(Vec::is_empty)),
    ("an empty object", |value| value.as_object().is_some_and(serde_json::Map::is_empty)),
    ("an empty key", |value| value.get("").is_some()),
];

fn has_char(value: &Value, wanted: fn(char) -> bool) -> bool {
    value.as_str().is_some_and(|text| text.chars().any(wanted))
}

#[test]
fn odd_values_are_recorded() {
    let fixtures = all();
    let any = |test: fn(&Value) -> bool| fixtures.iter().any(|fixture| contains(&fixture.payload, test));
    let missing: Vec<&str> = ODDITIES.iter().filter(|(_, test)| !any(*test)).map(|(name, _)| *name).collect();
    assert!(missing.is_empty(), "no fixture holds {missing:?}");
}

fn contains(value: &Value, test: fn(&Value) -> bool) -> bool {
    let inside = match value {
        Value::Array(elements) => elements.iter().any(|element| contains(element, test)),
        Value::Object(fields) => fields.values().any(|field| contains(field, test)),
        _ => false,
    };
    inside || test(value)
}

impl std::fmt::Display for Fixture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.place, self.direction.name, self.method.name)
    }
}
