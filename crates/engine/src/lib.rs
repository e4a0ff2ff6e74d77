//! Owns the turn as a state machine, the model's history, context fragments, the Step, and compaction as data. Must not
//! know tokio, files, HTTP or JSON-RPC: time, ids and randomness come in with every input.

mod calls;
mod canonical;
mod citation;
mod compaction;
mod context;
mod decision;
mod digest;
mod effect;
mod goal;
mod grants;
mod history;
mod hooks;
mod ids;
mod input;
mod items;
mod plan_text;
mod proposal;
mod refusal;
mod request;
mod review;
mod status;
mod step;
mod thread;
mod tokens;
mod truncate;
mod turn;

pub use calls::{TOOL_SEARCH, ToolCall, ToolPayload};
pub use canonical::digest_of;
pub use compaction::SUMMARY_PREFIX;
pub use context::{FragmentText, describe, fragments_of, subagent_notification, turn_aborted};
pub use decision::ProposalDecision;
pub use effect::Effect;
pub use goal::GoalChange;
pub use history::{History, is_user_turn};
pub use hooks::{HookDecision, HookOccasion, HookPoints, HookVerdict};
pub use ids::Stamp;
pub use input::{
    ChildEnd, Input, OperationEnd, OutsideMessage, PluginText, SkillText, StorageFailure, ToolOutcome,
    UserText,
};
pub use proposal::{Proposal, Question, Reply};
pub use refusal::Refusal;
pub use review::ReviewOrder;
pub use step::{
    DirectCalls, EnvironmentState, Gate, ModelInfo, PluginLine, Reach, SkillLine, Step, StepEnvironment,
    SubagentLine, ToolKind, ToolNamespace, ToolSpec, Truncation, effective_cwd,
};
pub use thread::{ThreadMachine, ThreadSeed};
pub use tokens::{TokenPrice, approximate_tokens};
pub use truncate::truncate_middle;
pub use turn::earlier::{Earlier, EarlierState};
pub use turn::operation::operation_of;
pub use turn::resume::UNKNOWN_OUTCOME;
pub use turn::said::said_with;
pub use turn::shell::{NO_EXIT, SHELL_ABORTED, USER_SHELL, user_shell_result};
