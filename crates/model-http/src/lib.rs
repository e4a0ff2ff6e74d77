//! Owns how a model request reaches a model: over HTTP with its retries and its event stream, or by the offline model
//! inside the binary. Must not know threads, tools, or configuration files.

mod client;
mod endpoint;
mod event;
mod headers;
mod offline;
mod options;
mod rate_limits;
mod relay;
mod retry;
mod secret;
mod sse;
mod stream;
mod transport;
mod unavailable;

pub use offline::{Asked, Leftover, OfflineModel, Outcome, Reply, Responder, Script, ScriptError, serve};
pub use options::{ClientOptions, Provider, ProviderError};
pub use relay::Relay;
pub use secret::Secret;
pub use transport::HttpTransport;
pub use unavailable::UnavailableTransport;
