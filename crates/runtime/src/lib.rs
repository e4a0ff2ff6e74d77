//! Owns the threads of a process: opening, listing and closing them, building their requests, child agents, and the
//! methods of the protocol. Must not know JSON-RPC or sockets.

mod agents;
mod error;
mod listeners;
mod memory_runs;
mod methods;
mod open;
mod providers;
mod runtime;
mod state;
mod step;
#[cfg(test)]
mod testing;

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
pub use driver::{
    Audience, BoxFuture, NotifyCommand, Progress, ReviewOptions, Services, SettingsChange, Snapshot,
    StepMaker, StepWork, Then, ThreadError, ThreadHandle, ThreadHooks, ThreadPlan, ThreadSettings, ToolJob,
    ToolRunner, ToolSettings, TurnOptions, open_thread,
};
pub use engine::{FragmentText, Question, Refusal, Reply, Stamp, approximate_tokens, fragments_of};
pub use environments::{EnvironmentError, attached_selections};
pub use error::RuntimeError;
pub use journal::{StoreEvent, StoreOptions};
pub use listeners::OwnListeners;
pub use methods::debug_prompt::{PromptDescription, PromptOf, PromptSection};
pub use methods::fs::PathWatch;
pub use methods::fuzzy_file_search::SearchUpdates;
pub use methods::manage::DeletedThreads;
pub use methods::server_status::ThreadCounts;
pub use methods::thread_pages::{items_page, turns_page};
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
pub use sandbox::{has_command_user, seal_process};
pub use skills::SkillChoices;
pub use support::{Clock, Responder, SystemClock};
pub use traces::{TraceSettings, Tracer};
pub use workspace::{FileError, InstructionOptions, SearchError, SearchSession};
