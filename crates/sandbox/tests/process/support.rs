//! Orders, and helpers to inspect their results.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oarlock_sandbox::{Confinement, Exit, Io, Limits, Order, Output, OutputStream, Process};

/// A timeout that nothing here reaches.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) fn order(argv: &[&str]) -> Order {
    Order {
        argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
        cwd: PathBuf::from("/"),
        env: [("PATH".to_owned(), PATH.to_owned())].into(),
        confinement: None,
        limits: Limits::default(),
        terminal: false,
    }
}

pub(crate) fn shell(script: &str) -> Order {
    order(&["sh", "-c", script])
}

pub(crate) fn confined(order: Order) -> Order {
    Order { confinement: Some(Confinement::read_only()), ..order }
}

/// The same order without and with a sandbox.
pub(crate) fn both(order: Order) -> [Order; 2] {
    [order.clone(), confined(order)]
}

pub(crate) async fn spawn(order: Order, io: Io) -> (Process, Output) {
    Process::spawn(order, io).await.expect("it starts")
}

#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs to the end, without input.
pub(crate) async fn result(order: Order) -> Result {
    let (process, output) = spawn(order, Io::Null).await;
    rest(&process, output).await
}

/// Everything until the end.
pub(crate) async fn rest(process: &Process, mut output: Output) -> Result {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let all = async {
        while let Some(chunk) = output.next().await {
            match chunk.stream {
                OutputStream::Stdout => stdout.extend_from_slice(&chunk.bytes),
                OutputStream::Stderr => stderr.extend_from_slice(&chunk.bytes),
            }
        }
        process.wait().await
    };
    let exit = tokio::time::timeout(PATIENCE, all).await.expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("the output is text");
    Result { exit, stdout: text(stdout), stderr: text(stderr) }
}

/// Reads until `expected` appears, and returns everything read.
pub(crate) async fn read_until(output: &mut Output, expected: &str) -> String {
    let mut seen = String::new();
    let found = async {
        while !seen.contains(expected) {
            let chunk = output.next().await.expect("the output goes on");
            seen.push_str(&String::from_utf8_lossy(&chunk.bytes));
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, found).await.is_ok();
    assert!(in_time, "{expected:?} does not come, only {seen:?}");
    seen
}

/// A number of seconds that no other test's command sleeps, to find the process by.
pub(crate) fn unique_seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("1000.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The number of processes with this argument.
pub(crate) fn count_processes(argument: &str) -> usize {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    let has_it = |path: PathBuf| {
        let line = fs::read(path.join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == argument.as_bytes())
    };
    entries.filter(|entry| has_it(entry.path())).count()
}

/// The number of this process's children, including zombies.
pub(crate) fn children() -> usize {
    let this = std::process::id().to_string();
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    let parent = |path: PathBuf| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        // The name may contain anything; state and parent follow it.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1).map(str::to_owned)
    };
    entries.filter(|entry| parent(entry.path()).as_ref() == Some(&this)).count()
}

pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < PATIENCE, "it never comes true that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs one ignored test in its own process, where no other test disturbs its measurement.
pub(crate) fn alone(test: &str) {
    let this = std::env::current_exe().expect("this program has a path");
    let output = Command::new(this).args(["--ignored", "--exact", test]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
