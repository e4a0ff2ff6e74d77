//! A plain thread for the tests that open one: who it is, how it is set up, and an audience that says nothing.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::sync::Arc;

use engine::UserText;
use oarlock_runtime::{Audience, BoxFuture, ModelOverrides, Question, Reply, ThreadSettings};
use protocol::{
    ApprovalsReviewer, AskForApproval, ContentItem, DynamicToolCallParams, DynamicToolCallResponse,
    SandboxPolicy, ServerNotification, SessionMeta, ThreadId, UserInput,
};
use serde_json::json;
use tools::{Bench, BenchOptions};

pub(crate) const THREAD: &str = "019a8b3c-0000-7000-8000-000000000001";
pub(crate) const BEGAN_MS: i64 = 1_763_000_000_000;

#[derive(Debug)]
pub(crate) struct Nobody;

impl Audience for Nobody {
    fn tell<'a>(&'a self, _: &'a ThreadId, _: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn call_tool(
        &self,
        _: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }

    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Reply, String>> {
        Box::pin(async { Err("nobody is asked here".to_owned()) })
    }
}

pub(crate) fn meta() -> SessionMeta {
    let meta = json!({
        "threadId": THREAD, "sessionId": THREAD, "createdAtMs": BEGAN_MS, "cwd": "/repo", "originator": "test",
        "cliVersion": "0.1.0", "source": "appServer", "modelProvider": "offline",
    });
    protocol::from_value(&meta).expect("who a thread is")
}

pub(crate) fn settings() -> ThreadSettings {
    ThreadSettings {
        model: "offline".into(),
        model_provider: "offline".into(),
        service_tier: None,
        cwd: "/repo".into(),
        approval_policy: AskForApproval::Never,
        approvals_reviewer: ApprovalsReviewer::User,
        sandbox: SandboxPolicy::DangerFullAccess,
        effort: None,
        summary: None,
        verbosity: None,
        personality: None,
        base_instructions: None,
        developer_instructions: None,
        compact_prompt: None,
        collaboration_mode: None,
        dynamic_tools: Arc::default(),
        tools: Arc::default(),
        environments: None,
        host: Arc::default(),
        model_overrides: ModelOverrides::default(),
        skills: Default::default(),
        off_limits: Default::default(),
        instruction_options: Arc::default(),
        agent_depth: 0,
    }
}

pub(crate) fn bench() -> Arc<Bench> {
    Arc::new(Bench::new(BenchOptions {
        shell: "/bin/sh".into(),
        login_shell: false,
        env: Default::default(),
        rule_folders: Vec::new(),
        project_rules: Vec::new(),
        rules_file: "/nonexistent/rules".into(),
        outputs: None,
        off_limits: Default::default(),
        features: Default::default(),
        landlock_only: false,
        max_background_wait_ms: 1_000,
        early: BenchOptions::EARLY,
        ask_always: false,
        ask_for: Default::default(),
        no_patches: false,
    }))
}

/// Words of the user.
pub(crate) fn said(text: &str) -> UserText {
    UserText {
        shown: vec![UserInput::Text { text: text.into(), text_elements: vec![] }],
        content: vec![ContentItem::InputText { text: text.into() }],
        ..UserText::default()
    }
}
