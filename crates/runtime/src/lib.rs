//! Owns threads as actors that drive the engine and carry out its effects: records, model requests, tools, questions.
//! Must not know JSON-RPC or sockets.

mod account;
mod actor;
mod agents;
mod audience;
mod bridge;
mod carry_out;
mod catalogues;
mod command_exec;
mod debug_prompt;
mod delegation;
mod end_calls;
mod environment_methods;
mod error;
mod external_agent;
mod fork;
mod git;
mod handle;
mod host_choices;
mod host_record;
mod hydrate;
mod ids;
mod images;
mod instructions;
mod listeners;
mod load;
mod manage;
mod models;
mod open;
mod open_checks;
mod open_host;
mod open_items;
mod opened;
mod prompts;
mod providers;
mod put_away;
mod reading;
mod record;
mod recover;
mod runtime;
mod services;
mod settings;
mod skills;
mod surroundings;
mod take_up;
mod tasks;
mod threads;
mod tool_set;
mod tools;
mod turns;
mod uploads;
mod weight;
mod workbench;

#[cfg(test)]
mod prompt_sections_tests;
#[cfg(test)]
mod testing;

pub use self::tools::{Progress, ToolJob, ToolRunner};
pub use audience::{Audience, BoxFuture};
pub use bridge::shown_bridge_url;
pub use command_exec::{ClientCommands, CommandExecError, DeltaSink};
pub use config;
pub use debug_prompt::{PromptDescription, PromptOf, PromptSection};
pub use delegation::{
    DELEGATION_FEATURES, DELEGATION_VERSION, DelegatedTransport, DelegationError, Host, HostError, HostId,
    Seat,
};
pub use engine::{FragmentText, Question, Refusal, Reply, Stamp, approximate_tokens, fragments_of};
pub use environments::{EnvironmentError, attached_selections};
pub use error::RuntimeError;
pub use handle::{Answer, Snapshot, Then, ThreadHandle, TurnOptions};
pub use host_choices::HostChoices;
pub use host_record::HostRecord;
pub use instructions::InstructionOptions;
pub use journal::{StoreEvent, StoreOptions};
pub use listeners::OwnListeners;
pub use models::{
    ApplyPatchType, Catalogue, CatalogueError, Instructions, ModelEntry, Overrides as ModelOverrides,
    ShellType, Upgrade, WebSearchContent,
};
pub use opened::{HostAnswer, Opened};
pub use protocol;
pub use providers::Identity;
pub use runtime::{Runtime, RuntimeOptions};
pub use sandbox::seal_process;
pub use services::{Clock, Services, SystemClock, ThreadPlan, open_thread};
pub use settings::{SettingsChange, StepMaker, ThreadSettings};
pub use skills::SkillChoices;
pub use workbench::ToolSettings;
