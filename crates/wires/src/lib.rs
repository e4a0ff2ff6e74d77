//! Owns the translation between the engine's format (a Responses request, Responses stream events) and those of
//! providers: Responses, Chat, Messages. Must not know I/O, retries or keys.

mod answer_check;
mod blob;
mod capabilities;
mod chat;
mod decoder;
mod digest;
mod encoder;
mod failure;
mod ids;
mod json;
mod messages;
mod order;
mod piece;
mod responses;
mod responses_writer;
mod schema;
mod shared_bytes;
mod tools;
mod usage;
mod vendor_class;

pub use capabilities::{CallIds, Capabilities, ReasoningReturn, Thinking};
pub use decoder::Decoder;
pub use encoder::{EncodedRequest, Encoder};
pub use failure::{HttpRefusal, http_failure, no_stream};
pub use responses_writer::{ResponsesWriter, error_code};

/// A wire format of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wire {
    #[default]
    Responses,
    /// OpenAI-compatible chat completions.
    Chat,
    /// Anthropic's Messages.
    Messages,
}

impl Wire {
    /// The path of requests after a base URL that ends with the version.
    pub fn path(self) -> &'static str {
        match self {
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }

    /// The name in `wire_api`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }
}

/// A request that this wire or provider does not support, found before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model provider {provider} cannot take {feature} over the wire `{wire}`")]
pub struct Unsupported {
    pub provider: String,
    pub wire: &'static str,
    pub feature: String,
}
