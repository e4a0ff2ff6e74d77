//! The one path of every command: prepared, decided, checked again right before it runs, and, where the sandbox
//! stopped it, decided once more. Nothing runs that was not cleared here.

mod authorization;
mod child;
mod confine;
mod identity;
mod item;
mod known_roots;
mod live;
mod one_shot;
mod overflow;
mod permissions;
mod pin;
mod planted_variables;
mod profile;
mod question;
mod rule_book;
mod setting;
mod start_files;
pub(crate) mod terminals;
mod words;

use std::path::{Path, PathBuf};

use protocol::{AskForApproval, CommandExecutionSource, SandboxPolicy};

use crate::files::access::well_formed;
use crate::{ToolCx, ToolError};

pub(crate) use authorization::Authorization;
pub(crate) use child::{CommandExit, CommandOutlet, Go, Here, run_there, start};
pub(crate) use confine::confinement;
pub(crate) use item::{EndedCommand, ended, not_started};
pub(crate) use known_roots::KnownRoots;
pub(crate) use live::{Live, delta};
pub(crate) use one_shot::{OneShot, Shot, give_up, output_of, run_for_user, run_once, text_of, why};
pub(crate) use overflow::{Overflow, WholeOutput};
pub(crate) use permissions::{
    CommandPermissions, PermissionArgs, SandboxPermissions, WIDENING, WantedPermissions, refuse_sealed,
};
pub use planted_variables::environment_outside;
pub(crate) use profile::Profile;
pub(crate) use question::typing_question;
pub(crate) use rule_book::RuleBook;
pub(crate) use setting::Setting;

/// A command somebody wants to run.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) argv: Vec<String>,
    /// Absolute, as clients are shown it.
    pub(crate) cwd: PathBuf,
    pub(crate) tty: bool,
    pub(crate) permissions: CommandPermissions,
    /// Variables on top of the thread's environment.
    pub(crate) extra_env: &'static [(&'static str, &'static str)],
    pub(crate) source: CommandExecutionSource,
    pub(crate) process_id: Option<String>,
    /// It may go on after its call.
    pub(crate) outlives: bool,
}

/// Why a command does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The policy says no, for this reason.
    Forbidden(String),
    /// A client said no, or nobody waits for it any more. Its item has ended.
    Declined,
    /// It cannot be run.
    Failed(String),
}

/// Whether somebody may be asked to let something happen outside of the sandbox.
pub(crate) fn may_ask(approval: &AskForApproval) -> bool {
    match approval {
        AskForApproval::Never => false,
        AskForApproval::Granular { sandbox_approval, .. } => *sandbox_approval,
        AskForApproval::Untrusted | AskForApproval::OnFailure | AskForApproval::OnRequest => true,
    }
}

/// Whether what cannot be confined needs a question, unless a rule allows it.
pub(crate) fn must_ask(approval: &AskForApproval, sandbox: &SandboxPolicy) -> bool {
    match sandbox {
        SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => true,
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
            *approval == AskForApproval::Untrusted
        }
    }
}

/// Where a command runs: the folder it names, seen from where the thread works.
pub(crate) fn working_directory(cx: &ToolCx, workdir: Option<&str>) -> Result<PathBuf, ToolError> {
    match workdir.filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok(cx.cwd().join(well_formed(dir)?)),
        None => Ok(cx.cwd().to_owned()),
    }
}

/// The user's shell; in another environment the one that every system has.
pub(crate) fn default_shell(cx: &ToolCx) -> String {
    match cx.elsewhere() {
        Some(_) => "/bin/sh".to_owned(),
        None => cx.bench().options().shell.to_string_lossy().into_owned(),
    }
}

/// The shell a model names, as clients are to see it: a bare name is the user's own shell if that is called so, else
/// the first on the command's `PATH`.
pub(crate) fn named_shell(cx: &ToolCx, name: Option<String>) -> String {
    let usual = default_shell(cx);
    match name.filter(|name| !name.is_empty()) {
        Some(name) if name.contains('/') || cx.elsewhere().is_some() => name,
        Some(name) if Path::new(&usual).file_name().is_some_and(|usual| usual == name.as_str()) => usual,
        Some(name) => {
            let path = cx.bench().options().env.get("PATH").map_or("", String::as_str);
            let files = std::env::split_paths(path).filter(|folder| folder.is_absolute());
            let file = files.map(|folder| folder.join(&name)).find(|file| file.is_file());
            file.map_or(name, |file| file.to_string_lossy().into_owned())
        }
        None => usual,
    }
}

/// Whether a command may be given to a login shell, which is the default where it may. Another environment is set up
/// by whoever runs it, which the profile there would undo.
pub(crate) fn login(cx: &ToolCx, wanted: Option<bool>) -> Result<bool, ToolError> {
    match (wanted, cx.bench().options().login_shell) {
        (Some(true), false) => Err(ToolError::Refused(
            "login shells are switched off here; leave `login` out or false".to_owned(),
        )),
        (wanted, allowed) => Ok(wanted.unwrap_or(allowed && cx.elsewhere().is_none())),
    }
}

/// A script as the words of a shell's command line.
pub(crate) fn shell_argv(shell: &str, login: bool, script: String) -> Vec<String> {
    vec![shell.to_owned(), if login { "-lc" } else { "-c" }.to_owned(), script]
}
