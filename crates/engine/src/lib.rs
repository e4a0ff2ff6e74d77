//! Owns the turn as a state machine, the history the model sees, context fragments, the Step, and compaction as data.
//! Must not know tokio, files, HTTP or JSON-RPC: time, ids and randomness come in with every input.

mod calls;
mod compaction;
mod context;
mod effect;
mod grants;
mod history;
mod ids;
mod input;
mod items;
mod plan_text;
mod proposal;
mod request;
mod sampling;
mod status;
mod step;
mod thread;
mod tokens;
mod truncate;
mod turn;
mod turn_calls;
mod turn_compaction;
mod turn_proposals;
mod turn_shell;
mod turn_stream;
mod work;

pub use calls::{ToolCall, ToolPayload};
pub use compaction::SUMMARY_PREFIX;
pub use context::turn_aborted;
pub use effect::Effect;
pub use history::{History, is_contextual};
pub use ids::Stamp;
pub use input::{Input, Refusal, ToolOutcome, UserText};
pub use proposal::{Proposal, Question, Reply, Verdict};
pub use step::{ModelInfo, Step, ToolKind, ToolSpec, Truncation};
pub use thread::{Thread, ThreadSeed};
pub use tokens::approximate_tokens;
pub use truncate::truncate_middle;
pub use turn_shell::USER_SHELL;
