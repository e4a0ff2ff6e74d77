//! `oarlock policy check`: what would be done with a command, and which rule says so.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use policy::{CommandQuestion, Escalation, Executables, Rules, decide};
use protocol::AskForApproval;
use runtime::config::RequestOverrides;
use turn_view::CommandReport;

use crate::exec::Sandbox;
use crate::flags::Flags;
use crate::terminal::{Color, Paint, escaped_json, screened};
use crate::workplace::Workplace;

#[derive(Debug, Args)]
pub(crate) struct PolicyOptions {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Say whether a command would run, be asked about or be refused, and why.
    #[command(after_help = EXAMPLES)]
    Check(Box<CheckOptions>),
}

const EXAMPLES: &str = "\
Nothing is run. The rules are those of `rules/*.rules` in the home folder, in the folder `.codex`
of a project you trust, and in the files of --rules.

The exit code is 0 when the command would run, 3 when it would be asked about, 4 when it would be
refused, 1 when that cannot be found out, and 2 when this command line is not understood.

Examples:
  oarlock policy check -- git push origin main
  oarlock policy check \"git fetch && rm -rf build\"
  oarlock policy check --approval-policy never --sandbox workspace-write -- cargo test
  oarlock policy check --json --rules new.rules -- npm publish";

#[derive(Debug, Args)]
struct CheckOptions {
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    /// One more file of rules, after those of the home folder and the project. Repeat for more.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// When to ask; else what the configuration says.
    #[arg(long, value_enum, value_name = "POLICY")]
    approval_policy: Option<Approval>,
    /// Where commands may write; without it, the configuration decides.
    #[arg(short = 's', long, value_enum, value_name = "MODE")]
    sandbox: Option<Sandbox>,
    /// As if run in this folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    cd: Option<PathBuf>,
    /// When to use colours: `auto` on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
    #[command(flatten)]
    flags: Flags,
    /// The command, word by word; or one argument with spaces, which is read as a line for the shell.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    argv: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Approval {
    /// Ask about all but what is known to be safe.
    Untrusted,
    /// Ask after the sandbox stopped something.
    OnFailure,
    /// Ask when the model wants more than the sandbox gives.
    OnRequest,
    /// Never ask.
    Never,
}

impl From<Approval> for AskForApproval {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Untrusted => Self::Untrusted,
            Approval::OnFailure => Self::OnFailure,
            Approval::OnRequest => Self::OnRequest,
            Approval::Never => Self::Never,
        }
    }
}

pub(crate) fn run(options: PolicyOptions, root: Flags) -> Result<ExitCode> {
    let PolicyCommand::Check(options) = options.command;
    check(*options, root)
}

fn check(options: CheckOptions, root: Flags) -> Result<ExitCode> {
    let overrides = RequestOverrides {
        approval_policy: options.approval_policy.map(Into::into),
        sandbox_mode: options.sandbox.map(Into::into),
        ..RequestOverrides::default()
    };
    let place = Workplace::load(&root.then(options.flags), options.cd.as_deref(), overrides)?;
    let config = &place.config;
    let (mut rules, warnings) =
        Rules::load_all(&config.rule_folders(), &config.project_rules, &config.requirements.rules);
    for file in &options.rules {
        rules.merge(read_rules(file)?);
    }
    let permissions = &place.config.permissions;
    let mut writable = vec![place.folder.clone()];
    writable.extend(
        place
            .confinement(&permissions.sandbox_policy, false)
            .into_iter()
            .flat_map(|confinement| confinement.writable),
    );
    let path = place.env.get("PATH").map_or(OsStr::new(""), OsStr::new);
    let executables = Executables::new(path, &place.folder, &writable).with_environment(&place.env);
    let argv = as_run(options.argv);
    let question = CommandQuestion {
        argv: &argv,
        approval: &permissions.approval_policy,
        sandbox: &permissions.sandbox_policy,
        escalation: Escalation::Default,
        prefix_rule: None,
        rules: &rules,
        executables: &executables,
    };
    let answer = CommandReport {
        verdict: decide(&question),
        found: rules.check_line(&argv, &executables),
        argv: &argv,
        approval: &permissions.approval_policy,
        sandbox: &permissions.sandbox_policy,
        rules: &rules,
        warnings: warnings.iter().map(ToString::to_string).collect(),
    };
    let text = match options.json {
        true => escaped_json(&format!("{:#}\n", answer.json())).into_owned(),
        false => {
            screened(&answer.text(Paint::choose(options.color, io::stdout().is_terminal()))).into_owned()
        }
    };
    io::stdout().write_all(text.as_bytes()).context("the answer cannot be written")?;
    Ok(ExitCode::from(answer.exit_code()))
}

fn read_rules(file: &PathBuf) -> Result<Rules> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).with_context(|| format!("--rules {name} cannot be read"))?;
    Ok(Rules::parse(&name, &text)?)
}

/// A single argument with spaces is a script for a shell.
fn as_run(argv: Vec<String>) -> Vec<String> {
    match argv.as_slice() {
        [line] if line.contains(char::is_whitespace) => {
            vec!["bash".to_owned(), "-lc".to_owned(), line.clone()]
        }
        _ => argv,
    }
}
