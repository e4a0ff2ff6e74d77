//! Owns parsing command lines, known-safe and dangerous commands, rule files, and the approval matrix: policy, sandbox
//! and command determine whether to run, ask or forbid. Must not know processes or clients.

mod actions;
mod amendment;
mod argv;
mod content;
mod danger;
mod display;
mod executables;
#[doc(hidden)]
pub mod fuzzing;
mod git;
mod git_folders;
mod git_settings;
mod launch;
mod matrix;
mod offers;
mod patches;
mod quote;
mod refusal;
mod retry;
mod rules;
mod safe;
mod script;
mod session;
mod verdict;
mod why;

pub use actions::command_actions;
pub use amendment::runs_anything;
pub use argv::{CommandList, ShellScript, commands_of, shell_script};
pub use content::obeys_project;
pub use danger::is_dangerous;
pub use display::escape_for_display;
pub use executables::{Executables, Program, TRUSTED_FOLDERS};
pub use matrix::{CommandQuestion, decide};
pub use offers::{ApprovalOffer, available_decisions};
pub use patches::decide_patch;
pub use quote::shell_line;
pub use refusal::refuse_escalation;
pub use retry::{StoppedAttempt, looks_denied, may_retry_unsandboxed};
pub use rules::{
    Evaluation, PrefixRule, RuleDecision, RuleError, RuleFile, RuleMatch, RuleSource, RuleWarning, Rules,
    Unheld, WarningCause, append_allow_prefix,
};
pub use safe::is_known_safe;
pub use script::{PlainScript, Word, read_script};
pub use session::{SessionCall, SessionKey};
pub use verdict::{Escalation, PolicyVerdict, SandboxChoice};
pub use why::{Because, Ground, Why};
