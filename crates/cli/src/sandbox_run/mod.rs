//! `oarlock sandbox`: runs any command in the sandbox that the model's commands get.

mod attach;
mod raw_mode;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{SandboxMode, SandboxPolicy};
use runtime::config::RequestOverrides;
use sandbox::{Confinement, Limits, Order, SelfTest, SpawnError, Strength};

use crate::exec::Sandbox;
use crate::flags::Flags;
use crate::terminal::clean;
use crate::workplace::Workplace;

#[derive(Debug, Args)]
pub(crate) struct SandboxRunOptions {
    /// Where the command may write; without it, the configuration decides, or else read-only.
    #[arg(short = 'm', long, value_enum, value_name = "MODE")]
    mode: Option<Sandbox>,
    /// Let it use the network.
    #[arg(long)]
    network: bool,
    /// One more folder that may be written to; means workspace-write unless a mode is given. Repeat for more.
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,
    /// Run it in this folder.
    #[arg(short = 'C', long, value_name = "DIR")]
    cd: Option<PathBuf>,
    /// Use Landlock and seccomp alone, for machines without user namespaces. It cannot hide files, protect names that
    /// do not exist yet, or keep processes apart.
    #[arg(long)]
    landlock_only: bool,
    #[command(flatten)]
    flags: Flags,
    /// The command, word by word. It is not given to a shell.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    argv: Vec<String>,
}

pub(crate) const EXAMPLES: &str = "\
The command gets the environment that a model's commands get, which is without secrets. At a
terminal it has a terminal of its own; else its input and output are passed on. Ctrl-C reaches it;
nothing it started is left behind.

The exit code is the command's, 128 and the number of the signal that ended it, 127 when there is
no such program, 126 when it cannot be run, and 125 when there is no sandbox to run it in.

Examples:
  oarlock sandbox -- ls -l                              look, but touch nothing
  oarlock sandbox --mode workspace-write -- make test   write to this folder and temporary ones
  oarlock sandbox --network -- curl -sI https://example.org
  oarlock sandbox --writable ../cache -- bash           a shell to try the sandbox";

/// There is no sandbox, or something else that is not the command's doing.
const NOT_OURS_TO_RUN: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

pub(crate) fn run(options: SandboxRunOptions, root: Flags) -> ExitCode {
    let attached = order(options, root).and_then(|order| {
        let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let ended = tokio.block_on(attach::run(order.clone()));
        // The reader of standard input may wait for a line that never comes.
        tokio.shutdown_background();
        Ok((order, ended))
    });
    match attached {
        Ok((_, Ok(code))) => ExitCode::from(code),
        Ok((order, Err(error))) => {
            eprintln!("oarlock: {}", clean(&explained(&order, &error)));
            ExitCode::from(match error.downcast_ref() {
                Some(SpawnError::NotFound { .. }) => NOT_FOUND,
                Some(SpawnError::Denied { .. } | SpawnError::NotRunnable { .. }) => NOT_RUNNABLE,
                _ => NOT_OURS_TO_RUN,
            })
        }
        Err(error) => {
            eprintln!("oarlock: {}", clean(&format!("{error:#}")));
            ExitCode::from(NOT_OURS_TO_RUN)
        }
    }
}

fn order(options: SandboxRunOptions, root: Flags) -> Result<Order> {
    let mode = options.mode.map(SandboxMode::from);
    if mode == Some(SandboxMode::ReadOnly) && !options.writable.is_empty() {
        bail!("--mode read-only has nothing to write to; use --mode workspace-write with --writable");
    }
    let writable_roots = options.writable.iter().map(|path| {
        path.canonicalize().with_context(|| format!("--writable {} cannot be used", path.display()))
    });
    let overrides = RequestOverrides {
        sandbox_mode: mode.or_else(|| (!options.writable.is_empty()).then_some(SandboxMode::WorkspaceWrite)),
        writable_roots: writable_roots.collect::<Result<_>>()?,
        ..RequestOverrides::default()
    };
    let place = Workplace::load(&root.then(options.flags), options.cd.as_deref(), overrides)?;
    let mut policy = place.config.permissions.sandbox_policy.clone();
    if let SandboxPolicy::ReadOnly { network_access, .. }
    | SandboxPolicy::WorkspaceWrite { network_access, .. } = &mut policy
    {
        *network_access |= options.network;
    }
    place.config.requirements.allow_sandbox(&policy)?;
    let confinement = place.confinement(&policy, options.landlock_only);
    let mut env = place.env;
    if confinement.as_ref().is_some_and(|confinement| !confinement.network) {
        // The same hint that a model's commands get.
        env.insert("CODEX_SANDBOX_NETWORK_DISABLED".to_owned(), "1".to_owned());
    }
    Ok(Order {
        argv: options.argv,
        cwd: place.folder,
        env,
        confinement,
        limits: Limits::default(),
        terminal: false,
    })
}

/// The error, and what can be done where there is no sandbox.
fn explained(order: &Order, error: &anyhow::Error) -> String {
    let is_missing = matches!(error.downcast_ref(), Some(SpawnError::Sandbox { .. }));
    let is_full =
        matches!(&order.confinement, Some(Confinement { strength: Strength::Full, .. })) && is_missing;
    let advice = match is_full {
        true if SelfTest::run().landlock_only => {
            "; `oarlock doctor` shows what is missing, and --landlock-only asks for the weaker level"
        }
        true => "; `oarlock doctor` shows what is missing",
        false => "",
    };
    format!("{error:#}{advice}")
}
