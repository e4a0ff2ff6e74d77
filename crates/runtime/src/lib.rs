//! Owns threads as actors that drive the engine and carry out its effects: records, model requests, tools, questions.
//! Must not know JSON-RPC or sockets.

mod agents;
mod audience;
mod error;
mod ids;
mod listeners;
mod memory_runs;
mod methods;
mod open;
mod providers;
mod runtime;
mod sandboxed_git;
mod services;
mod state;
mod step;
#[cfg(test)]
mod testing;
mod thread;

pub use audience::{Audience, BoxFuture};
pub use catalogue::{
    ApplyPatchType, Catalogue, CatalogueError, Instructions, ModelEntry, Overrides as ModelOverrides,
    ShellType, Upgrade, WebSearchContent,
};
pub use command_exec::{ClientCommands, CommandExecError, DeltaSink};
pub use config;
pub use delegation::{
    DELEGATION_FEATURES, DELEGATION_VERSION, DelegatedTransport, DelegationError, Host, HostChoices,
    HostError, HostId, HostRecord, HostSession,
};
pub use engine::{FragmentText, Question, Refusal, Reply, Stamp, approximate_tokens, fragments_of};
pub use environments::{EnvironmentError, attached_selections};
pub use error::RuntimeError;
pub use journal::{StoreEvent, StoreOptions};
pub use listeners::OwnListeners;
pub use methods::debug_prompt::{PromptDescription, PromptOf, PromptSection};
pub use methods::fs::PathWatch;
pub use methods::fuzzy_file_search::SearchUpdates;
pub use methods::turn::ClientId;
pub use model_http::{ListedModel, WAYS_OUT};
pub use open::opened::{HostAnswer, OpenedThread};
pub use plugins::PluginError;
pub use protocol;
pub use providers::bridge::shown_bridge_url;
pub use providers::directory::ModelDirectory;
pub use providers::identity::{ClientIdentity, Opener};
pub use providers::logins::LoginDone;
pub use runtime::{Runtime, RuntimeOptions};
pub use sandbox::seal_process;
pub use services::{Clock, Services, SystemClock, ThreadPlan, open_thread};
pub use skills::SkillChoices;
pub use step::tool_settings::ToolSettings;
pub use support::Responder;
pub use thread::error::ThreadError;
pub use thread::handle::{ReviewOptions, Snapshot, Then, ThreadHandle, TurnOptions};
pub use thread::hooks::ThreadHooks;
pub use thread::notify::NotifyCommand;
pub use thread::settings::{SettingsChange, StepMaker, StepWork, ThreadSettings};
pub use thread::tool_jobs::{Progress, ToolJob, ToolRunner};
pub use workspace::{FileError, InstructionOptions, SearchError, SearchSession};
