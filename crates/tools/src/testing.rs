//! A step, a call and a sink for tests of tools.

use std::sync::Arc;

use engine::{ModelInfo, Proposal, ProposalDecision, Step, ToolCall, ToolOutcome, ToolPayload};
use futures_util::FutureExt;
use parking_lot::Mutex;
use protocol::{
    AskForApproval, FunctionCallOutputBody, GrantedPermissionProfile, SandboxPolicy, ServerNotification,
    ThreadItem,
};

use crate::{Bench, BenchOptions, BoxFuture, Caller, Registry, Sink};

#[derive(Debug, Default)]
struct Heard(Mutex<Vec<ServerNotification>>);

impl Sink for Heard {
    fn propose(&self, _: Proposal) -> BoxFuture<'_, ProposalDecision> {
        Box::pin(std::future::ready(ProposalDecision::declined()))
    }

    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.notify(notification)
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.0.lock().push(notification);
        Box::pin(std::future::ready(()))
    }
}

/// Runs a call of a tool that never waits: its outcome and its notifications.
pub(crate) fn run(call: ToolCall, step: Step) -> (ToolOutcome, Vec<ServerNotification>) {
    let heard = Arc::new(Heard::default());
    let caller = Caller {
        thread_id: "thread".to_owned().into(),
        turn_id: "turn".to_owned().into(),
        sink: heard.clone(),
        bench: Arc::new(bench()),
        grants: GrantedPermissionProfile { network: None, file_system: None },
        scope: crate::CallScope::default(),
    };
    let outcome =
        Registry::builtin().run(call, Arc::new(step), caller).now_or_never().expect("nothing to wait for");
    let told = std::mem::take(&mut *heard.0.lock());
    (outcome, told)
}

/// The output of such a call and its notifications.
pub(crate) fn run_text(call: ToolCall, step: Step) -> (String, Vec<ServerNotification>) {
    let (outcome, told) = run(call, step);
    assert_eq!(outcome.item, None);
    let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
    (text, told)
}

pub(crate) fn bench() -> Bench {
    let env = std::env::vars().filter(|(name, _)| name == "PATH" || name == "HOME").collect();
    Bench::new(BenchOptions { login_shell: true, env, ..BenchOptions::bare("/bin/bash") })
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        call_id: "call_1".to_owned(),
        name: name.to_owned(),
        namespace: None,
        payload: ToolPayload::Function { arguments: arguments.to_owned() },
    }
}

pub(crate) fn step() -> Step {
    Step {
        model: ModelInfo { context_window: None, stream_max_retries: 0, ..ModelInfo::unknown("m") },
        approval_policy: AskForApproval::Never,
        sandbox: SandboxPolicy::DangerFullAccess,
        shell: "bash".to_owned(),
        current_date: "2026-01-01".to_owned(),
        ..Step::bare("test-model", "/w")
    }
}
