//! The messages in `tests/wire/`, one JSON object per line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use oarlock_protocol::{
    CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, DecodeError, Method, SERVER_NOTIFICATIONS, SERVER_REQUESTS,
    WireType,
};
use serde_json::{Value, json};

/// Which way a message goes, and which of a method's types it carries.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) name: &'static str,
    pub(crate) methods: &'static [Method],
    pub(crate) wire: fn(&Method) -> Option<WireType>,
}

/// `clientResponse` is the server's answer to a client request, `serverResponse` the client's answer to a server request.
pub(crate) static DIRECTIONS: [Direction; 6] = [
    Direction { name: "clientRequest", methods: CLIENT_REQUESTS, wire: params },
    Direction { name: "clientResponse", methods: CLIENT_REQUESTS, wire: response },
    Direction { name: "serverRequest", methods: SERVER_REQUESTS, wire: params },
    Direction { name: "serverResponse", methods: SERVER_REQUESTS, wire: response },
    Direction { name: "serverNotification", methods: SERVER_NOTIFICATIONS, wire: params },
    Direction { name: "clientNotification", methods: CLIENT_NOTIFICATIONS, wire: params },
];

fn params(method: &Method) -> Option<WireType> {
    Some(method.params)
}

fn response(method: &Method) -> Option<WireType> {
    method.response
}

/// One recorded message.
#[derive(Debug, Clone)]
pub(crate) struct Fixture {
    /// File and line.
    pub(crate) place: String,
    pub(crate) direction: &'static Direction,
    pub(crate) method: &'static Method,
    pub(crate) payload: Value,
}

impl Fixture {
    pub(crate) fn wire(&self) -> WireType {
        (self.direction.wire)(self.method).expect("responses exist in request tables only")
    }

    /// Through the payload's Rust type and back.
    pub(crate) fn round_trip(&self, text: &str) -> Result<String, DecodeError> {
        (self.wire().round_trip)(text)
    }

    /// As a line of a fixture file.
    pub(crate) fn line(&self) -> String {
        json!({ "direction": self.direction.name, "method": self.method.name, "payload": self.payload })
            .to_string()
    }
}

/// All fixtures, by file name and line.
pub(crate) fn all() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let entries = fs::read_dir(&folder).expect("tests/wire exists");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("tests/wire can be read").path()).collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

fn read(file: &Path) -> Vec<Fixture> {
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = fs::read_to_string(file).expect("a fixture file is UTF-8");
    text.lines().zip(1..).map(|(line, number)| fixture(format!("{name}:{number}"), line)).collect()
}

fn fixture(place: String, line: &str) -> Fixture {
    let message = parse(line);
    let word = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
    let direction = DIRECTIONS
        .iter()
        .find(|direction| direction.name == word("direction"))
        .unwrap_or_else(|| panic!("{place}: no such direction"));
    let method = direction
        .methods
        .iter()
        .find(|method| method.name == word("method"))
        .unwrap_or_else(|| panic!("{place}: no such method in this direction"));
    let payload = message.get("payload").cloned().unwrap_or_else(|| panic!("{place}: no payload"));
    Fixture { place, direction, method, payload }
}

pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("not JSON: {error}: {text}"))
}

/// Where two values differ, with what is there: `/turn/status: "failed" became "completed"`.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(before), Some(after), &mut found);
    found
}

fn compare(pointer: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<String>) {
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            keys.iter()
                .for_each(|key| compare(&format!("{pointer}/{key}"), one.get(*key), other.get(*key), found));
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                compare(&format!("{pointer}/{index}"), one.get(index), other.get(index), found);
            }
        }
        _ if before == after => {}
        _ => {
            let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            found.push(format!("{pointer}: {} became {}", show(before), show(after)));
        }
    }
}
