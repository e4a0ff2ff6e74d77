//! Owns the translation between the one language of the engine (a Responses request, Responses stream events) and what
//! providers speak: Responses, Chat, Messages. Must not know I/O, retries or keys.

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

/// A language that providers speak.
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
    /// Where requests go below a base URL that ends with the version.
    pub fn path(self) -> &'static str {
        match self {
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }

    /// As it is written in `wire_api`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }
}

/// A request that this wire or provider cannot carry, found before a byte is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model provider {provider} cannot take {feature} over the wire `{wire}`")]
pub struct Unsupported {
    pub provider: String,
    pub wire: &'static str,
    pub feature: String,
}
