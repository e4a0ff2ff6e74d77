//! `notify`: a program of the user that is notified of every completed turn.

use std::path::PathBuf;
use std::time::Duration;

use parking_lot::RwLock;
use protocol::{SandboxPolicy, ServerNotification, ThreadId, ThreadItem, TurnStatus, UserInput};
use sandbox::{Limits, Order, RunOptions};
use serde_json::{Value, json};
use support::blocking;
use tokio::task::JoinSet;
use tools::{BenchOptions, environment_outside};

/// Time limit of the program.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// How long closing a thread waits for it.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);
/// Limit of running programs. Beyond it no more are started: the running ones probably hang.
const MOST_RUNNING: usize = 8;

/// The program of a thread, which a reload may change.
#[derive(Debug, Default)]
pub struct NotifyCommand {
    argv: RwLock<Option<Vec<String>>>,
    /// The client that opened the thread.
    client: Option<String>,
}

impl NotifyCommand {
    pub fn new(argv: Option<Vec<String>>, client: Option<String>) -> Self {
        Self { argv: RwLock::new(argv), client }
    }

    pub fn replace(&self, argv: Option<Vec<String>>) {
        *self.argv.write() = argv;
    }
}

/// Follows a thread's turns, and starts the program when one is completed.
#[derive(Debug, Default)]
pub(crate) struct TurnNotifier {
    said: Vec<String>,
    last_answer: Option<String>,
    running: JoinSet<()>,
}

/// Where the program runs.
#[derive(Debug)]
pub(crate) struct NotifySite<'a> {
    pub(crate) cwd: &'a str,
    pub(crate) sandbox: &'a SandboxPolicy,
    pub(crate) options: &'a BenchOptions,
}

impl TurnNotifier {
    /// Handles a notification for clients.
    pub(crate) fn note(
        &mut self,
        command: &NotifyCommand,
        thread_id: &ThreadId,
        notification: &ServerNotification,
        site: &NotifySite<'_>,
    ) {
        let Some(argv) = command.argv.read().clone() else { return };
        match notification {
            ServerNotification::TurnStarted(_) => (self.said, self.last_answer) = (Vec::new(), None),
            ServerNotification::ItemCompleted(done) => match &done.item {
                ThreadItem::UserMessage { content, .. } => self.said.push(words(content)),
                ThreadItem::AgentMessage { text, .. } => self.last_answer = Some(text.clone()),
                _ => {}
            },
            ServerNotification::TurnCompleted(done) if done.turn.status == TurnStatus::Completed => {
                let mut payload = json!({
                    "type": "agent-turn-complete",
                    "thread-id": thread_id,
                    "turn-id": done.turn.id,
                    "cwd": site.cwd,
                    "input-messages": self.said,
                    "last-assistant-message": self.last_answer,
                });
                if let Some(client) = &command.client {
                    payload["client"] = json!(client);
                }
                self.start(argv, &payload, site);
            }
            _ => {}
        }
    }

    /// The program is the user's choice and runs without a sandbox. It gets the environment of commands, except for
    /// variables with paths to files that commands could have written.
    fn start(&mut self, mut argv: Vec<String>, payload: &Value, site: &NotifySite<'_>) {
        while self.running.try_join_next().is_some() {}
        if self.running.len() >= MOST_RUNNING {
            tracing::warn!("the notify program is not started: {MOST_RUNNING} of it still run");
            return;
        }
        argv.push(payload.to_string());
        let (cwd, sandbox) = (PathBuf::from(site.cwd), site.sandbox.clone());
        let (env, off_limits) = (site.options.env.clone(), site.options.off_limits.clone());
        let order = move || Order {
            argv,
            env: environment_outside(&env, &sandbox, &cwd, &off_limits),
            cwd: if cwd.is_dir() { cwd } else { PathBuf::from("/") },
            confinement: None,
            limits: Limits::default(),
            terminal: false,
        };
        self.running.spawn(async move {
            let Ok(order) = blocking(order).await else { return };
            let options = RunOptions { timeout: Some(RUN_LIMIT), cap_bytes: 1024, ..RunOptions::default() };
            if let Err(error) = sandbox::run(order, options).await {
                tracing::warn!(%error, "the notify program could not be started");
            }
        });
    }

    /// Waits briefly for the programs to end.
    pub(crate) async fn close(&mut self) {
        let all = async { while self.running.join_next().await.is_some() {} };
        if tokio::time::timeout(CLOSE_LIMIT, all).await.is_err() {
            self.running.shutdown().await;
        }
    }
}

fn words(content: &[UserInput]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        UserInput::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
