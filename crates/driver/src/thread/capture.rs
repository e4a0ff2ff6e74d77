//! Replacing a running turn, and capturing the step of each request. Steps are captured in a task beside the actor:
//! they read instructions and skills from the disk, and a file system that hangs must not block a worker or the
//! thread's commands.

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

/// The next request of a thread. The caller captures its step, so that the thread itself does not wait for the disk.
pub struct NextRequest {
    /// As the thread remembers it.
    pub history: Vec<ResponseItem>,
    /// The context that the model got last.
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

/// The thread's state that a step shows.
#[derive(Clone)]
struct StepSource {
    steps: Arc<dyn StepMaker>,
    /// The settings, with the kind of work that the step is for.
    settings: ThreadSettings,
    bench: Arc<Bench>,
    hooks: Arc<ThreadHooks>,
    /// The running turn's tier, which overrides that of the settings.
    service_tier: Option<String>,
}

impl StepSource {
    /// Reads from the disk and may block.
    fn capture(self) -> Arc<Step> {
        // Checked before the tools are listed: otherwise a source that becomes ready in between would be missing from a
        // final step.
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

/// Adds what the thread's tools learned since it was opened.
pub fn complete_step(step: &mut Step, bench: &Bench) {
    step.reveal(&bench.discovered());
    if let Some(agents) = bench.agents() {
        step.subagents = agents.roster();
    }
    // Under other policies the model gets no list of approved prefixes.
    if step.approval_policy == AskForApproval::OnRequest {
        step.approved_prefixes = bench.approved_prefixes();
    }
}

/// A step that is being captured. Dropping it discards the result.
#[derive(Debug)]
pub(crate) struct StepCapture(JoinHandle<Arc<Step>>);

impl StepCapture {
    fn begin(source: StepSource) -> Self {
        Self(tokio::task::spawn_blocking(move || source.capture()))
    }

    /// The step. Rethrows a panic of the capture, in a program that is built to unwind. Cancel-safe.
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

/// The step that is being captured; pending for ever if there is none.
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

    /// Ends the running turn so that another can start. Responds that the new one is accepted before the old one ends.
    /// `None` when nothing may start; the caller has the error then.
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

    /// Captures the step of a command: for the running turn, or for an ordinary one.
    pub(crate) async fn capture(&self) -> Arc<Step> {
        self.capture_for(self.step_work()).await
    }

    pub(crate) async fn capture_for(&self, work: StepWork) -> Arc<Step> {
        StepCapture::begin(self.step_source(work)).finished().await
    }

    /// Starts capturing the step that the running turn waits for. Replaces an earlier capture.
    pub(crate) fn begin_capture(&mut self) {
        self.capturing = Some(StepCapture::begin(self.step_source(self.step_work())));
    }

    /// Captures the pending step again, so that it shows a change of the thread.
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
