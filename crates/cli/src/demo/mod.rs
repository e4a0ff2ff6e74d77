//! `oarlock demo`: a real turn through the real runtime, with the offline model and files of its own.

mod workshop;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{ServerNotification, Thread, ThreadId, ThreadReadParams, ThreadStartParams, UserInput};
use runtime::Catalogue;
use runtime::config::{Home, Loader, LoaderOptions};
use tracing_subscriber::filter::LevelFilter;

use self::workshop::Workshop;
use crate::session::{Output, Request, Session};
use crate::terminal::{Color, Paint, Style, View, describe};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Keep the folder with the demo's files and records.
    #[arg(long)]
    keep: bool,
    /// When to use colours: `auto` on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

/// What lies in the workspace at first.
const FILES: &[(&str, &str)] = &[
    ("notes.txt", "The gate sticks when it rains.\nThe lamp in the hall is broken.\nAsk about the boat.\n"),
    ("shopping.txt", "oil\nbulbs\n"),
];

/// One line is one step for the offline model, which follows simple rules.
const PROMPT: &str = r#"plan: look around; read the notes; write a to-do list; check it
list files
read notes.txt
call write_file {"path": "todo.md", "text": "- [ ] oil the gate\n- [ ] change the bulb in the hall\n- [ ] ask about the boat\n"}
read todo.md
call update_plan {"plan": [{"step": "look around", "status": "completed"}, {"step": "read the notes", "status": "completed"}, {"step": "write a to-do list", "status": "completed"}, {"step": "check it", "status": "completed"}]}"#;

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    crate::logging::init(LevelFilter::ERROR);
    let scratch = tempfile::Builder::new().prefix("oarlock-demo-").tempdir();
    let scratch = scratch.context("a folder for the demo cannot be made")?;
    let place = Place::make(scratch.path())?;
    let paint = Paint::choose(options.color, io::stdout().is_terminal());
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = tokio.block_on(tour(&place, paint));
    tokio.shutdown_background();
    let kept = options.keep.then(|| scratch.keep());
    shown?;
    farewell(paint, kept.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

/// The folders of one demo.
#[derive(Debug)]
struct Place {
    workspace: PathBuf,
    home: PathBuf,
}

impl Place {
    fn make(root: &Path) -> Result<Self> {
        let place = Self { workspace: root.join("workspace"), home: root.join("home") };
        for folder in [&place.workspace, &place.home] {
            fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        }
        for (name, text) in FILES {
            fs::write(place.workspace.join(name), text).with_context(|| (*name).to_owned())?;
        }
        Ok(place)
    }

    /// Nothing of the user's or the machine's settings counts: the demo is the same everywhere.
    fn session(&self, tools: Option<Arc<Workshop>>) -> Session {
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            ..LoaderOptions::default()
        };
        let flags = vec![("model_provider".to_owned(), "offline".to_owned())];
        let loader = Loader::new(Home::at(&self.home), flags, options);
        Session::new(loader, Catalogue::bundled(), tools.map(|tools| tools as Arc<_>))
    }
}

struct Screen(View<io::Stdout>);

impl Output for Screen {
    fn heard(&mut self, notification: &ServerNotification) -> io::Result<()> {
        self.0.on(notification)
    }
}

async fn tour(place: &Place, paint: Paint) -> Result<()> {
    chapter(
        paint,
        "1. A turn",
        "A folder with two files, three tools this program runs for the model, and one prompt. The model is the small \
         offline one: it follows rules, one line of the prompt per step, and is not intelligent. Threads, tools, \
         events and records are the real thing.",
    )?;
    let mut session = place.session(Some(Arc::new(Workshop::new(&place.workspace)?)));
    let opened = session
        .runtime
        .start_thread(ThreadStartParams {
            cwd: Some(place.workspace.to_string_lossy().into_owned()),
            dynamic_tools: Some(Workshop::specs()),
            ..ThreadStartParams::default()
        })
        .await?;
    let mut screen = Screen(View::new(io::stdout(), paint, false));
    screen.0.heading(&crate::exec::heading(&opened, PROMPT))?;
    let request = Request {
        thread_id: opened.thread.id.clone(),
        input: vec![UserInput::Text { text: PROMPT.to_owned(), text_elements: Vec::new() }],
        output_schema: None,
    };
    let ending = session.run_turn(request, &mut screen).await;
    session.close().await;
    if !ending?.is_good() {
        bail!("the demo's turn did not complete");
    }
    recorded(place, &opened.thread.id, paint).await
}

/// Reads the thread back the way another process would: from its record alone.
async fn recorded(place: &Place, id: &ThreadId, paint: Paint) -> Result<()> {
    chapter(
        paint,
        "2. What was recorded",
        "The runtime above is gone. A new one reads the thread from its file; this is what it finds.",
    )?;
    let session = place.session(None);
    let params = ThreadReadParams { thread_id: id.clone(), include_turns: true, exclude_turns: false };
    let thread = session.runtime.read_thread(params).await;
    session.close().await;
    let thread: Thread = thread?;
    let mut out = io::stdout();
    for turn in &thread.turns {
        for item in &turn.items {
            writeln!(out, "  {}", describe(item))?;
        }
    }
    let path = thread.path.unwrap_or_default();
    let lines = fs::read_to_string(&path).map(|text| text.lines().count()).unwrap_or_default();
    let relative = Path::new(&path).strip_prefix(place.home.canonicalize()?).map(Path::to_owned);
    let shown = relative.unwrap_or_else(|_| PathBuf::from(&path));
    writeln!(out, "\nThe record is {} in the home folder, {lines} lines of JSON.", shown.display())?;
    Ok(out.flush()?)
}

fn chapter(paint: Paint, title: &str, text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "\n{}\n{text}\n", paint.text(Style::Strong, title))?;
    out.flush()
}

fn farewell(paint: Paint, kept: Option<&Path>) -> io::Result<()> {
    chapter(
        paint,
        "3. What to try next",
        "oarlock exec --provider offline --skip-git-repo-check \"plan: one; two, then say done\"\n\
         oarlock exec --json --provider offline --skip-git-repo-check \"say hello\"\n\
         oarlock exec resume --last --skip-git-repo-check \"say hello again\"\n\
         oarlock threads\n\
         oarlock doctor                 what a real model needs\n\
         oarlock app-server --help      serve an editor or another program",
    )?;
    let mut out = io::stdout();
    match kept {
        Some(path) => writeln!(
            out,
            "The demo's files are in {0}. To look at its records: OARLOCK_HOME={0}/home oarlock threads",
            path.display()
        ),
        None => writeln!(out, "The demo's files are removed again; --keep leaves them."),
    }
}
