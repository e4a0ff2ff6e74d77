//! `oarlock demo`: a real turn through the real runtime, with the offline model and files of its own.

mod console;
mod level;
mod place;

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{
    AskForApproval, SandboxMode, ServerNotification, Thread, ThreadId, ThreadItem, ThreadReadParams,
    ThreadStartParams, UserInput,
};
use runtime::Catalogue;
use runtime::config::{Home, Loader, LoaderOptions};
use sandbox::SelfTest;
use tracing_subscriber::filter::LevelFilter;

use self::level::DemoSandbox;
use self::place::{DemoFolder, NEXT_DOOR};
use crate::private_folder::private_temporary;
use crate::session::{LocalSession, TurnOutput, TurnRequest, TurnWork};
use crate::terminal::{Color, Paint, TextStyle, View, describe};

#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Keep the folder with the demo's files and records.
    #[arg(long)]
    keep: bool,
    /// Start a host with tasks in several states, and print the address of its console.
    #[arg(long, conflicts_with_all = ["keep", "model_url"])]
    console: bool,
    /// The port of that console; 0 picks a free one.
    #[arg(long, value_name = "PORT", default_value_t = 4600, requires = "console")]
    port: u16,
    /// When to use colours: `auto` on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
    /// Ask a model server instead of the model inside this program. It must follow the same rules.
    #[arg(long, value_name = "URL", hide = true)]
    model_url: Option<String>,
    /// The wire of that server.
    #[arg(long, value_name = "WIRE", hide = true, default_value = "responses")]
    model_wire: String,
}

pub(crate) fn run(options: &DemoOptions) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    if options.console {
        return console::run(options.port);
    }
    let scratch = private_temporary("oarlock-demo-");
    let scratch = scratch.context("a folder for the demo cannot be made")?;
    let demo = Demo {
        place: DemoFolder::make(scratch.path())?,
        level: DemoSandbox::by(SelfTest::run()),
        paint: Paint::choose(options.color, io::stdout().is_terminal()),
        server: options.model_url.as_ref().map(|url| {
            format!("{{ name = \"demo\", base_url = \"{url}\", wire_api = \"{}\" }}", options.model_wire)
        }),
    };
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = tokio.block_on(demo.show());
    tokio.shutdown_background();
    let kept = options.keep.then(|| scratch.keep());
    shown?;
    farewell(demo.paint, kept.as_deref())?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug)]
struct Demo {
    place: DemoFolder,
    level: DemoSandbox,
    paint: Paint,
    /// The provider table of a server that is asked instead of the model inside.
    server: Option<String>,
}

impl Demo {
    async fn show(&self) -> Result<()> {
        let (id, commands) = self.turn().await?;
        self.changed(commands)?;
        self.recorded(&id).await
    }

    /// The thread, and how many commands were run.
    async fn turn(&self) -> Result<(ThreadId, usize)> {
        let text = format!(
            "A folder with a small program that fails its test, and one prompt. The model is the offline one inside \
             this program: it follows rules, one line of the prompt after the other, and is not intelligent. \
             Threads, tools, sandbox, events and records are the real thing.\n\n{}",
            self.level.notice()
        );
        chapter(self.paint, "1. A turn", &text)?;
        let mut session = self.session();
        let opened = session
            .runtime
            .start_thread(
                ThreadStartParams {
                    cwd: Some(self.place.workspace.to_string_lossy().into_owned()),
                    approval_policy: Some(AskForApproval::Never),
                    sandbox: Some(SandboxMode::WorkspaceWrite),
                    ..ThreadStartParams::default()
                },
                session.opener(),
            )
            .await?;
        let prompt = prompt(self.level.runs_commands());
        let view = View::new(io::stdout(), self.paint, false).within(&self.place.workspace);
        let mut screen = DemoScreen { view, commands: 0 };
        screen.view.heading(&crate::exec::heading(&opened, &prompt))?;
        let request = TurnRequest {
            thread_id: opened.thread.id.clone(),
            work: TurnWork::Prompt {
                input: vec![UserInput::Text { text: prompt, text_elements: Vec::new() }],
                output_schema: None,
            },
        };
        let ending = session.run_turn(request, &mut screen).await;
        session.close().await;
        match ending?.is_good() {
            true => Ok((opened.thread.id, screen.commands)),
            false => bail!("the demo's turn did not complete"),
        }
    }

    /// Found by looking at the files, whatever the model says.
    fn changed(&self, commands: usize) -> Result<()> {
        chapter(self.paint, "2. What was changed", "The workspace, compared with what it was:")?;
        let mut out = io::stdout();
        for change in self.place.changes()? {
            writeln!(out, "  {change}")?;
        }
        let told = match self.place.next_door_was_written() {
            true => {
                self.paint.text(TextStyle::Bad, format!("{NEXT_DOOR} was written: the sandbox did not hold!"))
            }
            false if commands > 0 => {
                format!("{NEXT_DOOR}, outside of the workspace, was not written: the sandbox held.")
            }
            false => "No command was run, as there is no sandbox to run it in.".to_owned(),
        };
        writeln!(out, "\n{told}")?;
        Ok(out.flush()?)
    }

    /// Reads the thread back the way another process would: from its record alone.
    async fn recorded(&self, id: &ThreadId) -> Result<()> {
        chapter(
            self.paint,
            "3. What was recorded",
            "The runtime above is gone. A new one reads the thread from its file; this is what it finds.",
        )?;
        let session = self.session();
        let params = ThreadReadParams { thread_id: id.clone(), include_turns: true, exclude_turns: false };
        let thread = session.runtime.read_thread(params).await;
        session.close().await;
        let thread: Thread = thread?;
        let mut out = io::stdout();
        for item in thread.turns.iter().flat_map(|turn| &turn.items) {
            writeln!(out, "  {}", describe(item, &self.place.workspace))?;
        }
        let path = thread.path.unwrap_or_default();
        let lines = fs::read_to_string(&path).map(|text| text.lines().count()).unwrap_or_default();
        let relative = Path::new(&path).strip_prefix(&self.place.home).map(Path::to_owned);
        let shown = relative.unwrap_or_else(|_| PathBuf::from(&path));
        writeln!(out, "\nThe record is {} in the home folder, {lines} lines of JSON.", shown.display())?;
        Ok(out.flush()?)
    }

    /// Nothing of the user's or the machine's settings counts: the demo is the same everywhere.
    fn session(&self) -> LocalSession {
        let options = LoaderOptions {
            system_file: None,
            managed_file: None,
            requirements_file: None,
            ..LoaderOptions::default()
        };
        let provider = if self.server.is_some() { "demo" } else { "offline" };
        let flags = [
            ("model_provider", provider),
            ("model", "offline"),
            // The workspace lies among temporary files, and only the workspace is to be written to.
            ("sandbox_workspace_write.exclude_slash_tmp", "true"),
            ("sandbox_workspace_write.exclude_tmpdir_env_var", "true"),
            // Output of the user's start files does not belong in the demo.
            ("allow_login_shell", "false"),
        ];
        let table = self.server.as_deref().map(|table| ("model_providers.demo", table));
        let flags = flags.into_iter().chain(self.level.flag()).chain(table);
        let flags = flags.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let loader = Loader::new(Home::at(&self.place.home), flags, options);
        LocalSession::new(loader, Catalogue::bundled().with_offline())
    }
}

/// One line is one step for the offline model.
fn prompt(runs_commands: bool) -> String {
    let steps = [
        "plan: find the mistake; correct it; check it".to_owned(),
        "list the files".to_owned(),
        "run sh test.sh".to_owned(),
        "search for \"Helo\"".to_owned(),
        "read greet.sh".to_owned(),
        "replace Helo with Hello in greet.sh".to_owned(),
        "create CHANGES.md with \"Corrected the greeting.\"".to_owned(),
        "run sh test.sh".to_owned(),
        format!("run echo mine > ../{NEXT_DOOR}"),
        "finish the plan".to_owned(),
        "sum up".to_owned(),
    ];
    let steps = steps.into_iter().filter(|step| runs_commands || !step.starts_with("run "));
    steps.collect::<Vec<_>>().join("\n")
}

struct DemoScreen {
    view: View<io::Stdout>,
    /// How many commands really ran.
    commands: usize,
}

impl TurnOutput for DemoScreen {
    fn heard(&mut self, notification: &ServerNotification) -> io::Result<()> {
        if let ServerNotification::ItemCompleted(told) = notification
            && let ThreadItem::CommandExecution { exit_code: Some(0..), .. } = &told.item
        {
            self.commands += 1;
        }
        self.view.on(notification)
    }
}

fn chapter(paint: Paint, title: &str, text: &str) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "\n{}\n{text}\n", paint.text(TextStyle::Strong, title))?;
    out.flush()
}

fn farewell(paint: Paint, kept: Option<&Path>) -> io::Result<()> {
    chapter(
        paint,
        "4. What to try next",
        "oarlock exec --provider offline --skip-git-repo-check \"list the files, then run date\"\n\
         oarlock exec resume --last --skip-git-repo-check \"say hello again\"\n\
         oarlock threads                what there is to go on with\n\
         oarlock sandbox -- sh          look around in the sandbox yourself\n\
         oarlock policy check -- git push\n\
         oarlock doctor                 what a real model needs\n\
         oarlock demo --console         a host with tasks in several states, in your browser\n\
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
