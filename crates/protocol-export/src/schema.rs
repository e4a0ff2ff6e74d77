//! JSON Schema: one file per payload and per envelope, and two bundles with everything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{File, Surface};
use protocol::schemas::{self, Contract, REFERENCE, references};
use protocol::{
    CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, ErrorDataCode, JsonRpcError, JsonRpcErrorError, JsonRpcMessage,
    JsonRpcNotification, JsonRpcRequest, JsonRpcResponse, Method, MethodStage, Named, NoParams, RequestId,
    SERVER_NOTIFICATIONS, SERVER_REQUESTS, SchemaFolder,
};

const DIALECT: &str = "http://json-schema.org/draft-07/schema#";
const BUNDLE: &str = "codex_app_server_protocol.schemas.json";
const FLAT_BUNDLE: &str = "codex_app_server_protocol.v2.schemas.json";

/// The union types, one per direction.
pub(super) const UNIONS: [(&str, &[Method], bool); 4] = [
    ("ClientRequest", CLIENT_REQUESTS, true),
    ("ServerRequest", SERVER_REQUESTS, true),
    ("ServerNotification", SERVER_NOTIFICATIONS, false),
    ("ClientNotification", CLIENT_NOTIFICATIONS, false),
];

/// The types of the envelope; each has a file of its own too.
const ENVELOPE: [&str; 7] = [
    RequestId::NAME,
    JsonRpcError::NAME,
    JsonRpcErrorError::NAME,
    JsonRpcMessage::NAME,
    JsonRpcNotification::NAME,
    JsonRpcRequest::NAME,
    JsonRpcResponse::NAME,
];

/// All schema files of a surface.
pub fn json_schema(surface: Surface) -> Vec<File> {
    let catalogue = SchemaCatalogue::new(surface, Contract::Read);
    let mut files = BTreeMap::new();
    for (name, folder) in catalogue.documents() {
        let path = match folder {
            SchemaFolder::Root => format!("{name}.json"),
            SchemaFolder::V1 => format!("v1/{name}.json"),
            SchemaFolder::V2 => format!("v2/{name}.json"),
        };
        files.insert(path, catalogue.document(&name));
    }
    files.insert(BUNDLE.to_owned(), catalogue.bundle());
    files.insert(FLAT_BUNDLE.to_owned(), catalogue.flat_bundle());
    files.into_iter().map(|(path, schema)| File { path, text: pretty(&schema) }).collect()
}

fn pretty(schema: &Value) -> String {
    // Printing a `Value` cannot fail: its keys are strings and its numbers finite.
    format!("{schema:#}\n")
}

/// Every named type of a surface as a schema whose references point at `#/definitions/NAME`.
pub(super) struct SchemaCatalogue {
    pub(super) definitions: BTreeMap<String, Value>,
    folders: BTreeMap<String, SchemaFolder>,
}

impl SchemaCatalogue {
    pub(super) fn new(surface: Surface, contract: Contract) -> Self {
        let mut folders: BTreeMap<String, SchemaFolder> =
            ENVELOPE.iter().map(|name| ((*name).to_owned(), SchemaFolder::Root)).collect();
        // Most of these words belong to what is experimental.
        if surface == Surface::Experimental {
            folders.insert(ErrorDataCode::NAME.to_owned(), SchemaFolder::Root);
        }
        let mut definitions = schemas::definitions(contract);
        for (name, methods, has_id) in UNIONS {
            let shown: Vec<&Method> = methods.iter().filter(|method| shows(surface, method)).collect();
            let variants = shown.iter().map(|method| variant(method, has_id)).collect();
            definitions.insert(name.to_owned(), json!({ "title": name, "oneOf": Value::Array(variants) }));
            folders.insert(name.to_owned(), SchemaFolder::Root);
            for method in shown {
                let types = [Some(method.params), method.response].into_iter().flatten();
                let named = types.filter(|wire| wire.name != NoParams::NAME);
                folders.extend(named.map(|wire| (wire.name.to_owned(), method.folder)));
            }
        }
        for (name, schema) in &mut definitions {
            filter(surface, schema);
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("title".to_owned(), Value::String(name.clone()));
            }
        }
        let mut catalogue = Self { definitions, folders };
        catalogue.drop_unreachable();
        catalogue
    }

    /// Types only hidden fields and variants led to are not part of the surface.
    fn drop_unreachable(&mut self) {
        let mut reached: BTreeSet<String> = self.folders.keys().cloned().collect();
        for name in self.folders.keys() {
            self.reach(name, &mut reached);
        }
        self.definitions.retain(|name, _| reached.contains(name));
    }

    fn reach(&self, name: &str, reached: &mut BTreeSet<String>) {
        let Some(schema) = self.definitions.get(name) else { return };
        let mut names = Vec::new();
        references(schema, &mut names);
        for name in names {
            if reached.insert(name.clone()) {
                self.reach(&name, reached);
            }
        }
    }

    /// The types that have a file of their own.
    fn documents(&self) -> impl Iterator<Item = (String, SchemaFolder)> {
        self.folders.iter().map(|(name, folder)| (name.clone(), *folder))
    }

    /// One type as a document of its own, with all it refers to.
    fn document(&self, name: &str) -> Value {
        let mut reached = BTreeSet::new();
        self.reach(name, &mut reached);
        let mut document = Map::new();
        document.insert("$schema".to_owned(), json!(DIALECT));
        if let Some(Value::Object(schema)) = self.definitions.get(name) {
            document.extend(schema.clone());
        }
        let definitions: Map<String, Value> = reached
            .iter()
            .filter_map(|name| Some((name.clone(), self.definitions.get(name)?.clone())))
            .collect();
        if !definitions.is_empty() {
            document.insert("definitions".to_owned(), Value::Object(definitions));
        }
        Value::Object(document)
    }

    /// Everything in one document, types of the second protocol version under `definitions/v2`.
    fn bundle(&self) -> Value {
        let in_v2 = self.names_of_v2();
        let mut root = Map::new();
        let mut v2 = Map::new();
        for (name, schema) in &self.definitions {
            let mut schema = schema.clone();
            point_into_v2(&mut schema, &in_v2);
            if in_v2.contains(name) { &mut v2 } else { &mut root }.insert(name.clone(), schema);
        }
        root.insert("v2".to_owned(), Value::Object(v2));
        document_of("CodexAppServerProtocol", root)
    }

    fn flat_bundle(&self) -> Value {
        let in_v2 = self.names_of_v2();
        let unions = ["ClientRequest", "ServerNotification"];
        let mut wanted: BTreeSet<String> = in_v2.into_iter().chain(unions.map(str::to_owned)).collect();
        for union in unions {
            self.reach(union, &mut wanted);
        }
        let definitions = self
            .definitions
            .iter()
            .filter(|(name, _)| wanted.contains(*name))
            .map(|(name, schema)| (name.clone(), schema.clone()));
        document_of("CodexAppServerProtocolV2", definitions.collect())
    }

    /// The second version's payloads and all they are made of.
    fn names_of_v2(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for (name, folder) in &self.folders {
            if *folder == SchemaFolder::V2 {
                names.insert(name.clone());
                self.reach(name, &mut names);
            }
        }
        names
    }
}

fn document_of(title: &str, definitions: Map<String, Value>) -> Value {
    let definitions = Value::Object(definitions);
    json!({ "$schema": DIALECT, "title": title, "type": "object", "definitions": definitions })
}

pub(super) fn shows(surface: Surface, method: &Method) -> bool {
    surface == Surface::Experimental || method.stage != MethodStage::Experimental
}

/// One arm of a union: the message with this method.
fn variant(method: &Method, has_id: bool) -> Value {
    let no_params = method.params.name == NoParams::NAME;
    let params = if no_params { json!({ "type": "null" }) } else { reference(method.params.name) };
    let mut required = vec!["method"];
    let mut properties = Map::new();
    if has_id {
        properties.insert("id".to_owned(), reference(RequestId::NAME));
        required.insert(0, "id");
    }
    properties.insert("method".to_owned(), json!({ "type": "string", "enum": [method.name] }));
    if !no_params {
        required.push("params");
    }
    // A notification without params is the method alone.
    if has_id || !no_params {
        properties.insert("params".to_owned(), params);
    }
    json!({ "type": "object", "description": method.about.trim(), "required": required, "properties": properties })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{REFERENCE}{name}") })
}

/// Takes hidden fields and variants out of a stable surface, and the marks out of every surface.
fn filter(surface: Surface, schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for word in ["oneOf", "anyOf"] {
                if let Some(Value::Array(variants)) = object.get_mut(word) {
                    variants.retain(|variant| !is_hidden(surface, variant));
                }
            }
            let mut gone = Vec::new();
            if let Some(Value::Object(properties)) = object.get_mut("properties") {
                properties.retain(|name, property| {
                    let keep = !is_hidden(surface, property);
                    if !keep {
                        gone.push(Value::String(name.clone()));
                    }
                    keep
                });
            }
            if let Some(Value::Array(required)) = object.get_mut("required") {
                required.retain(|name| !gone.contains(name));
            }
            object.shift_remove(MARK);
            object.values_mut().for_each(|value| filter(surface, value));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| filter(surface, value)),
        _ => {}
    }
}

/// The key that `#[experimental(...)]` sets in a schema.
const MARK: &str = "x-experimental";

fn is_hidden(surface: Surface, schema: &Value) -> bool {
    surface == Surface::Stable && schema.get(MARK).is_some_and(|mark| mark == "hidden")
}

fn point_into_v2(schema: &mut Value, in_v2: &BTreeSet<String>) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(REFERENCE)
                && in_v2.contains(name)
            {
                *reference = format!("{REFERENCE}v2/{name}");
            }
            object.values_mut().for_each(|value| point_into_v2(value, in_v2));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| point_into_v2(value, in_v2)),
        _ => {}
    }
}
