//! Starting the process of a runtime. What the rest of the host knows of it: two pipes, and an end.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;

use protocol::ThreadId;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{Child, Command};

use crate::client_runtime::BoxFuture;
use crate::local_process::{end_local, local_reference};

/// The runtime of which task, and where it works.
#[derive(Debug, Clone)]
pub struct LaunchRequest {
    pub task: ThreadId,
    pub cwd: Option<String>,
}

/// A runtime that was started.
pub struct RuntimeProcess {
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    pub end: Box<dyn RuntimeEnd>,
}

impl fmt::Debug for RuntimeProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuntimeProcess").field("end", &self.end).finish_non_exhaustive()
    }
}

/// How a runtime that was started ends. Dropping it kills the process.
pub trait RuntimeEnd: Send {
    /// Ends when the process has.
    fn wait(&mut self) -> BoxFuture<'_, ()>;

    fn kill(&mut self);

    /// How another host finds this runtime to end it, as JSON without secrets. Nothing where it ends with this process.
    fn reference(&self) -> Option<Value> {
        None
    }
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn RuntimeEnd + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimeEnd")
    }
}

/// Starts runtimes somewhere.
pub trait RuntimeLauncher: Send + Sync {
    /// The error is one sentence with what was tried.
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, Result<RuntimeProcess, String>>;

    /// Ends the runtime that an earlier host started, by its reference. Returns when it is certainly gone.
    fn end_previous<'a>(&'a self, _reference: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
}

/// The name alone: to print the values behind it, the program would carry the `Debug` code of all their types.
impl fmt::Debug for dyn RuntimeLauncher + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RuntimeLauncher")
    }
}

/// On this machine: a program of ours, on pipes, with an environment of its own.
#[derive(Debug, Clone)]
pub struct LocalLauncher {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// The whole environment: nothing of the host's own goes along.
    pub environment: Vec<(OsString, OsString)>,
}

impl RuntimeLauncher for LocalLauncher {
    fn launch(&self, request: LaunchRequest) -> BoxFuture<'_, Result<RuntimeProcess, String>> {
        Box::pin(async move { self.spawn(&request) })
    }

    fn end_previous<'a>(&'a self, reference: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(end_local(reference))
    }
}

impl LocalLauncher {
    fn spawn(&self, request: &LaunchRequest) -> Result<RuntimeProcess, String> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment.iter().cloned());
        if let Some(cwd) = request.cwd.as_ref().filter(|cwd| std::path::Path::new(cwd).is_dir()) {
            placements::search_no_tools_beneath(cwd.as_ref());
            command.current_dir(cwd);
        }
        // A group of its own: Ctrl-C at the host's terminal is for the host.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let failed = |error: std::io::Error| format!("{} cannot be started: {error}", self.program.display());
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{} has no pipes", self.program.display()));
        };
        Ok(RuntimeProcess {
            input: Box::new(input),
            output: Box::new(output),
            end: Box::new(LocalEnd { child }),
        })
    }
}

#[derive(Debug)]
struct LocalEnd {
    child: Child,
}

impl RuntimeEnd for LocalEnd {
    fn wait(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Err(error) = self.child.wait().await {
                tracing::warn!(%error, "the end of a runtime cannot be waited for");
            }
        })
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.start_kill();
    }

    fn reference(&self) -> Option<Value> {
        local_reference(self.child.id())
    }
}
