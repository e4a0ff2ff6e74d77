//! Turns that take the place of another, and the view each request of a thread is made from. Views are captured beside the
//! actor: instructions and skills are read from the disk, and a file system that hangs must hold up neither a worker nor the
//! commands of its own thread.

use std::fmt;
use std::sync::Arc;

use engine::{Input, Step};
use protocol::{AskForApproval, ResponseItem, ThreadGoal, ThreadGoalStatus, TurnId};
use serde_json::Value;
use support::Responder;
use tokio::task::JoinHandle;
use tools::Bench;

use crate::thread::actor::Actor;
use crate::thread::error::ThreadError;
use crate::thread::handle::ReviewOptions;
use crate::thread::hooks::ThreadHooks;
use crate::thread::settings::{StepMaker, StepWork, ThreadSettings};

/// The next request of a thread. Its step is captured by whoever asks: the thread itself waits for no disk.
pub struct NextRequest {
    /// As the thread remembers it.
    pub history: Vec<ResponseItem>,
    /// The context that the model was told last.
    pub told_context: Option<Value>,
    pub settings: ThreadSettings,
    source: StepSource,
}

impl NextRequest {
    /// The step that it would be made with. Waits for the disk.
    pub fn capture(&self) -> Arc<Step> {
        self.source.clone().capture()
    }
}

impl fmt::Debug for NextRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextRequest").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The thread as a step shows it.
#[derive(Clone)]
struct StepSource {
    steps: Arc<dyn StepMaker>,
    /// With the kind of work that the step is for.
    settings: ThreadSettings,
    bench: Arc<Bench>,
    hooks: Arc<ThreadHooks>,
    /// Of the turn that runs. Wins over that of the settings.
    service_tier: Option<String>,
}

impl StepSource {
    /// Waits for the disk.
    fn capture(self) -> Arc<Step> {
        // Before the tools are listed: a source that becomes ready in between would be missing from a step that counts.
        let is_starting = self.bench.starting_sources().is_some();
        let mut step = self.steps.capture(&self.settings, self.bench.sources());
        if self.settings.work == StepWork::Review {
            step = self.steps.capture(&self.settings.for_review(&step), &[]);
        } else {
            step.is_preliminary = is_starting;
            complete_step(&mut step, &self.bench);
        }
        step.hooks = self.hooks.points();
        step.service_tier = self.service_tier.or(step.service_tier);
        Arc::new(step)
    }
}

/// Adds to a step what the thread's tools have come to know since it was opened.
pub fn complete_step(step: &mut Step, bench: &Bench) {
    step.reveal(&bench.discovered());
    if let Some(agents) = bench.agents() {
        step.subagents = agents.roster();
    }
    // No other policy has its model told of them.
    if step.approval_policy == AskForApproval::OnRequest {
        step.approved_prefixes = bench.approved_prefixes();
    }
}

/// A step that is being captured. Dropped, nobody waits for it.
#[derive(Debug)]
pub(crate) struct StepCapture(JoinHandle<Arc<Step>>);

impl StepCapture {
    fn begin(source: StepSource) -> Self {
        Self(tokio::task::spawn_blocking(move || source.capture()))
    }

    /// The step. A panic while it is captured, in a program that is built to unwind, is one of the thread that wanted it. May
    /// be dropped and called again.
    async fn finished(&mut self) -> Arc<Step> {
        match (&mut self.0).await {
            Ok(step) => step,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

/// The step that is being captured, if there is one; else waits for ever.
pub(crate) async fn captured(capturing: &mut Option<StepCapture>) -> Arc<Step> {
    match capturing {
        Some(capture) => capture.finished().await,
        None => std::future::pending().await,
    }
}

impl Actor {
    pub(crate) async fn compact(&mut self, turn_id: TurnId, responder: Responder<(), ThreadError>) {
        let Some(responder) = self.replace_turn(responder).await else { return };
        let step = self.capture().await;
        self.submit(Input::Compact { turn_id, step }, (), responder).await;
    }

    pub(crate) async fn review(&mut self, options: ReviewOptions, responder: Responder<(), ThreadError>) {
        let Some(responder) = self.replace_turn(responder).await else { return };
        let ReviewOptions { turn_id, order, change } = options;
        self.settings.apply(change);
        let step = self.capture_for(StepWork::Review).await;
        self.submit(Input::Review { turn_id, order, step }, (), responder).await;
    }

    /// Ends the running turn for another that is to begin. The caller hears that it is accepted before that end. `None`
    /// when nothing may begin; the caller knows.
    async fn replace_turn(
        &mut self,
        responder: Responder<(), ThreadError>,
    ) -> Option<Responder<(), ThreadError>> {
        if let Err(error) = self.make_way().await {
            responder.respond(Err(error));
            return None;
        }
        self.turn_service_tier = None;
        if self.thread.active_turn().is_none() {
            return Some(responder);
        }
        self.submit(Input::MakeWay, (), responder).await.then(|| Responder::new(|_| {}))
    }

    /// The step of a command, which begins with it: for the running turn, or for an ordinary one.
    pub(crate) async fn capture(&self) -> Arc<Step> {
        self.capture_for(self.step_work()).await
    }

    pub(crate) async fn capture_for(&self, work: StepWork) -> Arc<Step> {
        StepCapture::begin(self.step_source(work)).finished().await
    }

    /// Begins to capture the step that the running turn waits for. One that is being captured no longer counts.
    pub(crate) fn begin_capture(&mut self) {
        self.capturing = Some(StepCapture::begin(self.step_source(self.step_work())));
    }

    /// After a change of the thread: the step of the next request shows it, also one that is being captured.
    pub(crate) fn recapture(&mut self) {
        if self.capturing.is_some() {
            self.begin_capture();
        }
    }

    pub(crate) fn next_request(&self) -> NextRequest {
        let (history, told_context) = self.thread.remembered();
        let source = self.step_source(self.step_work());
        NextRequest { history, told_context, settings: self.settings.clone(), source }
    }

    fn step_work(&self) -> StepWork {
        let is_active = |goal: &ThreadGoal| goal.status == ThreadGoalStatus::Active;
        match self.thread.goal().is_some_and(is_active) {
            _ if self.thread.is_reviewing() => StepWork::Review,
            true => StepWork::Goal,
            false => StepWork::Turn,
        }
    }

    fn step_source(&self, work: StepWork) -> StepSource {
        StepSource {
            steps: self.services.steps.clone(),
            settings: ThreadSettings { work, ..self.settings.clone() },
            bench: self.bench.clone(),
            hooks: self.hooks.clone(),
            service_tier: self.turn_service_tier.clone(),
        }
    }
}
