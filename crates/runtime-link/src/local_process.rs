//! Runtimes on this machine, by process id and start: found again by another host, and ended for certain.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How long a killed process may take to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A process that is told apart from a later one with the same id, also across a restart of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocalProcess {
    pid: i32,
    /// In ticks since the machine was started.
    started_at: u64,
    boot: String,
    /// Numbers of processes mean nothing in another container.
    namespace: String,
}

impl LocalProcess {
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program may hold anything, also parentheses.
        let after_name = stat.rsplit(')').next()?;
        let mut fields = after_name.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let started_at = fields.nth(18)?.parse().ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = fs::read_link("/proc/self/ns/pid").ok()?.to_string_lossy().into_owned();
        (!is_dead).then_some(Self { pid, started_at, boot, namespace })
    }

    fn is_there(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }
}

/// How another host finds this process.
pub(crate) fn local_reference(pid: Option<u32>) -> Option<Value> {
    let process = LocalProcess::of(i32::try_from(pid?).ok()?)?;
    serde_json::to_value(process).ok()
}

/// Returns when the process is certainly gone.
pub(crate) async fn end_local(reference: &Value) -> Result<(), String> {
    let process: LocalProcess = serde_json::from_value(reference.clone())
        .map_err(|error| format!("the runtime of an earlier host cannot be found by {reference}: {error}"))?;
    let Some(pid) = Pid::from_raw(process.pid) else { return Ok(()) };
    let own = LocalProcess::of(i32::try_from(std::process::id()).unwrap_or(0));
    if own.is_some_and(|own| own.boot == process.boot && own.namespace != process.namespace) {
        return Err(format!(
            "its last runtime is process {} of another container on this machine",
            process.pid
        ));
    }
    // The handle is of one process, whatever becomes of its number.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return Ok(()) };
    if !process.is_there() {
        return Ok(());
    }
    tracing::warn!(pid = process.pid, "ending the runtime of an earlier host");
    if let Err(error) = pidfd_send_signal(&handle, Signal::KILL) {
        return Err(format!("process {} cannot be ended: {error}", process.pid));
    }
    let gone = async {
        while process.is_there() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    match tokio::time::timeout(GONE_WITHIN, gone).await {
        Ok(()) => Ok(()),
        Err(_) => Err(format!("process {} was killed and is still there", process.pid)),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test]
    async fn a_process_is_ended_once_and_another_with_its_number_never() {
        let mut child = Command::new("sleep").arg("300").stdin(Stdio::null()).spawn().expect("a process");
        let reference = local_reference(Some(child.id())).expect("it runs");
        let mut other = reference.clone();
        other["startedAt"] = 1.into();
        end_local(&other).await.expect("it is gone for long");
        assert!(child.try_wait().expect("a child").is_none(), "another process");
        other = reference.clone();
        other["boot"] = "another".into();
        end_local(&other).await.expect("the machine was started again");
        assert!(child.try_wait().expect("a child").is_none(), "another process");
        end_local(&reference).await.expect("ended");
        assert!(!child.wait().expect("a child").success());
        end_local(&reference).await.expect("it is gone");
    }
}
