//! Owns a running thread: the actor that drives the engine and performs its effects exactly as emitted, and the handle
//! that sends it commands. Must not know how threads are opened, listed or found, nor JSON-RPC.

mod audience;
mod ids;
mod services;
mod thread;
mod tool_settings;

pub use audience::{Audience, BoxFuture};
pub use ids::IdMaker;
pub use journal::{InvalidThreadId, check_thread_id, is_uuid};
pub use services::{ClockExt, Services, ThreadPlan, open_thread};
pub use thread::capture::{NextRequest, complete_step};
pub use thread::error::ThreadError;
pub use thread::handle::{Remembered, ReviewOptions, Snapshot, Still, Then, ThreadHandle, TurnOptions};
pub use thread::hooks::ThreadHooks;
pub use thread::images::images_folder;
pub use thread::notify::NotifyCommand;
pub use thread::recover::{agreed_rules, recover};
pub use thread::resume_turn::{UndeliveredInput, is_resumable, pending, resolve};
pub use thread::settings::{SettingsChange, StepMaker, StepWork, ThreadSettings};
pub use thread::tool_jobs::{Progress, ToolJob, ToolRunner};
pub use tool_settings::ToolSettings;
