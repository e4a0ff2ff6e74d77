//! The state of a running server, as lines for a person.

use protocol::{SandboxStatusLevel, ServerKind, ServerStatusResponse};

/// The state of a running server as lines: connections, threads, what waits.
pub fn status_text(status: &ServerStatusResponse) -> String {
    let kind = match status.kind {
        ServerKind::AppServer => "app-server",
        ServerKind::Host => "host",
    };
    let stopping = if status.is_stopping { ", stopping" } else { "" };
    let uptime = duration(status.uptime_seconds);
    let mut lines = vec![format!(
        "oarlock {kind} {}, process {}, up {uptime}{stopping}",
        status.version, status.process_id
    )];
    let mut row = |name: &str, value: String| lines.push(format!("  {name:<12} {value}"));
    row("connections", status.connections.to_string());
    row(
        "threads",
        format!("{} loaded, {} with a turn that runs", status.threads_loaded, status.turns_running),
    );
    let age = status.oldest_waiting_ms.map(|ms| u64::try_from(ms / 1_000).unwrap_or_default());
    let age = age.map(|age| format!(", the oldest for {}", duration(age))).unwrap_or_default();
    row("waiting", format!("{}{age}", status.waiting));
    if let Some(host) = &status.host {
        let tasks: Vec<String> = host.tasks.iter().map(|(state, count)| format!("{count} {state}")).collect();
        row("tasks", if tasks.is_empty() { "none".to_owned() } else { tasks.join(", ") });
        row("runtimes", format!("{}, {} tasks wait for room", host.runtimes, host.queued));
    }
    if let Some(bytes) = status.memory_bytes {
        row("memory", format!("{:.1} MB", bytes as f64 / 1e6));
    }
    let level = match status.sandbox.level {
        SandboxStatusLevel::Full => "full",
        SandboxStatusLevel::LandlockOnly => "Landlock alone",
        SandboxStatusLevel::None => "none",
    };
    let reason = status.sandbox.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    row("sandbox", format!("{level}{reason}"));
    lines.join("\n") + "\n"
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_shown_with_its_tasks() {
        let status = json!({
            "kind": "host", "version": "0.1.0", "processId": 4711, "uptimeSeconds": 11_520, "isStopping": true,
            "connections": 3, "threadsLoaded": 2, "turnsRunning": 1, "waiting": 1, "oldestWaitingMs": 245_000,
            "memoryBytes": 50_331_648, "sandbox": {"level": "none", "reason": "no namespaces"},
            "host": {"tasks": {"idle": 12, "running": 1}, "runtimes": 2, "queued": 0},
        });
        let expected = "\
oarlock host 0.1.0, process 4711, up 3h 12m, stopping
  connections  3
  threads      2 loaded, 1 with a turn that runs
  waiting      1, the oldest for 4m 5s
  tasks        12 idle, 1 running
  runtimes     2, 0 tasks wait for room
  memory       50.3 MB
  sandbox      none: no namespaces
";
        assert_eq!(status_text(&serde_json::from_value(status).expect("a status")), expected);
    }
}
