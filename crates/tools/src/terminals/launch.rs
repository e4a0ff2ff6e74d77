//! From a wish to a terminal that is followed to its end. Runs on its own, so that neither an interrupted turn nor the
//! end of the call leaves an item without an end.

use std::sync::Arc;
use std::time::Duration;

use protocol::ThreadItem;
use sandbox::{CAPTURE_BYTES, Chunk, Confinement, Guard, HeadTail, Io, Process, TerminalSize};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Reservation;
use super::session::{Parts, Progress, Session};
use crate::CallScope;
use crate::orchestrate::{
    Blocked, Clearing, Ending, Go, Outlet, Overflow, Setting, delta, ended, not_started, start, text_of,
};

/// More than this is not held back any longer.
const EARLY_BYTES: usize = 256 * 1024;
/// How long to wait, after the end, for whoever still has the output open.
const TRAILING: Duration = Duration::from_millis(100);

/// A terminal that is about to be.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) clearing: Clearing,
    pub(crate) reservation: Reservation,
    pub(crate) tty: bool,
    /// See [`crate::BenchOptions::early`].
    pub(crate) early: Duration,
}

/// What came of it.
pub(crate) type Launched = Result<Arc<Session>, Blocked>;

/// A process in its first moments.
struct Young {
    process: Process,
    output: Outlet,
    began: Instant,
    /// What it wrote so far.
    chunks: Vec<Chunk>,
    has_ended: bool,
    confinement: Option<Confinement>,
}

impl Launch {
    pub(crate) async fn run(mut self, answer: oneshot::Sender<Launched>) {
        // Until clients were told of the end, or the thread lets it go on.
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
        let Self { clearing, reservation, tty, .. } = self;
        let Young { process, output, began, chunks, has_ended, confinement } = young;
        let (setting, item) = clearing.into_parts();
        let command = match &item {
            ThreadItem::CommandExecution { command, .. } => command.clone(),
            _ => String::new(),
        };
        let (id, item_id) = (reservation.id(), setting.item_id());
        let elsewhere = setting.elsewhere.as_ref().map(|place| place.id().to_owned());
        let parts = Parts { id, command, item_id, tty, began, process, elsewhere, confinement };
        let session = Session::new(parts);
        reservation.fill(&session);
        // Whoever started it may be gone; it can still be reached by its id.
        let _ = answer.send(Ok(session.clone()));
        let overflow = Overflow::new(setting.options.outputs.as_deref());
        let transcript = HeadTail::new(CAPTURE_BYTES);
        let watch = Watch { session, setting, item, transcript, overflow };
        watch.run(output, chunks, has_ended).await;
    }

    /// Tries it, and once more without a sandbox where that stopped it and a client agrees.
    async fn start(&mut self) -> Result<Young, Blocked> {
        let mut go = self.clearing.clear().await?;
        loop {
            self.check_waited()?;
            let confined = go.is_confined();
            let young = self.spawn(go).await?;
            let exit = young.process.exit().filter(|_| young.has_ended);
            let stopped =
                exit.is_some_and(|exit| self.clearing.may_retry(confined, exit.code, &text(&young.chunks)));
            if !stopped || self.check_waited().is_err() {
                return Ok(young);
            }
            go = self.clearing.clear_unsandboxed().await?;
        }
    }

    /// What an interrupted turn was about to start does not start.
    fn check_waited(&self) -> Result<(), Blocked> {
        match self.scope().is_cancelled() {
            true => Err(aborted()),
            false => Ok(()),
        }
    }

    fn scope(&self) -> &CallScope {
        &self.clearing.setting().scope
    }

    async fn spawn(&self, go: Go) -> Result<Young, Blocked> {
        let io = if self.tty { Io::Terminal(TerminalSize::default()) } else { Io::Null };
        let guard: Guard = Arc::new(self.scope().hold());
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
            // Whoever follows it from here on ends it.
            () = self.scope().cancelled() => false,
        };
        Ok(Young { process, output, began, chunks, has_ended, confinement })
    }

    async fn end_unstarted(&self, blocked: &Blocked) {
        if !self.clearing.is_open() {
            return;
        }
        let item = not_started(self.clearing.item().clone(), blocked);
        self.clearing.setting().sink.end_item(item).await;
    }
}

fn aborted() -> Blocked {
    Blocked::Failed("aborted by user".to_owned())
}

fn text(chunks: &[Chunk]) -> String {
    let bytes: Vec<u8> = chunks.iter().flat_map(|chunk| chunk.bytes.iter().copied()).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Goes on with the work when the other has happened, too.
async fn to_the_end<T>(work: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = other => {}
    }
    work.await
}

/// Whoever reads what a command writes, until its end.
struct Watch {
    session: Arc<Session>,
    setting: Setting,
    item: ThreadItem,
    transcript: HeadTail,
    overflow: Overflow,
}

impl Watch {
    async fn run(mut self, mut output: Outlet, early: Vec<Chunk>, has_ended: bool) {
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
            // The model need not wait for clients that are slow to listen.
            session.advance(Progress::Ended);
            (end, session.began.elapsed())
        };
        let telling = async {
            if !has_ended {
                session.live.tell(|piece| setting.sink.tell_later(delta(&setting, piece))).await;
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
        let ending = Ending { output, exit_code: end.code, duration, whole: self.overflow.finish() };
        session.advance(Progress::Shown);
        session.unattended().await;
        setting.sink.end_item(ended(self.item, &ending)).await;
        session.advance(Progress::Told);
    }

    fn keep(&mut self, chunk: &Chunk) {
        self.transcript.push(&chunk.bytes);
        self.overflow.push(&chunk.bytes);
        self.session.set_whole(self.overflow.so_far());
        self.session.push(chunk);
    }
}
