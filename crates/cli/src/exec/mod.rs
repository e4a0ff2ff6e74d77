//! `oarlock exec`: one prompt, one turn, one answer.

mod args;
mod details;
mod event;
mod mapper;
mod plan;
mod prompt;
mod resume;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use protocol::{ServerNotification, ThreadId};
use runtime::{Opened, Then};
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;

use self::args::Job;
use self::event::Event;
use self::mapper::Mapper;
use self::resume::Found;
use crate::flags::Flags;
use crate::session::{Ending, Output, Request, Session};
use crate::terminal::{Heading, Paint, View, clean, escaped_json};

pub(crate) use self::args::{ExecArgs, ExecOptions, Sandbox};
pub(crate) use self::plan::{Plan, folder, is_in_repository};
pub(crate) use self::resume::STARTED_BY_USERS;

pub(crate) fn run(args: ExecArgs, root: Flags) -> Result<ExitCode> {
    let mut job = args.job(root)?;
    crate::logging::init(LevelFilter::ERROR);
    let plan = Plan::make(&job.options)?;
    let prompt = prompt::read(job.prompt.take())?;
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ending = tokio.block_on(drive(&plan, &job, &prompt));
    // A model request that hangs must not hold up the exit.
    tokio.shutdown_background();
    finish(&job, &ending?)
}

async fn drive(plan: &Plan, job: &Job, prompt: &str) -> Result<Ending> {
    // Tried while the thread opens, so that nobody waits for it.
    let landlock_only = plan.landlock_only;
    let walls = tokio::task::spawn_blocking(move || crate::walls::missing(landlock_only));
    let mut session = Session::new(plan.loader.clone(), plan.catalogue.clone());
    let (opened, note) = open(&session, plan, job).await?;
    let missing = match crate::walls::are_wanted(&opened.settings.sandbox) {
        true => walls.await?,
        false => None,
    };
    let mut screen = Screen::new(plan, job);
    screen.opened(&opened, prompt, plan.warnings.iter().chain(&note).chain(&missing))?;
    let request = Request {
        thread_id: opened.thread.id.clone(),
        input: plan.input(prompt),
        output_schema: plan.output_schema.clone(),
    };
    let ending = session.run_turn(request, &mut screen).await;
    session.close().await;
    ending
}

/// The thread, and what to tell about the choice of it.
async fn open(session: &Session, plan: &Plan, job: &Job) -> Result<(Opened, Option<String>)> {
    let runtime = &session.runtime;
    match resume::find(runtime, &job.target, &plan.folder.to_string_lossy()).await? {
        Found::Nothing { note } => Ok((runtime.start_thread(plan.start_params(), None).await?, note)),
        // Without a record of what follows the thread itself stays as it is, so a copy goes on.
        Found::Thread(id) if plan.is_ephemeral() => {
            Ok((runtime.fork_thread(plan.reopen_params(&id)?, None).await?, None))
        }
        Found::Thread(id) => Ok((resume_thread(session, plan, &id).await?, None)),
    }
}

async fn resume_thread(session: &Session, plan: &Plan, id: &ThreadId) -> Result<Opened> {
    let (told, wait) = oneshot::channel();
    let joined = Then::new(move |opened| {
        drop(told.send(opened));
        Box::pin(async {})
    });
    session.runtime.resume_thread(plan.reopen_params(id)?, None, joined).await;
    Ok(wait.await.context("the runtime has ended")??)
}

/// Where the turn is shown: as events on standard output, or to a person on standard error.
enum Screen {
    Events { mapper: Mapper, out: io::Stdout },
    Person(View<io::Stderr>),
}

impl Screen {
    fn new(plan: &Plan, job: &Job) -> Self {
        if job.options.json {
            return Self::Events { mapper: Mapper::default(), out: io::stdout() };
        }
        let paint = Paint::choose(job.options.color.unwrap_or_default(), io::stderr().is_terminal());
        Self::Person(View::new(io::stderr(), paint, plan.hides_reasoning).within(&plan.folder))
    }

    fn opened<'a>(
        &mut self,
        opened: &Opened,
        prompt: &str,
        warnings: impl Iterator<Item = &'a String>,
    ) -> io::Result<()> {
        match self {
            Self::Events { mapper, out } => {
                write_event(out, &Event::ThreadStarted { thread_id: opened.thread.id.to_string() })?;
                for warning in warnings {
                    write_event(out, &mapper.warning(warning.clone()))?;
                }
                Ok(())
            }
            Self::Person(view) => {
                view.heading(&heading(opened, prompt))?;
                for warning in warnings {
                    view.warning(warning)?;
                }
                Ok(())
            }
        }
    }
}

impl Output for Screen {
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
}

fn write_event(out: &mut io::Stdout, event: &Event) -> io::Result<()> {
    let line = serde_json::to_string(event)?;
    writeln!(out, "{}", escaped_json(&line))?;
    out.flush()
}

pub(crate) fn heading(opened: &Opened, prompt: &str) -> Heading {
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
    match policy {
        protocol::SandboxPolicy::DangerFullAccess => "none".to_owned(),
        protocol::SandboxPolicy::ReadOnly { .. } => "read-only".to_owned(),
        protocol::SandboxPolicy::ExternalSandbox { .. } => "outside of oarlock".to_owned(),
        protocol::SandboxPolicy::WorkspaceWrite { writable_roots, .. } => {
            // Every home has one as far as settings go; most have none on disk.
            let is_there = |root: &&str| !root.ends_with("/memories") || Path::new(root).exists();
            let roots = writable_roots.iter().map(|root| root.as_str()).filter(is_there);
            let roots = roots.collect::<Vec<_>>().join(", ");
            let roots = if roots.is_empty() { String::new() } else { format!(" and {roots}") };
            format!("may write to the folder{roots}")
        }
    }
}

/// The final message goes to its places, if the turn got that far.
fn finish(job: &Job, ending: &Ending) -> Result<ExitCode> {
    if !ending.is_good() {
        return Ok(ExitCode::FAILURE);
    }
    let message = ending.message.as_deref();
    if let Some(path) = &job.options.output_last_message {
        write_message(path, message)?;
    }
    if !job.options.json {
        print_message(message)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_message(path: &Path, message: Option<&str>) -> Result<()> {
    if message.is_none() {
        eprintln!("oarlock: there is no final message; {} is left empty", path.display());
    }
    fs::write(path, message.unwrap_or_default())
        .with_context(|| format!("--output-last-message {} cannot be written", path.display()))
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
