//! `oarlock exec`: one prompt or one review, one turn, one answer.

mod answer_file;
mod args;
mod checks;
mod placed;
mod plan;
mod prompt;
mod resume;
mod review;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use protocol::{
    AskForApproval, ReviewTarget, ServerNotification, Thread, ThreadId, ThreadResumeParams, TurnStatus,
};
use runtime::{OpenedThread, Then};
use sandbox::SelfTest;
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;
use turn_view::{ExecEvent, LiveScreen, Mapper, WriteAccess};

use self::args::ExecJob;
use self::resume::ResumeChoice;
use crate::earlier_rules::EarlierRules;
use crate::flags::Flags;
use crate::session::{LocalSession, SIGNALLED, TurnEnding, TurnOutput, TurnRequest, TurnWork};
use crate::terminal::{Heading, Paint, View, clean, escaped_json};
use crate::wording::with_details;

pub(crate) use self::args::{ExecArgs, ExecOptions, Sandbox};
pub(crate) use self::checks::{image, image_url};
pub(crate) use self::plan::{ExecPlan, folder, is_in_repository};
pub(crate) use self::resume::STARTED_BY_USERS;

pub(crate) fn run(args: ExecArgs, root: Flags) -> Result<ExitCode> {
    let mut job = args.job(root)?;
    service::init_logging(LevelFilter::ERROR);
    let plan = ExecPlan::make(&job.options)?;
    let task = match job.review.take() {
        Some(review) => ExecTask::Review(review.target()?),
        None => ExecTask::Prompt(prompt::read(job.prompt.take())?),
    };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = tokio.block_on(async {
        match &job.options.placement {
            Some(place) => placed::drive(&plan, &job, &task, place).await,
            None => drive(&plan, &job, &task).await,
        }
    });
    // A model request that hangs must not hold up the exit.
    tokio.shutdown_background();
    match ending {
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::from(SIGNALLED + SIGPIPE)),
        ending => finish(&plan, &job, &ending?),
    }
}

const SIGPIPE: u8 = 13;

/// Whoever has closed the pipe knows why, so nothing is said.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

/// The task of the turn.
enum ExecTask {
    Prompt(String),
    Review(ReviewTarget),
}

impl ExecTask {
    /// The words above the turn.
    fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Prompt(prompt) => Cow::Borrowed(prompt),
            Self::Review(target) => Cow::Owned(review::shown(target)),
        }
    }

    fn work(&self, plan: &ExecPlan) -> TurnWork {
        match self {
            Self::Prompt(prompt) => {
                TurnWork::Prompt { input: plan.input(prompt), output_schema: plan.output_schema.clone() }
            }
            Self::Review(target) => TurnWork::Review(target.clone()),
        }
    }
}

async fn drive(plan: &ExecPlan, job: &ExecJob, task: &ExecTask) -> Result<TurnEnding> {
    // Tried while the thread opens, so that nobody waits for it.
    let landlock_only = plan.landlock_only;
    let missing = tokio::task::spawn_blocking(move || SelfTest::run().missing(landlock_only));
    let mut session = LocalSession::new(plan.loader.clone(), plan.catalogue.clone());
    let OpenedTarget { opened, notes } = open(&session, plan, job).await?;
    let missing = match crate::sandbox_check::is_sandboxed(&opened.settings.sandbox) {
        true => missing.await?,
        false => None,
    };
    let mut screen = ExecScreen::new(plan, job);
    let unknown = opened.unknown_model.as_ref();
    let unknown = unknown.map(|told| with_details(&told.summary, told.details.as_deref()));
    let warnings = plan.warnings.iter().chain(&notes).chain(&missing).chain(&unknown);
    screen.opened(&opened, &task.shown(), warnings)?;
    let request = TurnRequest { thread_id: opened.thread.id.clone(), work: task.work(plan) };
    let ending = session.run_turn(request, &mut screen).await;
    session.close().await;
    if ending.is_ok() {
        screen.left(&opened.thread)?;
    }
    ending
}

/// The thread, and what to tell about the choice of it.
struct OpenedTarget {
    opened: OpenedThread,
    notes: Vec<String>,
}

async fn open(session: &LocalSession, plan: &ExecPlan, job: &ExecJob) -> Result<OpenedTarget> {
    let (runtime, home) = (&session.runtime, plan.loader.home());
    let id = match resume::find(runtime, home, &job.target, &plan.folder.to_string_lossy()).await? {
        ResumeChoice::Nothing { note } => {
            let params = plan.with_offered_provider(plan.start_params(), runtime.model_directory()).await;
            let opened = runtime.start_thread(params, session.opener()).await?;
            return Ok(OpenedTarget { opened, notes: note.into_iter().collect() });
        }
        ResumeChoice::Thread(id) => id,
    };
    let (home, read) = (home.clone(), id.clone());
    let earlier = tokio::task::spawn_blocking(move || EarlierRules::of(&home, &read)).await?;
    let opened = match plan.is_ephemeral() {
        // Without a record of what follows the thread itself stays as it is, so a copy goes on.
        true => runtime.fork_thread(plan.reopen_params(&id, &earlier)?, session.opener()).await?,
        false => resume_thread(session, plan.reopen_params(&id, &earlier)?).await?,
    };
    let notes = changed_rules(plan, &earlier, &opened);
    Ok(OpenedTarget { opened, notes })
}

/// The rules of the thread that do not hold any more.
fn changed_rules(plan: &ExecPlan, earlier: &EarlierRules, opened: &OpenedThread) -> Vec<String> {
    let sandbox = match plan.keeps_sandbox() {
        true => earlier.lost(&opened.settings.sandbox, sandbox_word),
        false => None,
    };
    let asked = earlier.approvals.as_ref().filter(|policy| **policy != AskForApproval::Never);
    let approvals = asked.map(|policy| {
        let id = crate::threads::short_id(opened.thread.id.as_str());
        format!(
            "this thread asks ({}), and nobody can be asked here: what needs a yes is refused; `oarlock resume {id}` \
             goes on where you are asked",
            word(policy)
        )
    });
    sandbox.into_iter().chain(approvals).collect()
}

async fn resume_thread(session: &LocalSession, params: ThreadResumeParams) -> Result<OpenedThread> {
    let (told, wait) = oneshot::channel();
    let joined = Then::new(move |opened| {
        drop(told.send(opened));
        Box::pin(async {})
    });
    session.runtime.resume_thread(params, session.opener(), joined).await;
    Ok(wait.await.context("the runtime has ended")??)
}

/// Where the turn is shown: as events on standard output, or to a person on standard error.
enum ExecScreen {
    Events { mapper: Mapper, out: io::Stdout },
    Person(View<io::Stderr>),
}

impl ExecScreen {
    fn new(plan: &ExecPlan, job: &ExecJob) -> Self {
        if job.options.json {
            return Self::Events { mapper: Mapper::default(), out: io::stdout() };
        }
        let paint = Paint::choose(job.options.color.unwrap_or_default(), io::stderr().is_terminal());
        let view = View::new(io::stderr(), paint, plan.hides_reasoning)
            .within(&plan.folder)
            .verbose(job.options.verbose);
        Self::Person(match live_screen() {
            Some(screen) => view.live(screen),
            None => view,
        })
    }

    /// How to go on with a thread that is kept.
    fn left(&mut self, thread: &Thread) -> io::Result<()> {
        match self {
            Self::Person(view) if !thread.ephemeral => {
                let id = crate::threads::short_id(thread.id.as_str());
                view.remark(&format!("go on: oarlock exec resume {id} \"...\", or oarlock resume {id}"))
            }
            _ => Ok(()),
        }
    }

    fn opened<'a>(
        &mut self,
        opened: &OpenedThread,
        prompt: &str,
        warnings: impl Iterator<Item = &'a String>,
    ) -> io::Result<()> {
        let access = write_access(&opened.settings.sandbox);
        match self {
            Self::Person(view) => view.set_access(access),
            Self::Events { mapper, .. } => mapper.set_access(access),
        }
        self.begun(&opened.thread.id, &heading(opened, prompt), warnings)
    }

    fn begun<'a>(
        &mut self,
        thread: &ThreadId,
        heading: &Heading,
        warnings: impl Iterator<Item = &'a String>,
    ) -> io::Result<()> {
        match self {
            Self::Events { mapper, out } => {
                write_event(out, &ExecEvent::ThreadStarted { thread_id: thread.to_string() })?;
                for warning in warnings {
                    write_event(out, &mapper.warning(warning.clone()))?;
                }
                Ok(())
            }
            Self::Person(view) => {
                view.heading(heading)?;
                for warning in warnings {
                    view.warning(warning)?;
                }
                Ok(())
            }
        }
    }
}

impl TurnOutput for ExecScreen {
    fn heard(&mut self, notification: &ServerNotification) -> io::Result<()> {
        match self {
            Self::Events { mapper, out } => {
                for event in mapper.on(notification) {
                    write_event(out, &event)?;
                }
                Ok(())
            }
            Self::Person(view) => view.on(notification),
        }
    }

    fn has_clock(&self) -> bool {
        matches!(self, Self::Person(view) if view.is_live())
    }

    fn tick(&mut self, elapsed: Duration) -> io::Result<()> {
        match self {
            Self::Events { .. } => Ok(()),
            Self::Person(view) => view.tick(elapsed, live_screen()),
        }
    }
}

/// A terminal that can be drawn on again.
fn live_screen() -> Option<LiveScreen> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    let is_ascii = locale.is_some_and(|locale| locale == "C" || locale == "POSIX");
    (io::stderr().is_terminal() && !is_dumb).then(|| LiveScreen {
        columns: turn_view::columns(),
        rows: turn_view::screen_rows(),
        is_ascii,
    })
}

fn write_access(policy: &protocol::SandboxPolicy) -> WriteAccess {
    match policy {
        protocol::SandboxPolicy::ReadOnly { .. } => WriteAccess::Nowhere,
        protocol::SandboxPolicy::WorkspaceWrite { .. } => WriteAccess::Folder,
        protocol::SandboxPolicy::DangerFullAccess | protocol::SandboxPolicy::ExternalSandbox { .. } => {
            WriteAccess::Everywhere
        }
    }
}

fn write_event(out: &mut io::Stdout, event: &ExecEvent) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    writeln!(out, "{}", escaped_json(&line))?;
    out.flush()
}

pub(crate) fn heading(opened: &OpenedThread, prompt: &str) -> Heading {
    let settings = &opened.settings;
    let effort = settings.effort.map(|effort| format!(", effort {}", word(&effort))).unwrap_or_default();
    let record = if opened.thread.ephemeral { " (not recorded)" } else { "" };
    Heading {
        title: format!("oarlock {}", env!("CARGO_PKG_VERSION")),
        facts: vec![
            ("folder", settings.cwd.clone()),
            ("model", format!("{} (provider {}){effort}", settings.model, settings.model_provider)),
            ("sandbox", sandbox_word(&settings.sandbox)),
            ("thread", format!("{}{record}", opened.thread.id)),
        ],
        prompt: prompt.to_owned(),
    }
}

/// The word the wire has for it.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn sandbox_word(policy: &protocol::SandboxPolicy) -> String {
    let with = |has_network: bool| if has_network { ", with the network" } else { "" };
    match policy {
        protocol::SandboxPolicy::DangerFullAccess => "none".to_owned(),
        protocol::SandboxPolicy::ReadOnly { network_access, .. } => {
            format!("read-only{}", with(*network_access))
        }
        protocol::SandboxPolicy::ExternalSandbox { .. } => "outside of oarlock".to_owned(),
        protocol::SandboxPolicy::WorkspaceWrite { writable_roots, network_access, .. } => {
            // Every home has one as far as settings go; most have none on disk.
            let is_there = |root: &&str| !root.ends_with("/memories") || Path::new(root).exists();
            let roots = writable_roots.iter().map(|root| root.as_str()).filter(is_there);
            let roots = roots.collect::<Vec<_>>().join(", ");
            let roots = if roots.is_empty() { String::new() } else { format!(" and {roots}") };
            format!("may write to the folder{roots}{}", with(*network_access))
        }
    }
}

/// The final message goes to its places, if the turn got that far.
fn finish(plan: &ExecPlan, job: &ExecJob, ending: &TurnEnding) -> Result<ExitCode> {
    if let (TurnStatus::Interrupted, Some(code)) = (ending.status, ending.stopped) {
        return Ok(ExitCode::from(code));
    }
    if !ending.is_good() {
        return Ok(ExitCode::FAILURE);
    }
    let message = ending.message.as_deref();
    if let Some(answer) = &plan.answer {
        if message.is_none() {
            eprintln!("oarlock: there is no final message; the file for it is left empty");
        }
        answer.write(message.unwrap_or_default())?;
    }
    if !job.options.json {
        print_message(message)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// On a screen that shows both streams the message is there already.
fn print_message(message: Option<&str>) -> Result<()> {
    let mut out = io::stdout();
    let is_terminal = out.is_terminal();
    let Some(message) = message.filter(|_| !(is_terminal && io::stderr().is_terminal())) else {
        return Ok(());
    };
    let written = match is_terminal {
        true => writeln!(out, "{}", clean(message)),
        false => writeln!(out, "{message}"),
    };
    written.and_then(|()| out.flush()).context("the final message cannot be written")
}
