//! Owns the turn as a state machine, the history the model sees, context fragments, the Step, and compaction as data.
//! Must not know tokio, files, HTTP or JSON-RPC: time, ids and randomness come in with every input.

mod calls;
mod canonical;
mod compaction;
mod context;
mod decision;
mod digest;
mod doing;
mod earlier;
mod effect;
mod grants;
mod history;
mod ids;
mod input;
mod items;
mod operation;
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
mod turn_resume;
mod turn_shell;
mod turn_stream;
mod turn_suspend;
mod work;

pub use calls::{ToolCall, ToolPayload};
pub use canonical::digest_of;
pub use compaction::SUMMARY_PREFIX;
pub use context::{FragmentText, describe, fragments_of, subagent_notification, turn_aborted};
pub use earlier::{Earlier, EarlierState};
pub use effect::Effect;
pub use history::{History, is_user_turn};
pub use ids::Stamp;
pub use input::{ChildEnd, Input, OperationEnd, Refusal, SkillText, ToolOutcome, UserText};
pub use operation::operation_of;
pub use proposal::{Proposal, Question, Reply, Verdict};
pub use step::{
    EnvironmentState, Gate, ModelInfo, Reach, SkillLine, Step, StepEnvironment, SubagentLine, ToolKind,
    ToolSpec, Truncation, effective_cwd,
};
pub use thread::{Thread, ThreadSeed};
pub use tokens::approximate_tokens;
pub use truncate::truncate_middle;
pub use turn_resume::UNKNOWN_OUTCOME;
pub use turn_shell::{NO_EXIT, SHELL_ABORTED, USER_SHELL, user_shell_result};
