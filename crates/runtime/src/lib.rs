//! Owns threads as actors that drive the engine and carry out its effects: records, model requests, tools, questions.
//! Must not know JSON-RPC or sockets.

mod actor;
mod audience;
mod carry_out;
mod error;
mod handle;
mod record;
mod services;
mod tasks;
mod tools;

pub use audience::{Audience, BoxFuture};
pub use error::RuntimeError;
pub use handle::{ThreadHandle, TurnOptions};
pub use services::{Clock, Services, StepSource, SystemClock, ThreadPlan, open_thread};
pub use tools::{Progress, ToolRunner};
