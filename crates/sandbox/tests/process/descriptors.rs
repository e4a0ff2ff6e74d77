//! A command's descriptors, and that none leak in the server.

use std::os::fd::AsRawFd;

use oarlock_sandbox::Io;

use crate::support::{alone, both, children, order, rest, result, shell, spawn, until};

/// The output of `ls`, without the descriptor of its own listing.
async fn open_in_a_command(order: oarlock_sandbox::Order) -> Vec<String> {
    let listing = result(order).await.stdout;
    let links = listing.lines().filter_map(|line| line.split_once(" -> "));
    let links = links.filter(|(_, target)| !target.starts_with("/proc/"));
    links.map(|(name, _)| name.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_command_has_only_the_standard_three() {
    // Inheritable, as a careless library would leave it.
    let (careless, _other) = rustix::pipe::pipe().expect("a pipe");
    let high = rustix::io::fcntl_dupfd_cloexec(&careless, 700).expect("a high descriptor");
    rustix::io::fcntl_setfd(&high, rustix::io::FdFlags::empty()).expect("a flag");
    assert!(high.as_raw_fd() >= 700);
    for order in both(order(&["ls", "-l", "/proc/self/fd"])) {
        assert_eq!(open_in_a_command(order).await, ["0", "1", "2"]);
    }
}

#[tokio::test]
async fn nothing_is_blocked_or_ignored_that_the_server_blocks_or_ignores() {
    // The C library reserves these two, and has every process it starts ignore them.
    const OF_THE_LIBRARY: u64 = 0b11 << 31;
    for order in both(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status")) {
        let stdout = result(order).await.stdout;
        let masks: Vec<_> =
            stdout.split_whitespace().filter_map(|word| u64::from_str_radix(word, 16).ok()).collect();
        assert_eq!(masks.len(), 2, "{stdout}");
        assert!(masks.iter().all(|mask| mask & !OF_THE_LIBRARY == 0), "{stdout}");
    }
}

#[test]
fn the_server_keeps_none() {
    alone("descriptors::alone_the_server_keeps_none");
}

#[tokio::test]
#[ignore = "counts the descriptors of the whole process"]
async fn alone_the_server_keeps_none() {
    let count = || std::fs::read_dir("/proc/self/fd").expect("there is /proc").count();
    let ios = [Io::Null, Io::Pipe, Io::Terminal(oarlock_sandbox::TerminalSize::default())];
    let mut before = 0;
    for round in 0..5 {
        for io in ios {
            let (process, output) = spawn(order(&["true"]), io).await;
            rest(&process, output).await;
            let refused = oarlock_sandbox::Process::spawn(order(&["no-such-program"]), io).await;
            refused.expect_err("it is not there");
        }
        // A supervisor may still be ending after its report.
        tokio::task::yield_now().await;
        if round == 0 {
            before = count();
        }
    }
    until("all are closed again", || count() <= before).await;
    until("all helpers are reaped", || children() == 0).await;
}
