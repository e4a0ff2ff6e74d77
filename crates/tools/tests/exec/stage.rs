//! A small thread: it decides proposals by a script, remembers approvals, and records all events in order.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use engine::{
    EnvironmentState, ModelInfo, Proposal, ProposalDecision, Question, Reach, Step, StepEnvironment,
    ToolCall, ToolOutcome, ToolPayload, Truncation,
};
use oarlock_tools::{Bench, BenchOptions, BoxFuture, CallScope, Caller, Registry, Sink};
use protocol::{
    AskForApproval, CommandExecutionRequestApprovalParams, EnvironmentId, FunctionCallOutputBody,
    GrantedPermissionProfile, OperationDecision, SandboxPolicy, ServerNotification, ThreadItem,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

/// A timeout that nothing here reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A client's answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Accept,
    ForSession,
    Amend(Vec<String>),
    Decline,
}

type Client = dyn Fn(&CommandExecutionRequestApprovalParams) -> Answer + Send + Sync;

/// Events that reached the thread.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    Proposed(Box<Proposal>),
    Told(Box<ServerNotification>),
    Ended(Box<ThreadItem>),
}

pub(crate) struct Listener {
    client: Box<Client>,
    /// Saves rules that the client approves, before its answer reaches the tool. Weak, because terminals hold this sink
    /// and end with the bench.
    bench: Mutex<Weak<Bench>>,
    agreed: Mutex<HashSet<String>>,
    heard: Mutex<Vec<Heard>>,
    news: Notify,
    meddle: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    pub(crate) step: Step,
    pub(crate) bench: Arc<Bench>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) grants: GrantedPermissionProfile,
}

impl Stage {
    /// A thread without a sandbox that never asks.
    pub(crate) fn new() -> Self {
        Self::asking(AskForApproval::Never, json!({"type": "dangerFullAccess"}), |_| Answer::Decline)
    }

    pub(crate) fn asking(
        approval: AskForApproval,
        sandbox: Value,
        client: impl Fn(&CommandExecutionRequestApprovalParams) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let cwd = folder.path().canonicalize().expect("there").display().to_string();
        let sandbox = serde_json::from_value(sandbox).expect("a policy");
        let step = step(approval, sandbox, &cwd);
        let bench = Arc::new(Bench::new(options(folder.path())));
        let (agreed, heard) = (Mutex::default(), Mutex::default());
        let listener = Listener {
            client: Box::new(client),
            bench: Mutex::default(),
            agreed,
            heard,
            news: Notify::new(),
            meddle: Mutex::default(),
        };
        let grants = GrantedPermissionProfile { network: None, file_system: None };
        Self { folder, step, bench, listener: Arc::new(listener), grants }
    }

    pub(crate) fn with_options(mut self, change: impl FnOnce(&mut BenchOptions)) -> Self {
        let mut options = self.bench.options().clone();
        change(&mut options);
        self.bench = Arc::new(Bench::new(options));
        self
    }

    /// Uses an environment that is reached through this command.
    pub(crate) fn behind(mut self, id: &str, prefix: &[&str]) -> Self {
        self.go_to(id, prefix);
        self
    }

    pub(crate) fn go_to(&mut self, id: &str, prefix: &[&str]) {
        let argv = prefix.iter().map(|word| (*word).to_owned()).collect();
        self.step.environments = [StepEnvironment {
            id: EnvironmentId::new(id),
            cwd: self.step.cwd.clone(),
            reach: Reach::Command { argv },
            state: EnvironmentState::Attached,
            is_chosen: true,
        }]
        .into();
    }

    /// Writes the user's rules.
    pub(crate) fn rules(&self, text: &str) {
        std::fs::create_dir_all(self.path("home/rules")).expect("made");
        std::fs::write(self.path("home/rules/default.rules"), text).expect("written");
    }

    /// Writes an executable program.
    pub(crate) fn program(&self, name: &str, script: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, script).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("made executable");
        path.display().to_string()
    }

    /// Runs right after the next decision.
    pub(crate) fn meddle(&self, meddle: impl FnOnce() + Send + 'static) {
        *self.listener.meddle.lock().expect("nobody panics here") = Some(Box::new(meddle));
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn call_as(
        &self,
        call_id: &str,
        name: &str,
        payload: ToolPayload,
    ) -> BoxFuture<'static, ToolOutcome> {
        *self.listener.bench.lock().expect("nobody panics here") = Arc::downgrade(&self.bench);
        let caller = Caller {
            thread_id: "thread".to_owned().into(),
            turn_id: "turn".to_owned().into(),
            sink: self.listener.clone(),
            bench: self.bench.clone(),
            grants: self.grants.clone(),
            scope: CallScope::default(),
        };
        let call = ToolCall { call_id: call_id.to_owned(), name: name.to_owned(), namespace: None, payload };
        Registry::builtin().run(call, Arc::new(self.step.clone()), caller)
    }

    pub(crate) fn start(&self, name: &str, arguments: &Value) -> BoxFuture<'static, ToolOutcome> {
        self.call_as("call_1", name, ToolPayload::Function { arguments: arguments.to_string() })
    }

    /// The text for the model, and whether the call succeeded.
    pub(crate) async fn call(&self, name: &str, arguments: Value) -> (String, bool) {
        let outcome = tokio::time::timeout(PATIENCE, self.start(name, &arguments)).await.expect("it returns");
        (text(&outcome), outcome.success)
    }

    /// As `call`, of `exec_command`.
    pub(crate) async fn exec(&self, cmd: &str) -> String {
        self.call("exec_command", json!({"cmd": cmd})).await.0
    }

    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.listener.heard.lock().expect("nobody panics here").clone()
    }

    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        let heard = self.heard().into_iter();
        heard
            .filter_map(|heard| if let Heard::Proposed(proposal) = heard { Some(*proposal) } else { None })
            .collect()
    }

    pub(crate) fn questions(&self) -> Vec<CommandExecutionRequestApprovalParams> {
        let asked = self.proposals().into_iter().filter_map(|proposal| proposal.question);
        asked
            .map(
                |question| if let Question::Command(asked) = *question { asked } else { panic!("a command") },
            )
            .collect()
    }

    pub(crate) fn ended(&self) -> Vec<Value> {
        let heard = self.heard().into_iter();
        let item = |heard| if let Heard::Ended(item) = heard { Some(*item) } else { None };
        heard.filter_map(item).map(|item| serde_json::to_value(item).expect("plain data")).collect()
    }

    pub(crate) fn told(&self) -> Vec<ServerNotification> {
        let heard = self.heard().into_iter();
        heard.filter_map(|heard| if let Heard::Told(told) = heard { Some(*told) } else { None }).collect()
    }

    pub(crate) fn deltas(&self) -> Vec<String> {
        let delta = |told| match told {
            ServerNotification::CommandExecutionOutputDelta(delta) => Some(delta.delta),
            _ => None,
        };
        self.told().into_iter().filter_map(delta).collect()
    }

    /// Waits until this holds.
    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        let waiting = async {
            loop {
                let news = self.listener.news.notified();
                if holds(self) {
                    return;
                }
                news.await;
            }
        };
        let in_time = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(in_time, "only {:?}", self.heard());
    }
}

impl Listener {
    fn hear(&self, heard: Heard) {
        self.heard.lock().expect("nobody panics here").push(heard);
        self.news.notify_waiters();
    }

    fn decided(&self, proposal: &Proposal) -> ProposalDecision {
        let run = |by_client, execpolicy_amendment| {
            let decision = OperationDecision::Approve { scope: None, execpolicy_amendment };
            ProposalDecision { decision, by_client }
        };
        let Some(question) = &proposal.question else { return run(false, None) };
        let mut agreed = self.agreed.lock().expect("nobody panics here");
        let keys = &proposal.session_keys;
        if !keys.is_empty() && keys.iter().all(|key| agreed.contains(key)) {
            return run(true, None);
        }
        let answer = match &**question {
            Question::Command(asked) => (self.client)(asked),
            _ => Answer::Accept,
        };
        match answer {
            Answer::Accept => run(true, None),
            Answer::ForSession => {
                agreed.extend(keys.iter().cloned());
                run(true, None)
            }
            Answer::Amend(prefix) => {
                let bench = self.bench.lock().expect("nobody panics here").upgrade().expect("a call runs");
                if let Err(warning) = bench.save_rule(&prefix) {
                    self.hear(Heard::Told(Box::new(ServerNotification::ConfigWarning(warning))));
                }
                run(true, Some(prefix))
            }
            Answer::Decline => ProposalDecision::declined(),
        }
    }
}

impl Sink for Listener {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.hear(Heard::Told(Box::new(notification)));
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        self.hear(Heard::Proposed(Box::new(proposal.clone())));
        let decided = self.decided(&proposal);
        if let Some(meddle) = self.meddle.lock().expect("nobody panics here").take() {
            meddle();
        }
        Box::pin(std::future::ready(decided))
    }

    /// Answers a nested call with its name and arguments.
    fn call_tool(&self, call: ToolCall, began_in: Arc<Step>) -> BoxFuture<'_, FunctionCallOutputBody> {
        let ToolPayload::Function { arguments } = &call.payload else { panic!("JSON") };
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let text =
            json!({"called": call.name, "with": arguments, "in": began_in.environments[0].id}).to_string();
        Box::pin(std::future::ready(FunctionCallOutputBody::Text(text)))
    }

    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.notify(notification)
    }

    fn end_item(&self, item: ThreadItem) -> BoxFuture<'_, ()> {
        self.hear(Heard::Ended(Box::new(item)));
        Box::pin(std::future::ready(()))
    }
}

pub(crate) fn text(outcome: &ToolOutcome) -> String {
    let FunctionCallOutputBody::Text(text) = &outcome.output else { panic!("one text") };
    text.clone()
}

/// The session id in the result of a running command.
pub(crate) fn session_id(text: &str) -> u32 {
    let line = text.lines().find_map(|line| line.strip_prefix("Process running with session ID "));
    line.unwrap_or_else(|| panic!("it runs: {text}")).parse().expect("a number")
}

/// The text after the header.
pub(crate) fn output(text: &str) -> &str {
    text.split_once("Output:\n").map_or("", |(_, output)| output)
}

fn options(folder: &Path) -> BenchOptions {
    let env = BTreeMap::from([
        ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
        ("HOME".to_owned(), folder.display().to_string()),
    ]);
    BenchOptions {
        env,
        rule_folders: vec![folder.join("home")],
        rules_file: folder.join("home/rules/default.rules"),
        outputs: Some(folder.join("home/outputs/thread")),
        ..BenchOptions::bare("/bin/sh")
    }
}

fn step(approval: AskForApproval, sandbox: SandboxPolicy, cwd: &str) -> Step {
    Step {
        model: ModelInfo {
            context_window: None,
            truncation: Truncation::Tokens(10_000),
            stream_max_retries: 0,
            ..ModelInfo::unknown("m")
        },
        approval_policy: approval,
        sandbox,
        ..Step::bare("test-model", cwd)
    }
}

/// A number of seconds that no other test's command sleeps, to find the process by.
pub(crate) fn unique_seconds() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// The number of processes with this argument.
pub(crate) fn count_processes(argument: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let has_it = |path: PathBuf| {
        let line = std::fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    };
    entries.filter(|entry| has_it(entry.path())).count()
}

/// Waits until no process has this argument.
pub(crate) async fn until_gone(argument: &str) {
    let gone = async {
        while count_processes(argument) > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it is gone soon");
}

/// Waits until a process has this argument.
pub(crate) async fn until_there(argument: &str) {
    let there = async {
        while count_processes(argument) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, there).await.expect("it starts");
}
