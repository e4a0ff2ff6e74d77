//! Owns threads as actors that drive the engine and carry out its effects: records, model requests, tools, questions.
//! Must not know JSON-RPC or sockets.

mod account;
mod actor;
mod audience;
mod bounded;
mod carry_out;
mod catalogues;
mod command_exec;
mod error;
mod fork;
mod git;
mod handle;
mod ids;
mod images;
mod instructions;
mod load;
mod manage;
mod models;
mod open;
mod open_checks;
mod opened;
mod prompts;
mod providers;
mod record;
mod recover;
mod runtime;
mod services;
mod settings;
mod surroundings;
mod tasks;
mod threads;
mod tools;
mod turns;
mod workbench;

pub use self::tools::{Progress, ToolJob, ToolRunner};
pub use audience::{Audience, BoxFuture};
pub use command_exec::{ClientCommands, CommandExecError, DeltaSink};
pub use config;
pub use engine::{Question, Refusal, Reply, Stamp};
pub use error::RuntimeError;
pub use handle::{Answer, Snapshot, Then, ThreadHandle, TurnOptions};
pub use instructions::InstructionOptions;
pub use journal::{StoreEvent, StoreOptions};
pub use models::{
    ApplyPatchType, Catalogue, CatalogueError, Instructions, ModelEntry, Overrides as ModelOverrides,
    ShellType, Upgrade, WebSearchContent,
};
pub use opened::Opened;
pub use providers::Identity;
pub use runtime::{Runtime, RuntimeOptions};
pub use services::{Clock, Services, SystemClock, ThreadPlan, open_thread};
pub use settings::{SettingsChange, StepMaker, ThreadSettings};
pub use workbench::ToolSettings;
