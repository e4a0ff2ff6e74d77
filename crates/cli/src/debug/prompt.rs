//! `oarlock debug prompt`: the context of the next request of a new or a stored thread.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use journal::ThreadRow;
use protocol::{AskForApproval, SessionSource, ThreadId, ThreadResumeParams};
use runtime::PromptOf;
use runtime::config::Home;
use tracing_subscriber::filter::LevelFilter;

use super::sheet::Sheet;
use crate::earlier_rules::EarlierRules;
use crate::exec::{ExecOptions, ExecPlan, Sandbox};
use crate::flags::Flags;
use crate::policy_check::Approval;
use crate::session::LocalSession;
use crate::terminal::{Color, Paint, escaped_json, screened};

pub(super) const EXAMPLES: &str = "\
Shown are the base instructions by section, the tools that are offered, what a stored thread has said before, and
what the model would be told of its surroundings next. Tokens are estimated at four bytes each.

Examples:
  oarlock debug prompt
  oarlock debug prompt -C ../other -m NAME -s workspace-write --full
  oarlock debug prompt --approval-policy never          what `oarlock exec` sends
  oarlock debug prompt --last
  oarlock debug prompt --thread 0199c0de-0000-7000-8000-000000000000 --json | jq .tokens";

#[derive(Debug, Args)]
pub(super) struct PromptOptions {
    /// The next request of this stored thread.
    #[arg(long, value_name = "ID|NAME", conflicts_with = "last")]
    thread: Option<String>,
    /// The next request of the thread of this folder that was written to last.
    #[arg(long)]
    last: bool,
    /// With --last: of whichever folder.
    #[arg(long, requires = "last")]
    all: bool,
    /// Print every text whole.
    #[arg(long)]
    full: bool,
    /// Print one JSON document, with every text.
    #[arg(long, conflicts_with = "full")]
    json: bool,
    /// As if the thread worked in this folder.
    #[arg(short = 'C', long, value_name = "DIR", help_heading = "Workspace")]
    cd: Option<PathBuf>,
    /// One more folder that may be written to under workspace-write. Repeat for more.
    #[arg(long, value_name = "DIR", help_heading = "Workspace")]
    add_dir: Vec<PathBuf>,
    /// Where commands may write; without it, the configuration decides.
    #[arg(short = 's', long, value_enum, value_name = "MODE", help_heading = "Workspace")]
    sandbox: Option<Sandbox>,
    /// When to ask; else what the configuration says.
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Workspace")]
    approval_policy: Option<Approval>,
    /// The model to ask.
    #[arg(short = 'm', long, value_name = "NAME", help_heading = "Model")]
    model: Option<String>,
    /// The provider to ask. Wins over the configuration and its profiles.
    #[arg(long, value_name = "ID", help_heading = "Model")]
    provider: Option<String>,
    /// Use this `[profiles.NAME]` of the configuration.
    #[arg(short = 'p', long, value_name = "NAME", help_heading = "Configuration")]
    profile: Option<String>,
    /// When to use colours: `auto` on a terminal, unless NO_COLOR is set.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    color: Color,
    #[command(flatten)]
    flags: Flags,
}

pub(super) fn run(options: &PromptOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let plan = ExecPlan::make_at(Home::look_from_env()?, &options.as_of_exec(root))?;
    let of = options.subject(&plan)?;
    let session = LocalSession::new(plan.loader, plan.catalogue);
    let sheet = Sheet::of(&session.runtime.describe_prompt(&of)?);
    let text = match options.json {
        true => escaped_json(&format!("{:#}\n", sheet.json())).into_owned(),
        false => {
            let paint = Paint::choose(options.color, io::stdout().is_terminal());
            screened(&sheet.text(paint, options.full)).into_owned()
        }
    };
    io::stdout().write_all(text.as_bytes()).context("the description cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

impl PromptOptions {
    /// The same choices, read the same way. Looking needs no repository that could undo it.
    fn as_of_exec(&self, root: Flags) -> ExecOptions {
        ExecOptions {
            cd: self.cd.clone(),
            add_dir: self.add_dir.clone(),
            sandbox: self.sandbox,
            model: self.model.clone(),
            provider: self.provider.clone(),
            profile: self.profile.clone(),
            flags: root.then(self.flags.clone()),
            skip_git_repo_check: true,
            ..ExecOptions::default()
        }
    }

    fn subject(&self, plan: &ExecPlan) -> Result<PromptOf> {
        let approval_policy = self.approval_policy.map(AskForApproval::from);
        let Some(thread) = self.stored(plan)? else {
            let mut params = plan.start_params();
            params.approval_policy = approval_policy;
            return Ok(PromptOf::New(Box::new(params)));
        };
        let earlier = EarlierRules::of(plan.loader.home(), &thread);
        let mut params: ThreadResumeParams = plan.reopen_params(&thread, &earlier)?;
        params.approval_policy = approval_policy;
        // A stored thread goes on where it was.
        params.cwd = params.cwd.filter(|_| self.cd.is_some());
        Ok(PromptOf::Stored(Box::new(params)))
    }

    fn stored(&self, plan: &ExecPlan) -> Result<Option<ThreadId>> {
        if !self.last {
            let home = plan.loader.home();
            return self
                .thread
                .as_deref()
                .map(|thread| crate::threads::named_thread(home, thread))
                .transpose();
        }
        let folder = plan.folder.to_string_lossy();
        let is_here = |row: &ThreadRow| self.all || row.summary.cwd.as_deref() == Some(&*folder);
        let fits = |row: &ThreadRow| row.summary.preview.is_some() && is_started_by_user(row) && is_here(row);
        match journal::look_up_last(plan.loader.home().state(), fits) {
            Some(read) => Ok(Some(read.row.thread_id)),
            None if self.all => bail!("there is no stored thread"),
            None => bail!("there is no stored thread of this folder; --all looks at every folder"),
        }
    }
}

/// As `oarlock exec resume --last` counts.
fn is_started_by_user(row: &ThreadRow) -> bool {
    !matches!(row.summary.source, Some(SessionSource::SubAgent(_) | SessionSource::Custom(_)))
}
