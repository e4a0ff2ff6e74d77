//! The small building blocks of wire types: ids, absolute paths, tri-state fields and pass-through JSON.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::gate::{ExperimentalGate, never_gated};

macro_rules! string_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(all(feature = "schema", debug_assertions), derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            pub fn into_string(self) -> String {
                self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }
        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        never_gated!($name);
    )* };
}

string_ids! {
    /// A thread, as a UUID.
    ThreadId;
    /// One turn of a thread.
    TurnId;
    /// One item of a turn. Tool items carry the model's call id.
    ItemId;
    /// Anything that waits for the host or has an effect: `threadId:turnId:callId[:approvalId]`. Stable across restarts.
    OperationId;
    /// One attempt at one model call: `turnId:n:aN`.
    ModelRequestId;
    /// One model call of a turn: `turnId:n`. The unit of single flight.
    SegmentId;
    /// A place where tools run.
    EnvironmentId;
    /// The names of an agent's ancestors and its own, from the root, joined by `/`.
    AgentPath;
}

/// An absolute path as text. Decoding refuses a relative one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AbsolutePath(String);
never_gated!(AbsolutePath);

impl AbsolutePath {
    /// `None` when the path is relative.
    pub fn new(path: impl Into<String>) -> Option<Self> {
        let path = path.into();
        is_absolute(&path).then_some(Self(path))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A drive letter counts too, so that a host on another system can describe its own paths.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    path.starts_with('/')
        || path.starts_with("\\\\")
        || (bytes.len() > 2
            && bytes[0].is_ascii_alphabetic()
            && bytes[1] == b':'
            && matches!(bytes[2], b'\\' | b'/'))
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AbsolutePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Known clients compare this sentence, which is why it does not say "relative path".
        Self::new(String::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("AbsolutePathBuf deserialized without a base path"))
    }
}

/// A field for which missing and null differ: missing keeps the value, null clears it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TriState<T> {
    #[default]
    Keep,
    Clear,
    Set(T),
}

impl<T> TriState<T> {
    pub fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
    /// The value after the change, given the one before it.
    pub fn apply(self, previous: Option<T>) -> Option<T> {
        match self {
            Self::Keep => previous,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<T> ExperimentalGate for TriState<T> {
    fn in_use(&self) -> bool {
        !self.is_keep()
    }
}

impl<T: Serialize> Serialize for TriState<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Set(value) => serializer.serialize_some(value),
            Self::Keep | Self::Clear => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TriState<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<T>::deserialize(deserializer)?.map_or(Self::Clear, Self::Set))
    }
}

/// JSON that only passes through: kept as the text it arrived as, never parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Raw(Box<RawValue>);
never_gated!(Raw);

impl Raw {
    /// The text must be one JSON value.
    pub fn parse(text: String) -> serde_json::Result<Self> {
        RawValue::from_string(text).map(Self)
    }
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}
