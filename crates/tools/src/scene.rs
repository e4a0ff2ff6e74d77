//! A small thread for tests of tools that wait: it decides every proposal the same way, and records notifications.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{Proposal, ProposalDecision, Step, ToolOutcome};
use parking_lot::Mutex;
use protocol::{FunctionCallOutputBody, GrantedPermissionProfile, ServerNotification, ThreadItem};
use serde_json::Value;

use crate::testing::{bench, call, step};
use crate::{Bench, BoxFuture, Caller, Registry, Sink, ToolCx};

#[derive(Debug)]
pub(crate) struct Scene {
    pub(crate) step: Step,
    pub(crate) bench: Arc<Bench>,
    pub(crate) grants: GrantedPermissionProfile,
    heard: Arc<Heard>,
}

#[derive(Debug)]
struct Heard {
    decided: ProposalDecision,
    proposals: Mutex<Vec<Proposal>>,
    told: Mutex<Vec<ServerNotification>>,
}

impl Scene {
    pub(crate) fn deciding(decided: ProposalDecision) -> Self {
        Self {
            step: step(),
            bench: Arc::new(bench()),
            grants: GrantedPermissionProfile { network: None, file_system: None },
            heard: Arc::new(Heard { decided, proposals: Mutex::default(), told: Mutex::default() }),
        }
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut scene = Self::deciding(ProposalDecision::declined());
        scene.step.cwd = folder.to_str().expect("a plain path").to_owned();
        scene
    }

    /// Enables these features.
    pub(crate) fn with_features(mut self, features: &[&str]) -> Self {
        let features = features.iter().map(|key| (*key).to_owned()).collect();
        self.bench = Arc::new(Bench::new(crate::BenchOptions { features, ..self.bench.options().clone() }));
        self
    }

    /// Hides these files.
    pub(crate) fn hiding(mut self, hidden: &[&Path]) -> Self {
        let sealed = hidden.iter().map(|path| (*path).to_owned()).collect();
        let off_limits = sandbox::OffLimits { sealed, ..Default::default() };
        self.bench = Arc::new(Bench::new(crate::BenchOptions { off_limits, ..self.bench.options().clone() }));
        self
    }

    /// Adds these children.
    pub(crate) fn with_agents(mut self, agents: Arc<dyn crate::ChildAgents>) -> Self {
        self.bench = Arc::new(Bench::new(self.bench.options().clone()).with_agents(agents));
        self
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller {
            thread_id: "thread".to_owned().into(),
            turn_id: "turn".to_owned().into(),
            sink: self.heard.clone(),
            bench: self.bench.clone(),
            grants: self.grants.clone(),
            scope: crate::CallScope::default(),
        }
    }

    /// The context of a call.
    pub(crate) fn cx(&self) -> ToolCx {
        ToolCx::new(Arc::new(self.step.clone()), "call_1".to_owned(), "tool".to_owned(), self.caller())
    }

    pub(crate) fn run(&self, name: &str, arguments: &Value) -> BoxFuture<'static, ToolOutcome> {
        let (call, step) = (call(name, &arguments.to_string()), Arc::new(self.step.clone()));
        Registry::builtin().run(call, step, self.caller())
    }

    /// The text for the model, and whether the call succeeded.
    pub(crate) async fn run_text(&self, name: &str, arguments: Value) -> (String, bool) {
        let outcome = self.run(name, &arguments).await;
        let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
        (text, outcome.success)
    }

    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        self.heard.proposals.lock().clone()
    }

    pub(crate) fn told(&self) -> Vec<ServerNotification> {
        self.heard.told.lock().clone()
    }
}

impl Sink for Heard {
    fn notify(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.told.lock().push(notification);
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, ProposalDecision> {
        self.proposals.lock().push(proposal);
        Box::pin(std::future::ready(self.decided.clone()))
    }

    fn notify_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.notify(notification)
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Calls a tool repeatedly while `open` in the folder alternates between a folder and a link to `keys`, which is
/// hidden. Panics when a result contains hidden content.
pub(crate) fn while_a_folder_is_swapped(
    folder: &Path,
    tool: &str,
    arguments: &Value,
    is_shown: impl Fn(&str) -> bool,
) {
    const CALLS: usize = 400;
    let root = folder.canonicalize().expect("there");
    let [keys, open, aside, link] = ["keys", "open", "aside", "link"].map(|name| root.join(name));
    let scene = Scene::in_folder(&root).hiding(&[&keys]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _ = std::os::unix::fs::symlink(&keys, &link);
                let _ = std::fs::rename(&open, &aside);
                let _ = std::fs::rename(&link, &open);
                let _ = std::fs::remove_file(&open);
                let _ = std::fs::rename(&aside, &open);
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let call = |_| runtime.block_on(scene.run_text(tool, arguments.clone())).0;
        let shown = (0..CALLS).map(call).find(|text| is_shown(text));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(shown, None);
    });
}
