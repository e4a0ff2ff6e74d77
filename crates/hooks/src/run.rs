//! Runs one hook: in the session's shell and the sandbox of commands, with limits of time and output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use protocol::SandboxPolicy;
use sandbox::{
    CommandGuard, Confinement, Extras, HeadTail, Limits, OffLimits, Order, PROTECTED_NAMES, RunOptions,
    ScanLimit, Strength, protected_below,
};

use crate::definition::Hook;
use crate::judge::{HookEnd, HookRunOutput};

/// Limit of output and errors together.
const CAP_BYTES: usize = 128 * 1024;
/// Processes that a hook leaves behind are killed; their output is not awaited.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

/// Where hooks of a thread run, and their permissions.
#[derive(Debug, Clone)]
pub struct HookSite {
    pub shell: PathBuf,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    pub sandbox: SandboxPolicy,
    pub off_limits: OffLimits,
    /// Landlock alone suffices.
    pub landlock_only: bool,
}

impl HookSite {
    fn order(&self, command: &str) -> Order {
        let argv = vec![self.shell.to_string_lossy().into_owned(), "-c".to_owned(), command.to_owned()];
        Order {
            argv,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            confinement: self.confinement(),
            limits: Limits::default(),
            terminal: false,
        }
    }

    /// Like a command of the thread; `None` if its policy has no sandbox.
    fn confinement(&self) -> Option<Confinement> {
        let strength = if self.landlock_only { Strength::LandlockOnly } else { Strength::Full };
        let temporary = self.env.get("TMPDIR").map(Path::new).filter(|folder| folder.is_absolute());
        let mut confinement =
            Confinement::for_policy(&self.sandbox, &self.cwd, temporary, strength, &self.off_limits)?;
        let nested = protected_below(&confinement.writable, &PROTECTED_NAMES, ScanLimit::default());
        confinement.protected_paths.extend(nested.paths);
        Some(confinement)
    }
}

/// Runs a hook to its end. Dropping the future ends it; the guard is dropped when all its processes have ended.
pub(crate) async fn run(hook: &Hook, site: HookSite, stdin: Vec<u8>, guard: CommandGuard) -> HookRunOutput {
    let command = hook.command.clone();
    // Scans the disk for protected folders.
    let order = match support::blocking(move || site.order(&command)).await {
        Ok(order) => order,
        Err(panicked) => return failed(&panicked.to_string()),
    };
    let options = RunOptions {
        timeout: Some(hook.timeout),
        cap_bytes: CAP_BYTES,
        stdin: Some(stdin),
        drain_limit: DRAIN_LIMIT,
        extras: Extras { guard: Some(guard), ..Extras::default() },
        ..RunOptions::default()
    };
    match sandbox::run(order, options).await {
        Err(error) => failed(&error.to_string()),
        Ok(finished) => HookRunOutput {
            end: match finished.timed_out {
                true => HookEnd::TimedOut(hook.timeout.as_secs()),
                false => HookEnd::Exited(finished.exit.code),
            },
            is_cut: finished.stdout.omitted_bytes() > 0,
            stdout: text(&finished.stdout),
            stderr: text(&finished.stderr),
        },
    }
}

fn failed(problem: &str) -> HookRunOutput {
    let end = HookEnd::Failed(problem.to_owned());
    HookRunOutput { end, stdout: String::new(), stderr: String::new(), is_cut: false }
}

fn text(kept: &HeadTail) -> String {
    let (head, tail) = kept.parts();
    String::from_utf8_lossy(&[head, tail].concat()).into_owned()
}
