//! The wire as plain data, read once from the schemas, for exporters that print another language.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Surface;
use super::schema::{SchemaCatalogue, UNIONS, shows};
use protocol::schemas::Contract;
use protocol::{
    CLIENT_NOTIFICATIONS, CLIENT_REQUESTS, Method, Named, NoParams, SERVER_NOTIFICATIONS, SERVER_REQUESTS,
};

/// All named types of a surface and the four method tables.
#[derive(Debug)]
pub(super) struct ExportModel {
    /// By name. The four message unions (`ClientRequest` …) are not among them; print those from the tables.
    pub(super) types: BTreeMap<String, Type>,
    pub(super) client_requests: Vec<MethodRow>,
    pub(super) server_requests: Vec<MethodRow>,
    pub(super) server_notifications: Vec<MethodRow>,
    pub(super) client_notifications: Vec<MethodRow>,
}

/// Types that clients only send back as the server wrote them, so they are as complete as anything received.
const PASSED_BACK: [&str; 2] = ["RolloutItem", "Turn"];

/// A method with the names of its payload types.
#[derive(Debug)]
pub(super) struct MethodRow {
    pub(super) method: &'static str,
    pub(super) about: &'static str,
    pub(super) experimental: bool,
    /// `None` for a method without params.
    pub(super) params: Option<String>,
    /// `None` for a notification.
    pub(super) response: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Type {
    pub(super) about: Option<String>,
    pub(super) shape: Shape,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    Any,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    /// One of these strings.
    Literals(Vec<Literal>),
    Reference(String),
    List(Box<Shape>),
    Map(Box<Shape>),
    Object(ObjectShape),
    /// With a tag, every variant is an object in which that field is a constant, or another such union (told apart by
    /// a tag of its own, and then all its variants share the constant).
    Union {
        tag: Option<String>,
        variants: Vec<Type>,
    },
    Nullable(Box<Shape>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Literal {
    pub(super) value: String,
    pub(super) about: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ObjectShape {
    /// In the order they are declared.
    pub(super) fields: Vec<Field>,
    pub(super) extra: Extra,
}

/// How an object treats fields that are not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extra {
    /// Ignored when unknown.
    Ignored,
    /// Part of the value.
    Kept,
    /// Refused.
    Refused,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    /// As on the wire.
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) shape: Shape,
    /// May be left out.
    pub(super) optional: bool,
    /// The default for a missing field, if it is not null.
    pub(super) default: Option<Value>,
}

impl ExportModel {
    /// As a reader that must accept every valid message sees it.
    pub(super) fn for_reading(surface: Surface) -> Self {
        Self::new(surface, &SchemaCatalogue::new(surface, Contract::Read))
    }

    /// As a caller of the server sees it: what it sends may leave out all that is optional, what it receives has every
    /// field the server always writes.
    pub(super) fn for_callers(surface: Surface) -> Self {
        let mut model = Self::for_reading(surface);
        let written = Self::new(surface, &SchemaCatalogue::new(surface, Contract::Written));
        let sent_by_clients = model.sent_by_clients();
        for (name, ty) in written.types {
            if !sent_by_clients.contains(&name) {
                model.types.insert(name, ty);
            }
        }
        model
    }

    fn new(surface: Surface, catalogue: &SchemaCatalogue) -> Self {
        let is_union = |name: &str| UNIONS.iter().any(|(union, ..)| *union == name);
        let types = catalogue.definitions.iter().filter(|(name, _)| !is_union(name));
        Self {
            types: types.map(|(name, schema)| (name.clone(), read_type(schema))).collect(),
            client_requests: rows(surface, CLIENT_REQUESTS),
            server_requests: rows(surface, SERVER_REQUESTS),
            server_notifications: rows(surface, SERVER_NOTIFICATIONS),
            client_notifications: rows(surface, CLIENT_NOTIFICATIONS),
        }
    }

    fn sent_by_clients(&self) -> BTreeSet<String> {
        let params = self
            .client_requests
            .iter()
            .chain(&self.client_notifications)
            .filter_map(|row| row.params.clone());
        let answers = self.server_requests.iter().filter_map(|row| row.response.clone());
        let mut open: Vec<String> = params.chain(answers).collect();
        let mut reached = BTreeSet::new();
        while let Some(name) = open.pop() {
            if !PASSED_BACK.contains(&name.as_str())
                && reached.insert(name.clone())
                && let Some(ty) = self.types.get(&name)
            {
                ty.shape.references(&mut open);
            }
        }
        reached
    }
}

impl Shape {
    /// The names this shape mentions, once per mention.
    pub(super) fn references(&self, names: &mut Vec<String>) {
        match self {
            Self::Reference(name) => names.push(name.clone()),
            Self::List(inner) | Self::Map(inner) | Self::Nullable(inner) => inner.references(names),
            Self::Object(object) => object.fields.iter().for_each(|field| field.shape.references(names)),
            Self::Union { variants, .. } => {
                variants.iter().for_each(|variant| variant.shape.references(names));
            }
            _ => {}
        }
    }

    /// The constant of an object's field, if it is one.
    pub(super) fn constant(&self, field: &str) -> Option<&str> {
        match self {
            Self::Object(object) => match &object.fields.iter().find(|other| other.name == field)?.shape {
                Self::Literals(literals) if literals.len() == 1 => Some(&literals[0].value),
                _ => None,
            },
            Self::Union { variants, .. } => {
                let first = variants.first()?.shape.constant(field)?;
                variants.iter().all(|variant| variant.shape.constant(field) == Some(first)).then_some(first)
            }
            _ => None,
        }
    }
}

fn rows(surface: Surface, methods: &[Method]) -> Vec<MethodRow> {
    let row = |method: &Method| MethodRow {
        method: method.name,
        about: method.about.trim(),
        experimental: method.experimental_descriptor().is_some(),
        params: (method.params.name != NoParams::NAME).then(|| method.params.name.to_owned()),
        response: method.response.map(|response| response.name.to_owned()),
    };
    methods.iter().filter(|method| shows(surface, method)).map(row).collect()
}

fn read_type(schema: &Value) -> Type {
    Type { about: about(schema), shape: read(schema) }
}

fn about(schema: &Value) -> Option<String> {
    schema.get("description").and_then(Value::as_str).map(str::to_owned)
}

fn read(schema: &Value) -> Shape {
    let Some(schema) = schema.as_object() else { return Shape::Any };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return Shape::Reference(reference.rsplit('/').next().unwrap_or_default().to_owned());
    }
    if let Some([only]) = schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        return read(only);
    }
    if let Some(values) = constants(schema) {
        return Shape::Literals(values);
    }
    for word in ["oneOf", "anyOf"] {
        if let Some(variants) = schema.get(word).and_then(Value::as_array) {
            return read_union(schema, variants);
        }
    }
    let kinds: Vec<&str> = match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Shape::Any,
    };
    let shapes: Vec<Shape> =
        kinds.iter().filter(|kind| **kind != "null").map(|kind| read_kind(kind, schema)).collect();
    nullable(kinds.contains(&"null"), untagged(shapes))
}

fn read_kind(kind: &str, schema: &Map<String, Value>) -> Shape {
    match kind {
        "boolean" => Shape::Boolean,
        "integer" => Shape::Integer,
        "number" => Shape::Number,
        "string" => Shape::String,
        "array" => Shape::List(Box::new(schema.get("items").map_or(Shape::Any, read))),
        "object" => read_object(schema),
        _ => Shape::Any,
    }
}

fn read_object(schema: &Map<String, Value>) -> Shape {
    let properties = schema.get("properties").and_then(Value::as_object);
    let extra = match (properties, schema.get("additionalProperties")) {
        (None, Some(values @ (Value::Object(_) | Value::Bool(true)))) => {
            return Shape::Map(Box::new(read(values)));
        }
        (_, Some(Value::Bool(false))) => Extra::Refused,
        (_, Some(_)) => Extra::Kept,
        (_, None) => Extra::Ignored,
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let field = |(name, property): (&String, &Value)| Field {
        name: name.clone(),
        about: about(property),
        shape: read(property),
        optional: !required.contains(&name.as_str()),
        default: property.get("default").filter(|default| !default.is_null()).cloned(),
    };
    Shape::Object(ObjectShape { fields: properties.into_iter().flatten().map(field).collect(), extra })
}

fn read_union(schema: &Map<String, Value>, variants: &[Value]) -> Shape {
    let is_null = |variant: &&Value| variant.get("type").is_some_and(|kind| kind == "null");
    let null = variants.iter().any(|variant| is_null(&variant));
    let mut types: Vec<Type> = variants.iter().filter(|variant| !is_null(variant)).map(read_type).collect();
    // Fields beside the union belong to every variant.
    if schema.contains_key("properties")
        && let Shape::Object(shared) = read_object(schema)
    {
        types.iter_mut().for_each(|ty| ty.shape.prepend(&shared.fields));
    }
    let tags = types.first().map_or(Vec::new(), |first| candidate_tags(&first.shape));
    let tag = tags
        .into_iter()
        .find(|tag| types.len() > 1 && types.iter().all(|ty| ty.shape.constant(tag).is_some()));
    let shape = match (tag, types.len()) {
        (None, 1) => types.remove(0).shape,
        (tag, _) => Shape::Union { tag, variants: types },
    };
    nullable(null, shape)
}

impl Shape {
    fn prepend(&mut self, shared: &[Field]) {
        match self {
            Self::Object(object) => {
                // The tag stays first, where a reader looks for it.
                let at = usize::from(!object.fields.is_empty());
                object.fields.splice(at..at, shared.iter().cloned());
            }
            Self::Union { variants, .. } => {
                variants.iter_mut().for_each(|variant| variant.shape.prepend(shared));
            }
            _ => {}
        }
    }
}

fn candidate_tags(shape: &Shape) -> Vec<String> {
    match shape {
        Shape::Object(object) => object
            .fields
            .iter()
            .filter(|field| shape.constant(&field.name).is_some())
            .map(|field| field.name.clone())
            .collect(),
        Shape::Union { variants, .. } => {
            variants.first().map_or(Vec::new(), |first| candidate_tags(&first.shape))
        }
        _ => Vec::new(),
    }
}

/// The strings a schema allows, if it allows nothing else.
fn constants(schema: &Map<String, Value>) -> Option<Vec<Literal>> {
    let text =
        |value: &Value, about: Option<String>| Some(Literal { value: value.as_str()?.to_owned(), about });
    if let Some(constant) = schema.get("const") {
        let about = schema.get("description").and_then(Value::as_str).map(str::to_owned);
        return Some(vec![text(constant, about)?]);
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(|value| text(value, None)).collect();
    }
    let variants = schema.get("oneOf")?.as_array()?;
    let all: Option<Vec<_>> = variants.iter().map(|variant| constants(variant.as_object()?)).collect();
    all.map(|all| all.into_iter().flatten().collect())
}

fn untagged(mut shapes: Vec<Shape>) -> Shape {
    match shapes.len() {
        0 => Shape::Null,
        1 => shapes.remove(0),
        _ => Shape::Union {
            tag: None,
            variants: shapes.into_iter().map(|shape| Type { about: None, shape }).collect(),
        },
    }
}

fn nullable(null: bool, shape: Shape) -> Shape {
    match shape {
        // Anything may be null already.
        Shape::Any | Shape::Null | Shape::Nullable(_) => shape,
        shape if null => Shape::Nullable(Box::new(shape)),
        shape => shape,
    }
}
