//! The schemas of all types the method tables and the envelope lead to. Taking them from the types needs a good deal
//! of code per type, so programs carry the result instead: a compressed file that `cargo xtask generate` writes.
//! With the feature `schema` they come from the types themselves, in builds for development alone: a release build of
//! the whole workspace, where the feature is on, must not carry that code.

#[cfg(all(feature = "schema", debug_assertions))]
mod by_hand;
#[cfg(all(feature = "schema", debug_assertions))]
mod collect;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

#[cfg(all(feature = "schema", debug_assertions))]
pub use collect::packed;

/// The content of the file. A build for development makes it anew.
#[cfg(not(all(feature = "schema", debug_assertions)))]
pub fn packed() -> Vec<u8> {
    PACKED.to_vec()
}

/// How a schema refers to another one.
pub const REFERENCE: &str = "#/definitions/";

#[cfg(any(test, not(all(feature = "schema", debug_assertions))))]
static PACKED: &[u8] = include_bytes!("schemas.json.zz");

/// The side that a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contract {
    /// All that a reader accepts.
    Read,
    /// The output of a writer, with every field it never leaves out.
    Written,
}

/// The content of the file. The values are parsed on first use.
#[derive(Deserialize, Default)]
struct Schemas<'a> {
    #[serde(borrow)]
    read: BTreeMap<Cow<'a, str>, &'a RawValue>,
    /// Only those that differ from how they are read.
    #[serde(borrow)]
    written: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

impl<'a> Schemas<'a> {
    fn parse(text: &'a str) -> Self {
        // Nobody but us writes the file, and a test reads it.
        serde_json::from_str(text).unwrap_or_default()
    }
}

/// Every named type, with its experimental parts and their marks.
pub fn definitions(contract: Contract) -> BTreeMap<String, Value> {
    with(|Schemas { read, written }| {
        let written = (contract == Contract::Written).then_some(written);
        let all = read.iter().chain(written.into_iter().flatten());
        // The later of two with the same name stays.
        all.map(|(name, schema)| (name.clone().into_owned(), value(schema))).collect()
    })
}

/// The schema a reader of one type needs, with all it refers to. Made once per type: a client that sends nonsense must
/// not make the server unpack schemas all day.
pub(crate) fn of(name: &'static str) -> Arc<Value> {
    static MADE: Mutex<BTreeMap<&'static str, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock();
    Arc::clone(made.entry(name).or_insert_with(|| Arc::new(with(|schemas| with_references(name, schemas)))))
}

fn with_references(name: &str, schemas: &Schemas<'_>) -> Value {
    let mut definitions = Map::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        if !definitions.contains_key(&name)
            && let Some(schema) = schemas.read.get(name.as_str())
        {
            let schema = value(schema);
            references(&schema, &mut open);
            definitions.insert(name, schema);
        }
    }
    json!({ "$ref": format!("{REFERENCE}{name}"), "definitions": Value::Object(definitions) })
}

/// The names a schema mentions, once per mention.
pub fn references(schema: &Value, names: &mut Vec<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                names.extend(reference.strip_prefix(REFERENCE).map(str::to_owned));
            }
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}

fn value(schema: &RawValue) -> Value {
    // It was read as JSON before.
    serde_json::from_str(schema.get()).unwrap_or_default()
}

#[cfg(all(feature = "schema", debug_assertions))]
fn with<R>(read: impl FnOnce(&Schemas<'_>) -> R) -> R {
    static ALL: std::sync::OnceLock<Schemas<'static>> = std::sync::OnceLock::new();
    read(ALL.get_or_init(|| Schemas::parse(collect::text())))
}

/// Unpacked for the moment: a server needs them too rarely to keep them in memory.
#[cfg(not(all(feature = "schema", debug_assertions)))]
fn with<R>(read: impl FnOnce(&Schemas<'_>) -> R) -> R {
    read(&Schemas::parse(&unpacked()))
}

#[cfg(any(test, not(all(feature = "schema", debug_assertions))))]
fn unpacked() -> String {
    // As for parsing: the bytes are part of the program, and a test unpacks them.
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib(PACKED).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(all(test, feature = "schema", debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn the_packed_schemas_are_those_of_the_types() {
        assert!(unpacked() == collect::text(), "run `cargo xtask generate`");
        assert!(packed() == PACKED, "run `cargo xtask generate`");
    }

    #[test]
    fn both_contracts_cover_all_they_refer_to() {
        for contract in [Contract::Read, Contract::Written] {
            let definitions = definitions(contract);
            assert!(definitions.len() > 400, "{}", definitions.len());
            for (name, schema) in &definitions {
                let mut names = Vec::new();
                references(schema, &mut names);
                let missing: Vec<_> = names.iter().filter(|name| !definitions.contains_key(*name)).collect();
                assert!(missing.is_empty(), "{name} refers to {missing:?}");
            }
        }
    }

    #[test]
    fn a_writer_promises_more_than_a_reader_asks_for() {
        let required = |contract| {
            let definitions = definitions(contract);
            definitions["Thread"]["required"].as_array().map(Vec::len)
        };
        assert!(required(Contract::Written) > required(Contract::Read));
    }

    #[test]
    fn one_type_comes_with_what_it_refers_to_and_no_more() {
        let schema = of("TurnSteerParams");
        let definitions =
            schema["definitions"].as_object().map(|all| all.keys().cloned().collect::<Vec<_>>());
        let definitions = definitions.unwrap_or_default();
        assert!(definitions.contains(&"UserInput".to_owned()), "{definitions:?}");
        assert!(!definitions.contains(&"Thread".to_owned()), "{definitions:?}");
        assert!(Arc::ptr_eq(&schema, &of("TurnSteerParams")));
    }
}
