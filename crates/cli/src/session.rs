//! One thread of the runtime inside this process, followed to the end of a turn.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use protocol::{
    DynamicToolCallParams, DynamicToolCallResponse, ReviewTarget, ServerNotification, SessionSource,
    ThreadId, ThreadItem, ThreadStatus, TurnId, TurnInterruptParams, TurnStartParams, TurnStatus, UserInput,
};
use runtime::config::Loader;
use runtime::{
    Audience, BoxFuture, Catalogue, ClientIdentity, Opener, Question, Reply, Responder, Runtime,
    RuntimeOptions, SettingsChange, SystemClock,
};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// How many notifications may wait for the screen; after that the thread waits.
const WAITING: usize = 256;
/// Between two looks at the clock.
const CLOCK: Duration = Duration::from_secs(1);
/// How long threads may take to shut down.
const GRACE: Duration = Duration::from_secs(5);
/// Overrides the name under which the process is known to providers.
const ORIGINATOR_VARIABLE: &str = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE";

/// The receiver of the notifications of a thread.
pub(crate) trait TurnOutput {
    fn heard(&mut self, notification: &ServerNotification) -> io::Result<()>;

    /// Wants to know how time passes.
    fn has_clock(&self) -> bool {
        false
    }

    /// Called about once a second with the time since the turn began.
    fn tick(&mut self, _elapsed: Duration) -> io::Result<()> {
        Ok(())
    }
}

/// The runtime, and what its threads say.
#[derive(Debug)]
pub(crate) struct LocalSession {
    pub(crate) runtime: Runtime,
    client: ClientIdentity,
    heard: mpsc::Receiver<(ThreadId, ServerNotification)>,
}

/// One turn of a thread.
#[derive(Debug)]
pub(crate) struct TurnRequest {
    pub(crate) thread_id: ThreadId,
    pub(crate) work: TurnWork,
}

/// The input of a turn.
#[derive(Debug)]
pub(crate) enum TurnWork {
    Prompt { input: Vec<UserInput>, output_schema: Option<Value> },
    Review(ReviewTarget),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnEnding {
    pub(crate) status: TurnStatus,
    /// The agent's last message.
    pub(crate) message: Option<String>,
    /// An error that was not tried again was told.
    pub(crate) has_failed: bool,
    /// The exit code of a program that a signal asked to stop.
    pub(crate) stopped: Option<u8>,
}

/// Before anything was heard of the turn.
impl Default for TurnEnding {
    fn default() -> Self {
        Self { status: TurnStatus::InProgress, message: None, has_failed: false, stopped: None }
    }
}

impl TurnEnding {
    pub(crate) fn is_good(&self) -> bool {
        self.status == TurnStatus::Completed && !self.has_failed
    }
}

impl LocalSession {
    /// Touches no file.
    pub(crate) fn new(loader: Loader, catalogue: Catalogue) -> Self {
        let (told, heard) = mpsc::channel(WAITING);
        let originator = loader.environment().text(ORIGINATOR_VARIABLE);
        let runtime = Runtime::new(RuntimeOptions {
            loader,
            audience: Arc::new(TurnAudience { told }),
            clock: Arc::new(SystemClock),
            catalogue,
            source: SessionSource::Exec,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: crate::logging::store_options(),
            traces: None,
        });
        let mut client = ClientIdentity::default();
        client.originator = originator.unwrap_or(client.originator);
        Self { runtime, client, heard }
    }

    /// Who opens the threads of this session.
    pub(crate) fn opener(&self) -> Opener {
        Opener { client: self.client.clone(), host: None }
    }

    /// Runs one turn to its end. The first Ctrl-C or SIGTERM stops the turn, the second one the process.
    pub(crate) async fn run_turn(
        &mut self,
        request: TurnRequest,
        output: &mut dyn TurnOutput,
    ) -> Result<TurnEnding> {
        let mut stop = StopRequests::new()?;
        let thread_id = request.thread_id.clone();
        let turn_id = self.start_turn(request).await?;
        let mut ending = TurnEnding::default();
        let mut trouble = None;
        let (began, mut clock) = (Instant::now(), tokio::time::interval(CLOCK));
        while ending.status == TurnStatus::InProgress {
            let (thread, notification) = tokio::select! {
                heard = self.heard.recv() => heard.context("the runtime has ended")?,
                exit_code = stop.asked() => {
                    if stop.count > 1 {
                        std::process::exit(i32::from(exit_code));
                    }
                    ending.stopped = Some(exit_code);
                    self.interrupt(&thread_id);
                    continue;
                }
                _ = clock.tick(), if output.has_clock() && trouble.is_none() => {
                    if let Err(error) = output.tick(began.elapsed()) {
                        trouble = Some(error);
                        self.interrupt(&thread_id);
                    }
                    continue;
                }
            };
            // The thread's own items report what its children do.
            if thread != thread_id {
                continue;
            }
            ending.learn(&turn_id, &notification);
            if trouble.is_none()
                && let Err(error) = output.heard(&notification)
            {
                // Nobody reads what is written, so nobody wants the rest of the work.
                trouble = Some(error);
                self.interrupt(&thread_id);
            }
            if self.is_broken(&thread_id, &notification) {
                bail!("the thread stopped in the middle of its turn by a defect in this program");
            }
        }
        match trouble {
            Some(error) => Err(error).context("the output cannot be written"),
            None => Ok(ending),
        }
    }

    async fn start_turn(&self, request: TurnRequest) -> Result<TurnId> {
        let TurnRequest { thread_id, work } = request;
        let (told, wait) = oneshot::channel();
        let answer = Responder::new(move |turn| drop(told.send(turn)));
        match work {
            TurnWork::Prompt { input, output_schema } => {
                let mut params = json!({ "threadId": thread_id, "input": input });
                if let Some(schema) = output_schema {
                    params["outputSchema"] = schema;
                }
                let params: TurnStartParams = protocol::from_value(&params)?;
                self.runtime.start_turn(params, answer).await;
            }
            TurnWork::Review(target) => {
                self.runtime.start_review(&thread_id, &target, SettingsChange::default(), answer).await;
            }
        }
        Ok(wait.await.context("the runtime has ended")??.id)
    }

    fn interrupt(&self, thread_id: &ThreadId) {
        let (runtime, thread_id) = (self.runtime.clone(), thread_id.clone());
        // The end of the turn comes as a notification; there is nothing else to wait for.
        let params = TurnInterruptParams { thread_id, turn_id: TurnId::new("") };
        tokio::spawn(async move { runtime.interrupt_turn(params, Responder::new(|_| ())).await });
    }

    fn is_broken(&self, thread_id: &ThreadId, notification: &ServerNotification) -> bool {
        let is_error = matches!(notification,
            ServerNotification::ThreadStatusChanged(told) if told.status == ThreadStatus::SystemError);
        is_error && self.runtime.thread(thread_id).is_err()
    }

    /// Puts every thread away. What they still say is heard by nobody.
    pub(crate) async fn close(self) {
        drop(self.heard);
        self.runtime.shut_down(GRACE).await;
    }
}

impl TurnEnding {
    pub(crate) fn learn(&mut self, turn_id: &TurnId, notification: &ServerNotification) {
        match notification {
            ServerNotification::ItemCompleted(told) => {
                if let ThreadItem::AgentMessage { text, .. } = &told.item {
                    self.message = Some(text.clone());
                }
            }
            ServerNotification::Error(told) => self.has_failed |= !told.will_retry,
            ServerNotification::TurnCompleted(told) if told.turn.id == *turn_id => {
                self.status = told.turn.status;
            }
            _ => {}
        }
    }
}

/// Exit codes of programs that a signal ended begin here.
pub(crate) const SIGNALLED: u8 = 128;

/// Signals that ask for an end.
pub(crate) struct StopRequests {
    interrupt: Signal,
    terminate: Signal,
    pub(crate) count: u32,
}

impl StopRequests {
    pub(crate) fn new() -> Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be received");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            count: 0,
        })
    }

    /// The exit code that goes with the signal.
    pub(crate) async fn asked(&mut self) -> u8 {
        let signal = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        };
        self.count += 1;
        SIGNALLED + u8::try_from(signal.as_raw_value()).unwrap_or_default()
    }
}

/// The audience of a process with nobody to ask.
#[derive(Debug)]
pub(crate) struct TurnAudience {
    pub(crate) told: mpsc::Sender<(ThreadId, ServerNotification)>,
}

impl Audience for TurnAudience {
    fn notify<'a>(&'a self, thread: &'a ThreadId, notification: ServerNotification) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // Nobody listens any more once the turn is over.
            let _ = self.told.send((thread.clone(), notification)).await;
        })
    }

    fn call_tool(
        &self,
        params: DynamicToolCallParams,
    ) -> BoxFuture<'static, Result<DynamicToolCallResponse, String>> {
        let problem = format!("no client is connected that could run `{}`", params.tool);
        Box::pin(std::future::ready(Err(problem)))
    }

    /// Nobody is there to agree to anything.
    fn ask(&self, _: Question) -> BoxFuture<'static, Result<Reply, String>> {
        Box::pin(std::future::ready(Err("nobody can be asked in this mode".to_owned())))
    }
}
