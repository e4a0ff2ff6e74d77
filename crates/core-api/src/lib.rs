//! Owns the small public face to embed the runtime in a program of your own: threads, turns, their events, and answers
//! to what they ask. Must not know the server.
//!
//! A [`ThreadManager`] opens threads, a [`ManagedThread`] begins turns, a [`TurnStream`] tells what happens in one.
//! Everything is to be called within a Tokio runtime with its timers and I/O enabled.
//!
//! # One turn
//!
//! The provider `offline` is a small model of fixed rules inside the runtime: it needs no key and no network. Leave it
//! out, and the configured provider answers.
//!
//! ```
//! use oarlock_core_api::{ThreadManager, ThreadOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! let manager = ThreadManager::builder().home(home.path()).provider("offline").build()?;
//! let thread = manager.start_thread(ThreadOptions::default()).await?;
//!
//! let finished = thread.submit("Say hello").await?.finish().await?;
//! assert_eq!(finished.message.as_deref(), Some("Offline model: hello"));
//!
//! manager.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Events as they come
//!
//! A stream is bounded, and no event is left out: while it is full, its turn waits. Dropping it lets the turn go on
//! unobserved.
//!
//! ```
//! use oarlock_core_api::protocol::{TurnStatus, ThreadItem};
//! use oarlock_core_api::{ThreadEvent, ThreadManager, ThreadOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let manager = ThreadManager::builder().home(home.path()).provider("offline").build()?;
//! let thread = manager.start_thread(ThreadOptions::default()).await?;
//! let mut turn = thread.submit("Run `echo one two three`").await?;
//!
//! let mut spoken = String::new();
//! let mut commands = Vec::new();
//! while let Some(event) = turn.next().await {
//!     match event {
//!         ThreadEvent::Delta(_) => spoken.push_str(event.message_delta().unwrap_or_default()),
//!         ThreadEvent::ItemCompleted(ThreadItem::CommandExecution { exit_code, .. }) => commands.push(exit_code),
//!         _ => {}
//!     }
//! }
//!
//! let finished = turn.finish().await?;
//! assert_eq!(finished.status, TurnStatus::Completed);
//! assert_eq!(finished.message, Some(spoken));
//! assert_eq!(commands, [Some(0)]);
//! # manager.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Approvals
//!
//! An action that needs approval comes as an event and waits. A request that is dropped is declined, so a program that
//! knows nothing of approvals allows nothing.
//!
//! ```
//! use oarlock_core_api::protocol::{AskForApproval, SandboxMode};
//! use oarlock_core_api::{ThreadEvent, Subject, ThreadManager, ThreadOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (home, workspace) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! # let manager = ThreadManager::builder().home(home.path()).provider("offline").build()?;
//! let options = ThreadOptions {
//!     cwd: Some(workspace.path().to_owned()),
//!     approval_policy: Some(AskForApproval::Untrusted),
//!     sandbox: Some(SandboxMode::WorkspaceWrite),
//!     ..ThreadOptions::default()
//! };
//! let thread = manager.start_thread(options).await?;
//! let mut turn = thread.submit("Run `touch wanted` then run `touch unwanted`").await?;
//! while let Some(event) = turn.next().await {
//!     if let ThreadEvent::Approval(request) = event {
//!         let line = match request.subject() {
//!             Subject::Command(asked) => asked.command.clone().unwrap_or_default(),
//!             _ => String::new(),
//!         };
//!         if line.contains("unwanted") { request.decline() } else { request.accept() }
//!     }
//! }
//! assert!(workspace.path().join("wanted").exists());
//! assert!(!workspace.path().join("unwanted").exists());
//! # manager.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! # After a restart
//!
//! The input of every accepted turn, and every item that ended, is in the home folder.
//!
//! ```
//! use oarlock_core_api::{ListOptions, ThreadManager, ThreadOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # {
//! #     let manager = ThreadManager::builder().home(home.path()).provider("offline").build()?;
//! #     let thread = manager.start_thread(ThreadOptions::default()).await?;
//! #     thread.submit("Say hello").await?.finish().await?;
//! #     manager.shut_down().await;
//! # }
//! // Another process, another day.
//! let manager = ThreadManager::builder().home(home.path()).build()?;
//! let stored = manager.list_threads(ListOptions::default()).await?;
//! let thread = manager.resume_thread(&stored.data[0].id, ThreadOptions::default()).await?;
//! assert_eq!(thread.turns().await?.len(), 1);
//!
//! thread.submit("Say hello again").await?.finish().await?;
//! assert_eq!(thread.turns().await?.len(), 2);
//! # manager.shut_down().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Sandboxed commands
//!
//! Commands run under a helper process, which is your own executable started again under another name and taken over
//! before its `main`. A program that links this crate has it without doing anything; a shared library that is loaded
//! into another program has not, because there the executable is not yours. Call [`seal_process`] early in `main` to
//! keep the agent's commands from looking into your process.

#![warn(missing_docs)]

mod builder;
mod error;
mod event;
mod input;
mod manager;
mod options;
mod request;
mod switchboard;
mod thread;
mod turn;

pub use builder::ThreadManagerBuilder;
pub use error::ManagerError;
pub use event::{Delta, DeltaKind, ThreadEvent};
pub use input::TurnInput;
pub use manager::ThreadManager;
pub use options::{ListOptions, ThreadOptions, TurnOverrides};
pub use request::{ApprovalRequest, PermissionRequest, Subject, ToolCallRequest, UserQuestion};
pub use runtime::{protocol, seal_process};
pub use thread::ManagedThread;
pub use turn::{FinishedTurn, TurnStream};
