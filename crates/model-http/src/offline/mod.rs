//! The offline model: a test double and demo model inside the binary.
//!
//! It is no language model. It follows a handful of fixed rules ([`OfflineModel`]) or a script ([`ModelScript`]), so that the
//! runtime can be tried, shown and tested without a provider, a key or a network. Its answers begin with
//! `Offline model:`; it is used where somebody chose it by name, never in place of a provider that failed. What it
//! streams are real Responses events, read by the same code as a provider's.

mod clause;
mod conversation;
mod emit;
mod model;
mod output;
mod reply;
mod schema;
mod script;
mod script_step;
mod serve;
mod task;
mod toolbox;
mod wire;
mod words;
mod work;

pub use model::OfflineModel;
pub use reply::{OfflineReply, OfflineRequest, OfflineResponder, Outcome};
pub use script::{Leftover, ModelScript, ScriptError};
pub use serve::serve;
pub(crate) use wire::{ForeignRequest, read as read_request};
