//! A thread in small for the tests of tools that wait: it decides every proposal alike, and keeps what it heard.

use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::{Proposal, Step, ToolOutcome, Verdict};
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
    verdict: Verdict,
    proposals: Mutex<Vec<Proposal>>,
    told: Mutex<Vec<ServerNotification>>,
}

impl Scene {
    pub(crate) fn deciding(verdict: Verdict) -> Self {
        Self {
            step: step(),
            bench: Arc::new(bench()),
            grants: GrantedPermissionProfile { network: None, file_system: None },
            heard: Arc::new(Heard { verdict, proposals: Mutex::default(), told: Mutex::default() }),
        }
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let mut scene = Self::deciding(Verdict::Declined);
        scene.step.cwd = folder.to_str().expect("a plain path").to_owned();
        scene
    }

    /// With these features on.
    pub(crate) fn with_features(mut self, features: &[&str]) -> Self {
        let features = features.iter().map(|key| (*key).to_owned()).collect();
        self.bench = Arc::new(Bench::new(crate::BenchOptions { features, ..self.bench.options().clone() }));
        self
    }

    /// With files nobody may read.
    pub(crate) fn hiding(mut self, hidden: &[&Path]) -> Self {
        let sealed = hidden.iter().map(|path| (*path).to_owned()).collect();
        let off_limits = sandbox::OffLimits { sealed, ..Default::default() };
        self.bench = Arc::new(Bench::new(crate::BenchOptions { off_limits, ..self.bench.options().clone() }));
        self
    }

    /// With these children.
    pub(crate) fn with_agents(mut self, agents: Arc<dyn crate::Agents>) -> Self {
        self.bench = Arc::new(Bench::new(self.bench.options().clone()).with_agents(agents));
        self
    }

    fn caller(&self) -> Caller {
        Caller {
            thread_id: "thread".to_owned().into(),
            turn_id: "turn".to_owned().into(),
            sink: self.heard.clone(),
            bench: self.bench.clone(),
            grants: self.grants.clone(),
            scope: crate::CallScope::default(),
        }
    }

    /// What a tool gets to know of its call.
    pub(crate) fn cx(&self) -> ToolCx {
        ToolCx::new(Arc::new(self.step.clone()), "call_1".to_owned(), "tool".to_owned(), self.caller())
    }

    pub(crate) fn run(&self, name: &str, arguments: &Value) -> BoxFuture<'static, ToolOutcome> {
        let (call, step) = (call(name, &arguments.to_string()), Arc::new(self.step.clone()));
        Registry::builtin().run(call, step, self.caller())
    }

    /// What the model reads, and whether it worked.
    pub(crate) async fn run_text(&self, name: &str, arguments: Value) -> (String, bool) {
        let outcome = self.run(name, &arguments).await;
        let FunctionCallOutputBody::Text(text) = outcome.output else { panic!("one text") };
        (text, outcome.success)
    }

    pub(crate) fn proposals(&self) -> Vec<Proposal> {
        self.heard.proposals.lock().expect("nobody panics here").clone()
    }

    pub(crate) fn told(&self) -> Vec<ServerNotification> {
        self.heard.told.lock().expect("nobody panics here").clone()
    }
}

impl Sink for Heard {
    fn tell(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.told.lock().expect("nobody panics here").push(notification);
        Box::pin(std::future::ready(()))
    }

    fn propose(&self, proposal: Proposal) -> BoxFuture<'_, Verdict> {
        self.proposals.lock().expect("nobody panics here").push(proposal);
        Box::pin(std::future::ready(self.verdict.clone()))
    }

    fn tell_later(&self, notification: ServerNotification) -> BoxFuture<'_, ()> {
        self.tell(notification)
    }

    fn end_item(&self, _: ThreadItem) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
