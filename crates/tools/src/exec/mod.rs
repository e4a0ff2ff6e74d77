//! The one path of every command: prepared, decided, checked again right before it starts, and, if the sandbox stopped
//! it, decided once more. Nothing runs that was not approved here.

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

/// A requested command.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) argv: Vec<String>,
    /// Absolute, as shown to clients.
    pub(crate) cwd: PathBuf,
    pub(crate) tty: bool,
    pub(crate) permissions: CommandPermissions,
    /// Variables in addition to the thread's environment.
    pub(crate) extra_env: &'static [(&'static str, &'static str)],
    pub(crate) source: CommandExecutionSource,
    pub(crate) process_id: Option<String>,
    /// It may outlive its call.
    pub(crate) outlives: bool,
}

/// Why a command does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The policy refuses it, for this reason.
    Forbidden(String),
    /// A client declined, or the call was cancelled. Its item has ended.
    Declined,
    /// It cannot be run.
    Failed(String),
}

/// Whether the policy allows asking a client to leave the sandbox.
pub(crate) fn may_ask(approval: &AskForApproval) -> bool {
    match approval {
        AskForApproval::Never => false,
        AskForApproval::Granular { sandbox_approval, .. } => *sandbox_approval,
        AskForApproval::Untrusted | AskForApproval::OnFailure | AskForApproval::OnRequest => true,
    }
}

/// Whether a command without a sandbox needs a question, unless a rule allows it.
pub(crate) fn must_ask(approval: &AskForApproval, sandbox: &SandboxPolicy) -> bool {
    match sandbox {
        SandboxPolicy::ReadOnly { .. } | SandboxPolicy::WorkspaceWrite { .. } => true,
        SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. } => {
            *approval == AskForApproval::Untrusted
        }
    }
}

/// The command's folder, relative to the thread's.
pub(crate) fn working_directory(cx: &ToolCx, workdir: Option<&str>) -> Result<PathBuf, ToolError> {
    match workdir.filter(|dir| !dir.is_empty()) {
        Some(dir) => Ok(cx.cwd().join(well_formed(dir)?)),
        None => Ok(cx.cwd().to_owned()),
    }
}

/// The user's shell; in another environment `/bin/sh`, which every system has.
pub(crate) fn default_shell(cx: &ToolCx) -> String {
    match cx.elsewhere() {
        Some(_) => "/bin/sh".to_owned(),
        None => cx.bench().options().shell.to_string_lossy().into_owned(),
    }
}

/// The shell that a model names, with its path for clients: a bare name means the user's own shell if it has that name,
/// otherwise the first match on the command's `PATH`.
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

/// Whether to use a login shell, which is the default if allowed. Not in another environment: its owner sets it up, and
/// a profile there would undo that.
pub(crate) fn login(cx: &ToolCx, wanted: Option<bool>) -> Result<bool, ToolError> {
    match (wanted, cx.bench().options().login_shell) {
        (Some(true), false) => Err(ToolError::Refused(
            "login shells are switched off here; leave `login` out or false".to_owned(),
        )),
        (wanted, allowed) => Ok(wanted.unwrap_or(allowed && cx.elsewhere().is_none())),
    }
}

/// A script as an argv of a shell.
pub(crate) fn shell_argv(shell: &str, login: bool, script: String) -> Vec<String> {
    vec![shell.to_owned(), if login { "-lc" } else { "-c" }.to_owned(), script]
}
