//! The type of a row of the method tables. The rows themselves are in `methods.rs`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::gate::ExperimentalGate;

/// Anything that travels as params, result or notification payload.
pub trait Payload: Serialize + DeserializeOwned + Named + ExperimentalGate + Send + 'static {}
impl<T: Serialize + DeserializeOwned + Named + ExperimentalGate + Send + 'static> Payload for T {}

/// A type with a schema. `#[wire]` writes the implementations.
pub trait Named {
    /// The name in the exports.
    const NAME: &'static str;

    #[cfg(all(feature = "schema", debug_assertions))]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema;
}

/// A request: a method with params and a response. Implemented by the marker types of the tables.
pub trait RequestMethod: 'static {
    const METHOD: &'static str;
    type Params: Payload;
    type Response: Payload;

    /// Requests with the same key are handled in arrival order.
    fn order_key(_params: &Self::Params) -> Option<&str> {
        None
    }
}

/// A notification: a method with params and no response.
pub trait NotificationMethod: 'static {
    const METHOD: &'static str;
    type Params: Payload;
}

/// Who may use a method, and whether stable exports show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodStage {
    Stable,
    /// Needs the experimental capability; absent from stable exports.
    Experimental,
    /// Needs the experimental capability; stable exports show it because the reference's do.
    ExperimentalListed,
}

/// The order of a request among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderKey {
    /// After every earlier request of the same connection that names no thread.
    Connection,
    /// After every earlier request about the same thread, from any connection.
    Thread,
}

/// Where the schema of a payload is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaFolder {
    Root,
    V1,
    V2,
}

/// The rights of a connection at a host. Each role may do all that those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientRole {
    /// Reads and follows.
    Viewer,
    /// Also decides.
    Approver,
    /// Also starts and stops.
    Operator,
    /// Also configures.
    Admin,
}

impl ClientRole {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Viewer, "viewer"),
        (Self::Approver, "approver"),
        (Self::Operator, "operator"),
        (Self::Admin, "admin"),
    ];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == word).map(|(role, _)| *role)
    }

    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(role, _)| *role == self).map_or("viewer", |(_, word)| word)
    }
}

/// One row of a table.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub about: &'static str,
    pub stage: MethodStage,
    pub order: OrderKey,
    pub folder: SchemaFolder,
    /// The least role that may use it at a host. Every request of a client has one.
    pub role: Option<ClientRole>,
    pub params: WireType,
    /// `None` for notifications.
    pub response: Option<WireType>,
}

impl Method {
    pub(crate) const fn request<R: RequestMethod>(about: &'static str) -> Self {
        Self { response: Some(WireType::of::<R::Response>()), ..Self::new::<R::Params>(R::METHOD, about) }
    }
    pub(crate) const fn notification<N: NotificationMethod>(about: &'static str) -> Self {
        Self::new::<N::Params>(N::METHOD, about)
    }
    const fn new<P: Payload>(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            about,
            stage: MethodStage::Stable,
            order: OrderKey::Connection,
            folder: SchemaFolder::V2,
            role: None,
            params: WireType::of::<P>(),
            response: None,
        }
    }

    // The flags a row may carry, by the names the tables use.
    pub(crate) const fn experimental(self) -> Self {
        Self { stage: MethodStage::Experimental, ..self }
    }
    pub(crate) const fn experimental_listed(self) -> Self {
        Self { stage: MethodStage::ExperimentalListed, ..self }
    }
    pub(crate) const fn in_order_of(self, _field: &'static str) -> Self {
        Self { order: OrderKey::Thread, ..self }
    }
    pub(crate) const fn root(self) -> Self {
        Self { folder: SchemaFolder::Root, ..self }
    }
    pub(crate) const fn v1(self) -> Self {
        Self { folder: SchemaFolder::V1, ..self }
    }

    pub(crate) const fn viewer(self) -> Self {
        Self { role: Some(ClientRole::Viewer), ..self }
    }
    pub(crate) const fn approver(self) -> Self {
        Self { role: Some(ClientRole::Approver), ..self }
    }
    pub(crate) const fn operator(self) -> Self {
        Self { role: Some(ClientRole::Operator), ..self }
    }
    pub(crate) const fn admin(self) -> Self {
        Self { role: Some(ClientRole::Admin), ..self }
    }

    /// The reason to refuse this method on a connection without the experimental capability.
    pub fn experimental_descriptor(&self) -> Option<&'static str> {
        (self.stage != MethodStage::Stable).then_some(self.name)
    }
}

/// A payload type as data: its name; for the generator its schema; in tests also a way through Rust and back, which would put the code
/// to read and to write every type into every program.
#[derive(Debug, Clone, Copy)]
pub struct WireType {
    pub name: &'static str,
    #[cfg(all(feature = "schema", debug_assertions))]
    pub(crate) schema: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// Decodes the text and encodes it again, like a peer that knows all fields.
    #[cfg(feature = "round-trip")]
    pub round_trip: fn(&str) -> Result<String, crate::DecodeError>,
}

impl WireType {
    pub const fn of<T: Payload>() -> Self {
        Self {
            name: T::NAME,
            #[cfg(all(feature = "schema", debug_assertions))]
            schema: T::schema,
            #[cfg(feature = "round-trip")]
            round_trip: round_trip::<T>,
        }
    }
}

#[cfg(feature = "round-trip")]
fn round_trip<T: Payload>(text: &str) -> Result<String, crate::DecodeError> {
    let value: T = crate::decode::decode(text)?;
    serde_json::to_string(&value)
        .map_err(|error| crate::decode::DecodeError::new(error.to_string(), String::new()))
}

/// For methods without params: absent, null and `{}` are all fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoParams;
crate::gate::never_gated!(NoParams);

impl Named for NoParams {
    const NAME: &'static str = "NoParams";

    #[cfg(all(feature = "schema", debug_assertions))]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Self>()
    }
}

impl Serialize for NoParams {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

impl<'de> serde::Deserialize<'de> for NoParams {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}
