//! Far more output than is kept.

use std::fs;

use oarlock_sandbox::{CAPTURE_BYTES, HeadTail, Io, RunOptions, run};

use crate::support::{alone, order, spawn, until};

const FLOOD: u64 = 400_000_000;
const MAX_GROWTH_KB: u64 = 32 * 1024;

fn flood() -> oarlock_sandbox::Order {
    order(&["head", "-c", "400000000", "/dev/zero"])
}

/// The peak memory of this process, in kilobytes.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

fn assert_flat(before: u64) {
    let growth = peak_kb() - before;
    assert!(growth < MAX_GROWTH_KB, "memory grew by {growth} kB");
}

#[test]
fn a_fast_reader() {
    alone("flood::alone_a_fast_reader");
}

#[tokio::test]
#[ignore = "measures the memory of the whole process"]
async fn alone_a_fast_reader() {
    let before = peak_kb();
    let finished = run(flood(), RunOptions::default()).await.expect("it starts");
    assert_eq!(finished.stdout.total_bytes(), FLOOD);
    assert_eq!(finished.stdout.kept_bytes(), CAPTURE_BYTES);
    assert_eq!(finished.exit.code, 0);
    assert_flat(before);
}

#[test]
fn a_slow_reader() {
    alone("flood::alone_a_slow_reader");
}

#[tokio::test]
#[ignore = "measures the memory of the whole process"]
async fn alone_a_slow_reader() {
    let before = peak_kb();
    let (process, mut output) = spawn(flood(), Io::Null).await;
    let mut kept = HeadTail::new(CAPTURE_BYTES);
    let wchan = format!("/proc/{}/wchan", process.pid());
    for round in 0_u32.. {
        if round % 1000 == 0 && kept.total_bytes() < FLOOD / 2 {
            // Without a reader the command blocks instead of being buffered.
            until("it waits for its reader", || is_writing(&wchan)).await;
        }
        let Some(chunk) = output.next().await else { break };
        kept.push(&chunk.bytes);
    }
    assert_eq!(kept.total_bytes(), FLOOD);
    assert_eq!(process.wait().await.code, 0);
    assert_flat(before);
}

fn is_writing(wchan: &str) -> bool {
    fs::read_to_string(wchan).expect("it still runs").contains("pipe_write")
}

#[tokio::test]
async fn two_floods_do_not_starve_each_other() {
    let script = "head -c 20000000 /dev/zero & head -c 20000000 /dev/zero >&2 & wait";
    let order = crate::support::shell(script);
    let finished = run(order, RunOptions::default()).await.expect("it starts");
    let totals = (finished.stdout.total_bytes(), finished.stderr.total_bytes());
    assert_eq!(totals, (20_000_000, 20_000_000));
    let kept = (finished.stdout.kept_bytes(), finished.stderr.kept_bytes());
    assert_eq!(kept, (CAPTURE_BYTES / 3, CAPTURE_BYTES - CAPTURE_BYTES / 3));
}
