//! Reading a payload, with errors that name the field.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::method::Named;
use crate::{diagnose, schemas};

/// Why a payload was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct DecodeError {
    message: String,
    path: String,
}

impl DecodeError {
    pub(crate) fn new(message: String, path: String) -> Self {
        Self { message, path }
    }

    /// Where in the payload: `input[0].text`. Empty when the payload as a whole is wrong.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Starts with serde's text, which existing clients compare; the path is our addition.
    fn sentence(&self) -> String {
        if self.path.is_empty() || self.message.contains(&format!("`{}`", self.path)) {
            self.message.clone()
        } else {
            format!("{} at `{}`", self.message, self.path)
        }
    }
}

/// Decodes one payload. The schema is consulted only when decoding fails, to find the offending field: a decoder that
/// kept track of where it is would cost every message, and twice the code.
pub fn decode<T: DeserializeOwned + Named>(text: &str) -> Result<T, DecodeError> {
    serde_json::from_str(text).map_err(|error| mismatch(T::NAME, text, &error))
}

/// The place of the mismatch. Not generic, so that it is compiled only once.
#[cold]
fn mismatch(name: &'static str, text: &str, error: &serde_json::Error) -> DecodeError {
    let path = match serde_json::from_str::<Value>(text) {
        Ok(value) => diagnose::first_mismatch(&schemas::of(name), &value).unwrap_or_default(),
        Err(_) => String::new(),
    };
    DecodeError::new(without_position(error), path)
}

pub(crate) fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&position).map(str::to_owned).unwrap_or(text)
}
