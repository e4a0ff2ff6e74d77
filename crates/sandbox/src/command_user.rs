//! A separate user for commands, if the container around this process is the sandbox: so no command can write this
//! process's pipes, read its memory or files, or end it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::helper::launch::launch;
use crate::helper::probe::{self, EscapeAttempt};
use crate::helper::sys;
use crate::helper::wire::HelperStatus;
use crate::{LayerResult, Limits, Order};

/// Set after the first attempt; `None` if the separation does not work.
static COMMAND_USER: OnceLock<Option<CommandUser>> = OnceLock::new();

/// Another user of the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandUser {
    pub(crate) id: u32,
    pub(crate) group: u32,
    /// The `HOME` of commands, which cannot read this process's own.
    pub(crate) home: PathBuf,
}

/// The result of a command's attempts to reach this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeparationReport {
    pub attempts: Vec<LayerResult>,
    /// The number of the commands' user, or why there is none.
    pub user: Result<u32, String>,
}

/// From now on, commands without our sandbox run as the owner of this folder. Whether that separates them from this
/// process and from `home` is tested for real; if not, nothing is changed.
///
/// Must be called before the process has other threads: the other groups are dropped for the calling one.
pub fn separate_commands(workspace: &Path, home: &Path) -> SeparationReport {
    let mut report = try_separation(workspace, home);
    let mut user = owner_of(workspace).ok().filter(|user| report.user == Ok(user.id));
    // Work done as that user must not have more groups than its commands.
    if user.is_some()
        && let Err(error) = sys::leave_groups()
    {
        report.user = Err(format!("the groups of this process cannot be left: {error}"));
        user = None;
    }
    if let Err(why) = &report.user {
        tracing::warn!("commands run as the user of this process: {why}");
    }
    let _ = COMMAND_USER.set(user);
    report
}

/// Whether commands run as another user than this process.
pub fn has_command_user() -> bool {
    command_user().is_some()
}

/// Does file work with the rights of the commands' user, if there is one. Created files belong to that user, and a link
/// planted by a command cannot make this process write a file of its own.
///
/// The work must stay on this thread.
pub fn as_command_user<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let Some(user) = command_user() else { return Ok(work()) };
    let _back = FileUser::become_user(user)?;
    Ok(work())
}

pub(crate) fn command_user() -> Option<&'static CommandUser> {
    COMMAND_USER.get()?.as_ref()
}

/// This thread's file rights. Dropping it restores those of the process, also after a panic.
struct FileUser;

impl FileUser {
    fn become_user(user: &CommandUser) -> io::Result<Self> {
        // Created first, so that a partial change is undone.
        let back = Self;
        sys::set_file_user(user.id, user.group)?;
        Ok(back)
    }
}

impl Drop for FileUser {
    fn drop(&mut self) {
        // Root may always become root again. If not, the thread would keep fewer rights than it had.
        if let Err(error) = sys::set_file_user(0, 0) {
            tracing::error!(%error, "a thread does not get its rights to files back");
        }
    }
}

/// Runs the attempts as that user, without changing anything here.
pub fn try_separation(workspace: &Path, home: &Path) -> SeparationReport {
    match owner_of(workspace).and_then(|user| attempts(&user, workspace, home).map(|made| (user, made))) {
        Ok((user, attempts)) => {
            let open: Vec<&str> = attempts.iter().filter(|a| !a.held).map(|a| a.layer.as_str()).collect();
            let user = match open.is_empty() {
                true => Ok(user.id),
                false => Err(format!("a command of user {} can get at it: {}", user.id, open.join(", "))),
            };
            let to_result = |a: EscapeAttempt| LayerResult { name: a.layer, ok: a.held, detail: a.detail };
            SeparationReport { attempts: attempts.into_iter().map(to_result).collect(), user }
        }
        Err(why) => SeparationReport { attempts: Vec::new(), user: Err(why) },
    }
}

fn owner_of(workspace: &Path) -> Result<CommandUser, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("the runtime is not root there, so it cannot start commands as another user".to_owned());
    }
    let found = fs::metadata(workspace).map_err(|error| format!("{}: {error}", workspace.display()))?;
    if found.uid() == 0 {
        return Err(format!("{} belongs to root; give it another owner", workspace.display()));
    }
    let group = if found.gid() == 0 { found.uid() } else { found.gid() };
    Ok(CommandUser { id: found.uid(), group, home: home_of(found.uid()) })
}

/// From the user database, if the folder belongs to that user; else the shared temporary folder.
fn home_of(user: u32) -> PathBuf {
    home_in_database(user).unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn home_in_database(user: u32) -> Option<PathBuf> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let home = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)? == &user.to_string()).then(|| fields.get(5).map(PathBuf::from))?
    })?;
    fs::metadata(&home).is_ok_and(|found| found.is_dir() && found.uid() == user).then_some(home)
}

fn attempts(user: &CommandUser, workspace: &Path, home: &Path) -> Result<Vec<EscapeAttempt>, String> {
    let env =
        [(probe::TARGET, std::process::id().to_string()), (probe::TARGET_HOME, home.display().to_string())];
    let order = Order {
        argv: vec![probe::SELF.to_owned(), probe::SEPARATION.to_owned()],
        cwd: workspace.to_owned(),
        env: env.map(|(name, value)| (name.to_owned(), value)).into_iter().collect::<BTreeMap<_, _>>(),
        confinement: None,
        limits: Limits::default(),
        terminal: false,
    };
    let mut order = serde_json::to_value(&order).map_err(|error| error.to_string())?;
    order["user"] = json!(user);
    let mut helper = launch(order.to_string().as_bytes(), Stdio::null(), Stdio::piped(), Stdio::null())
        .map_err(|error| format!("the helper process cannot be started: {error}"))?;
    let end = helper.end();
    let mut text = String::new();
    if let Some(mut output) = helper.child.stdout.take() {
        let _ = output.read_to_string(&mut text);
    }
    match end {
        Some(HelperStatus::Exited { code: 0 }) => {
            serde_json::from_str(&text).map_err(|_| "the probe gave no answer".to_owned())
        }
        Some(HelperStatus::Failed(failure)) => Err(failure.message),
        end => Err(format!("the probe ended early: {end:?}")),
    }
}
