//! Owns the way of a model request to a model: over HTTP with retries and an event stream, or to the built-in offline
//! model. Must not know threads, tools, or configuration files.

mod encoders;
mod endpoint;
mod event;
mod headers;
mod model_list;
mod near_names;
mod offline;
mod options;
mod output_limits;
mod pauses;
mod rate_limits;
mod refusals;
mod relay;
mod retry;
mod secret;
mod stream;
mod translator;
mod transport;
mod unavailable;

pub use model_list::{ListedModel, ModelLister};
pub use offline::{
    Leftover, ModelScript, OfflineModel, OfflineReply, OfflineRequest, OfflineResponder, Outcome,
    ScriptError, serve,
};
pub use options::{ClientOptions, Provider, ProviderError};
pub use relay::Relay;
pub use secret::Secret;
pub use translator::{RefusedTranslation, Translation, Translator};
pub use transport::HttpTransport;
pub use unavailable::{UnavailableTransport, WAYS_OUT};
pub use wires::{Capabilities, ResponsesWriter, Thinking, Wire};
