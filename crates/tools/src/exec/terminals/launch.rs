//! Starts a terminal and follows it to its end. Runs as its own task, so that neither an interrupted turn nor the end
//! of the call leaves an item open.

use std::sync::Arc;
use std::time::Duration;

use protocol::ThreadItem;
use sandbox::{CAPTURE_BYTES, Chunk, CommandGuard, Confinement, HeadTail, Io, Process, TerminalSize};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::TerminalReservation;
use super::session::{Parts, Session, SessionProgress};
use crate::CallScope;
use crate::exec::{
    Authorization, Blocked, CommandOutlet, EndedCommand, Go, Overflow, Setting, delta, ended, not_started,
    start, text_of,
};

/// Limit of the output that is held back.
const EARLY_BYTES: usize = 256 * 1024;
/// How long to wait, after the end, for other processes that have the output open.
const TRAILING: Duration = Duration::from_millis(100);

/// A terminal to be started.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) authorization: Authorization,
    pub(crate) reservation: TerminalReservation,
    pub(crate) tty: bool,
    /// See [`crate::BenchOptions::early`].
    pub(crate) early: Duration,
}

/// The started session, or why there is none.
pub(crate) type LaunchResult = Result<Arc<Session>, Blocked>;

/// A process that has just started.
struct StartedProcess {
    process: Process,
    output: CommandOutlet,
    began: Instant,
    /// Its output so far.
    chunks: Vec<Chunk>,
    has_ended: bool,
    confinement: Option<Confinement>,
}

impl Launch {
    pub(crate) async fn run(mut self, answer: oneshot::Sender<LaunchResult>) {
        // Held until clients are notified of the end, or the thread releases it.
        let _held = self.scope().hold();
        let young = match self.start().await {
            Ok(young) => young,
            Err(blocked) => {
                self.end_unstarted(&blocked).await;
                drop(self.reservation);
                let _ = answer.send(Err(blocked));
                return;
            }
        };
        let Self { authorization, reservation, tty, .. } = self;
        let StartedProcess { process, output, began, chunks, has_ended, confinement } = young;
        let (setting, item) = authorization.into_parts();
        let command = match &item {
            ThreadItem::CommandExecution { command, .. } => command.clone(),
            _ => String::new(),
        };
        let (id, item_id) = (reservation.id(), setting.item_id());
        let elsewhere = setting.elsewhere.as_ref().map(|place| place.id().to_owned());
        let parts = Parts { id, command, item_id, tty, began, process, elsewhere, confinement };
        let session = Session::new(parts);
        reservation.fill(&session);
        // The caller may be gone; the session is still reachable by its id.
        let _ = answer.send(Ok(session.clone()));
        let overflow = Overflow::new(setting.options.outputs.as_deref());
        let transcript = HeadTail::new(CAPTURE_BYTES);
        let watch = OutputWatch { session, setting, item, transcript, overflow };
        watch.run(output, chunks, has_ended).await;
    }

    /// Starts it, and once more without a sandbox if that stopped it and a client approves.
    async fn start(&mut self) -> Result<StartedProcess, Blocked> {
        let mut go = self.authorization.clear().await?;
        loop {
            self.check_waited()?;
            let confined = go.is_confined();
            let young = self.spawn(go).await?;
            let exit = young.process.exit().filter(|_| young.has_ended);
            let stopped = exit
                .is_some_and(|exit| self.authorization.may_retry(confined, exit.code, &text(&young.chunks)));
            if !stopped || self.check_waited().is_err() {
                return Ok(young);
            }
            go = self.authorization.clear_unsandboxed().await?;
        }
    }

    /// Refuses to start a command whose turn was interrupted.
    fn check_waited(&self) -> Result<(), Blocked> {
        match self.scope().is_cancelled() {
            true => Err(aborted()),
            false => Ok(()),
        }
    }

    fn scope(&self) -> &CallScope {
        &self.authorization.setting().scope
    }

    async fn spawn(&self, go: Go) -> Result<StartedProcess, Blocked> {
        let io = if self.tty { Io::Terminal(TerminalSize::default()) } else { Io::Null };
        let guard: CommandGuard = Arc::new(self.scope().hold());
        let confinement = go.confinement().cloned();
        let (process, mut output) = tokio::select! {
            started = start(go, io, guard) => started?,
            () = self.scope().cancelled() => return Err(aborted()),
        };
        output.set_drain_limit(TRAILING);
        let began = Instant::now();
        let (mut chunks, mut bytes) = (Vec::new(), 0);
        let early = async {
            while bytes < EARLY_BYTES {
                let Some(chunk) = output.next().await else { return true };
                bytes += chunk.bytes.len();
                chunks.push(chunk);
            }
            false
        };
        let has_ended = tokio::select! {
            has_ended = tokio::time::timeout_at(began + self.early, early) => has_ended.unwrap_or(false),
            // The task that follows it ends it.
            () = self.scope().cancelled() => false,
        };
        Ok(StartedProcess { process, output, began, chunks, has_ended, confinement })
    }

    /// Shows clients also a command that was refused before it had an item.
    async fn end_unstarted(&self, blocked: &Blocked) {
        let Setting { thread_id, turn_id, sink, options, .. } = self.authorization.setting();
        if !self.authorization.is_open() {
            if !matches!(blocked, Blocked::Forbidden(_)) {
                return;
            }
            sink.notify(options.item_started(thread_id, turn_id, self.authorization.item().clone())).await;
        }
        sink.end_item(not_started(self.authorization.item().clone(), blocked)).await;
    }
}

fn aborted() -> Blocked {
    Blocked::Failed("aborted by user".to_owned())
}

fn text(chunks: &[Chunk]) -> String {
    let bytes: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Completes the work even if `other` ends first.
async fn to_the_end<T>(work: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = other => {}
    }
    work.await
}

/// Reads a command's output until its end.
struct OutputWatch {
    session: Arc<Session>,
    setting: Setting,
    item: ThreadItem,
    transcript: HeadTail,
    overflow: Overflow,
}

impl OutputWatch {
    async fn run(mut self, mut output: CommandOutlet, early: Vec<Chunk>, has_ended: bool) {
        for chunk in &early {
            self.keep(chunk);
        }
        drop(early);
        let (session, setting) = (self.session.clone(), self.setting.clone());
        let reading = async {
            while !has_ended && let Some(chunk) = output.next().await {
                self.keep(&chunk);
            }
            session.live.complete();
            let end = session.set_end(output.end(session.process.wait().await)).clone();
            // The model need not wait for slow clients.
            session.advance(SessionProgress::Ended);
            (end, session.began.elapsed())
        };
        let telling = async {
            if !has_ended {
                session.live.notify(|piece| setting.sink.notify_later(delta(&setting, piece))).await;
            }
        };
        let stopping = async {
            setting.scope.cancelled().await;
            session.stop();
        };
        let followed = async { tokio::join!(reading, telling) };
        let ((end, duration), ()) = to_the_end(followed, stopping).await;
        let written = text_of(&self.transcript);
        let output = match &end.lost {
            Some(lost) => format!("{written}\n{lost}\n"),
            None => written,
        };
        let ending = EndedCommand { output, exit_code: end.code, duration, whole: self.overflow.finish() };
        session.advance(SessionProgress::Shown);
        session.unattended().await;
        setting.sink.end_item(ended(self.item, &ending)).await;
        session.advance(SessionProgress::Told);
    }

    fn keep(&mut self, chunk: &Chunk) {
        self.transcript.push(&chunk.bytes);
        self.overflow.push(&chunk.bytes);
        self.session.set_whole(self.overflow.so_far());
        self.session.push(chunk);
    }
}
