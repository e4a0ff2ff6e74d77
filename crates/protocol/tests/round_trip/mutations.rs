//! Damaged messages: no panic, no half-read value, and errors that name the field.

use std::collections::BTreeMap;
use std::thread;

use oarlock_protocol::DecodeError;
use serde_json::{Value, json};

use crate::fixtures::{Fixture, all, parse};
use crate::place::Place;
use crate::random::Random;

/// A change to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Dropped,
    Nulled,
    WrongKind,
    OutOfRange,
    RelativePath,
    UnknownWord,
    UnknownField,
    ListTwice,
    ListInList,
    Deep,
}

/// A damaged message and the place of the damage.
#[derive(Debug, Clone)]
pub(crate) struct Mutation {
    pub(crate) change: Change,
    pub(crate) place: Place,
    pub(crate) text: String,
}

#[test]
fn damaged_messages_are_refused_by_name_or_read_for_good() {
    let fixtures = all();
    let half = fixtures.len().div_ceil(2);
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let workers: Vec<_> = fixtures
            .chunks(half)
            .map(|fixtures| scope.spawn(|| fixtures.iter().map(damage).collect()))
            .collect();
        let join =
            |worker: thread::ScopedJoinHandle<'_, Vec<_>>| worker.join().expect("no damage makes it panic");
        workers.into_iter().flat_map(join).collect()
    });
    let mut counts: BTreeMap<Change, (usize, usize)> = BTreeMap::new();
    for (change, was_read) in outcomes.iter().flat_map(|outcome| &outcome.counted) {
        let (read, refused) = counts.entry(*change).or_default();
        *if *was_read { read } else { refused } += 1;
    }
    for (change, (read, refused)) in &counts {
        println!("{change:?}: {read} read, {refused} refused");
    }
    let nameless: Vec<&str> =
        outcomes.iter().flat_map(|outcome| &outcome.nameless).map(String::as_str).collect();
    assert!(nameless.is_empty(), "{} errors name no field:\n{}", nameless.len(), nameless.join("\n"));
}

/// The outcome of one fixture's damage.
#[derive(Default)]
struct Outcome {
    /// Each change, and whether the message could still be read.
    counted: Vec<(Change, bool)>,
    nameless: Vec<String>,
}

fn damage(fixture: &Fixture) -> Outcome {
    let mut outcome = Outcome::default();
    let mut random = Random::new(fixture.place.bytes().map(u64::from).sum());
    for mutation in mutations(&fixture.payload, &mut random) {
        let result = fixture.round_trip(&mutation.text);
        outcome.counted.push((mutation.change, result.is_ok()));
        match result {
            Ok(once) => {
                let twice =
                    fixture.round_trip(&once).unwrap_or_else(|error| panic!("{fixture}: {error}: {once}"));
                assert_eq!(once, twice, "{fixture}: {:?} at {}", mutation.change, mutation.place);
            }
            Err(error) => {
                assert!(!error.to_string().is_empty(), "{fixture}: an error without words");
                if !is_named(&error, &mutation) {
                    outcome.nameless.push(report(fixture, &mutation, &error));
                }
            }
        }
    }
    outcome
}

/// Whether the error leads to the damage: its path goes there, or its words hold the name.
fn is_named(error: &DecodeError, mutation: &Mutation) -> bool {
    let Mutation { change, place, text } = mutation;
    let inside = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let leads_there = error.path().strip_prefix(&place.field().to_string()).is_some_and(inside);
    let says_so = place.name().is_none_or(|name| error.to_string().contains(&format!("`{name}`")));
    let excused = match change {
        // The parser gives up on depth before it knows the field.
        Change::Deep => true,
        // An object that lost its only field has nothing left to tell which one that was.
        Change::Dropped => {
            let parent = place.parent();
            parent.find(&parse(text)) == Some(&json!({})) && error.path() == parent.to_string()
        }
        _ => false,
    };
    leads_there || says_so || excused
}

fn report(fixture: &Fixture, mutation: &Mutation, error: &DecodeError) -> String {
    let Mutation { change, place, text } = mutation;
    format!("{fixture}: {change:?} at {place}, got: {error} [{}]\n    {text}", error.path())
}

/// Every field and element damaged in every way that suits it.
pub(crate) fn mutations(payload: &Value, random: &mut Random) -> Vec<Mutation> {
    let places = Place::all(payload);
    if places.is_empty() {
        return Vec::new();
    }
    let (deep, _) = random.pick(&places).clone();
    let deep = Mutation::new(payload, &deep, Change::Deep, Some(json!(DEEP)));
    let shallow: Vec<_> =
        places.iter().flat_map(|(place, value)| at_place(payload, place, value, random)).collect();
    random.some_of(shallow, AT_MOST).into_iter().chain([deep]).collect()
}

/// Mutations of one message. Refusing one costs the schema of its type, so the largest messages are sampled.
const AT_MOST: usize = 60;

fn at_place(payload: &Value, place: &Place, value: &Value, random: &mut Random) -> Vec<Mutation> {
    let mut changes = vec![
        (Change::Dropped, None),
        (Change::Nulled, Some(Value::Null)),
        (Change::WrongKind, Some(another_kind(value, random))),
    ];
    match value {
        Value::String(text) => {
            changes.push((Change::UnknownWord, Some(json!("aWordOfTheFuture"))));
            if text.starts_with('/') {
                changes.push((Change::RelativePath, Some(json!(text.trim_start_matches('/')))));
            }
        }
        Value::Number(_) => {
            let extremes = [
                json!(-1),
                json!(70_000),
                json!(1_u64 << 40),
                json!(i64::MIN),
                json!(u64::MAX),
                json!(1e300),
            ];
            changes.push((Change::OutOfRange, Some(random.pick(&extremes).clone())));
        }
        Value::Array(elements) => {
            changes.push((Change::ListTwice, Some(elements.iter().chain(elements).cloned().collect())));
            changes.push((Change::ListInList, Some(json!([elements]))));
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            fields.insert("addedLater".to_owned(), json!({ "since": 2, "why": [null, "unknown"] }));
            changes.push((Change::UnknownField, Some(Value::Object(fields))));
        }
        Value::Null | Value::Bool(_) => {}
    }
    let mutation = |(change, replacement)| Mutation::new(payload, place, change, replacement);
    changes.into_iter().map(mutation).collect()
}

impl Mutation {
    fn new(payload: &Value, place: &Place, change: Change, replacement: Option<Value>) -> Self {
        let mut payload = payload.clone();
        place.set(&mut payload, replacement);
        let text = payload.to_string().replace(&format!("\"{DEEP}\""), &nested(20_000));
        Self { change, place: place.clone(), text }
    }
}

/// Stands for a value too deep to build: dropping it would need as much stack as reading it.
const DEEP: &str = "@deep@";

fn nested(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

fn another_kind(value: &Value, random: &mut Random) -> Value {
    let kind = std::mem::discriminant(value);
    let all = [
        json!(true),
        json!(7),
        json!(3.5),
        json!("text"),
        json!([]),
        json!(["text"]),
        json!({}),
        json!({ "a": 1 }),
    ];
    let others: Vec<Value> = all.into_iter().filter(|other| std::mem::discriminant(other) != kind).collect();
    random.pick(&others).clone()
}
