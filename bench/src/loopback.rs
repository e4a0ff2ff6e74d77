//! Keeps a run on loopback. Some servers call their vendor when they start; in a network namespace that has
//! nothing but `lo`, no such call leaves the machine.

use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Set for the second start, so that a namespace that did not help is an error and not a loop.
const MARK: &str = "OARLOCK_BENCH_LOOPBACK";

/// Returns inside such a namespace: at once if this is one, else as a new start of this program in one.
pub(crate) fn enter() -> Result<()> {
    if only_loopback(&fs::read_to_string("/proc/self/net/dev").context("the interfaces cannot be listed")?) {
        return Ok(());
    }
    ensure!(env::var_os(MARK).is_none(), "the new network namespace has more than loopback");
    // Root makes one directly; others need a user namespace around it.
    let flags = ["--net", "--map-root-user"];
    let flags =
        if rustix::process::geteuid().is_root() && can_unshare(&flags[..1]) { &flags[..1] } else { &flags };
    let error = Command::new("unshare")
        .args(flags)
        .args(["--", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .exec();
    Err(error).context("unshare cannot be started")
}

fn can_unshare(flags: &[&str]) -> bool {
    let status = Command::new("unshare").args(flags).args(["--", "true"]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Reads the table of interfaces: two lines of head, then one line each.
fn only_loopback(table: &str) -> bool {
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim()).eq(["lo"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_other_interface_is_seen() {
        let head = "Inter-| Receive\n face |bytes\n";
        assert!(only_loopback(&format!("{head}    lo: 1 2 3\n")));
        assert!(!only_loopback(&format!("{head}    lo: 1 2 3\n  eth0: 4 5 6\n")));
        assert!(!only_loopback(head));
    }
}
