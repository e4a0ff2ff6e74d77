#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value, json};

use super::*;

/// The written JSON, after comparing it with that of `serde_json`.
fn written(value: &impl Serialize) -> Result<String, String> {
    let mut text = b"before ".to_vec();
    let ours = append(&mut text, value)
        .map(|()| String::from_utf8(text.split_off(7)).unwrap())
        .map_err(|error| error.to_string());
    assert_eq!(ours, serde_json::to_string(value).map_err(|error| error.to_string()));
    assert!(text.starts_with(b"before "), "what was there stays");
    ours
}

#[derive(Serialize)]
struct Shapes<'a> {
    unit: (),
    nothing: Nothing,
    wrapped: Wrapped,
    pair: Pair,
    tuple: (u8, &'a str, char),
    kinds: Vec<Kind>,
    missing: Option<u8>,
    present: Option<Option<i128>>,
    empty: [u8; 0],
    bytes: Bytes,
    names: BTreeMap<Kind, bool>,
    raw: &'a RawValue,
}

#[derive(Serialize)]
struct Nothing;

#[derive(Serialize)]
struct Wrapped(f32);

#[derive(Serialize)]
struct Pair(i8, u64);

#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Plain,
    #[serde(rename = "with \"quotes\"")]
    One(i64),
    Two(u16, i16),
    Named {
        first: u32,
    },
    Bare {},
}

struct Bytes;

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&[0, 7, 255])
    }
}

#[test]
fn every_shape_is_as_serde_json_writes_it() {
    let raw = RawValue::from_string("{ \"kept\" : [1.50,\n2] }".to_owned()).unwrap();
    let shapes = Shapes {
        unit: (),
        nothing: Nothing,
        wrapped: Wrapped(0.1),
        pair: Pair(-128, u64::MAX),
        tuple: (0, "\u{7f}\u{2028}", '\n'),
        kinds: vec![
            Kind::Plain,
            Kind::One(i64::MIN),
            Kind::Two(1, -1),
            Kind::Named { first: 2 },
            Kind::Bare {},
        ],
        missing: None,
        present: Some(Some(i128::MAX)),
        empty: [],
        bytes: Bytes,
        names: BTreeMap::from([(Kind::Plain, true)]),
        raw: &raw,
    };
    let text = written(&shapes).unwrap();
    assert!(text.ends_with(",\"raw\":{ \"kept\" : [1.50,\n2] }}"), "{text}");
    written(&vec![raw.clone(), raw]).unwrap();
    written(&json!({"one": {}, "two": [[], [null]], "three": 1e300, "four": -0.0})).unwrap();
    written(&[f64::NAN, f64::INFINITY, f64::MIN_POSITIVE]).unwrap();
}

#[test]
fn member_names_that_are_no_strings_are_quoted_or_refused() {
    assert_eq!(written(&BTreeMap::from([(-1, 'a'), (20, 'b')])).unwrap(), r#"{"-1":"a","20":"b"}"#);
    assert_eq!(written(&BTreeMap::from([(true, ()), (false, ())])).unwrap(), r#"{"false":null,"true":null}"#);
    assert_eq!(written(&BTreeMap::from([('"', 1)])).unwrap(), r#"{"\"":1}"#);
    assert_eq!(written(&BTreeMap::from([(Some("some"), 1)])).unwrap(), r#"{"some":1}"#);
    for refused in [written(&BTreeMap::from([((), 1)])), written(&BTreeMap::from([([1], 1)]))] {
        assert_eq!(refused, Err("key must be a string".to_owned()));
    }
    assert!(written(&BTreeMap::from([(Kind::Named { first: 1 }, 1)])).is_err());
}

#[test]
fn every_byte_is_written_at_every_place() {
    for code in 0..=0xff_u8 {
        for before in 0..=2 * STEP {
            let text = format!("{}{}{}", "x".repeat(before), char::from(code), "y".repeat(STEP));
            written(&text).unwrap();
        }
    }
}

fn values() -> impl Strategy<Value = Value> {
    let numbers = prop_oneof![
        any::<i64>().prop_map(Number::from),
        any::<u64>().prop_map(Number::from),
        any::<f64>().prop_filter_map("finite", Number::from_f64),
    ];
    let leaves = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        numbers.prop_map(Value::Number),
        "(\\PC|[\x00-\x1f\"\\\\]){0,80}".prop_map(Value::from),
    ];
    leaves.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((".{0,12}", inner), 0..8)
                .prop_map(|members| Value::from(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_as_serde_json_writes_it(value in values()) {
        written(&value).unwrap();
    }
}
