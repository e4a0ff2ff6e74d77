//! Commands that write without end. Separate from other tests, whose memory would be counted too.

#![allow(clippy::expect_used, reason = "a test may panic")]

#[allow(dead_code, reason = "most of it is for other tests")]
#[path = "../exec/stage.rs"]
mod stage;

use std::time::Duration;

use serde_json::json;

use crate::stage::{Stage, output};

/// In bytes, without the program itself.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// The result of the work, and the peak memory use.
async fn most_memory<T>(work: impl Future<Output = T>) -> (T, u64) {
    let mut most = 0;
    let mut often = tokio::time::interval(Duration::from_millis(2));
    tokio::pin!(work);
    loop {
        tokio::select! {
            result = &mut work => return (result, most.max(memory())),
            _ = often.tick() => most = most.max(memory()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_of_output_need_little_memory() {
    for (tool, key) in [("exec_command", "cmd"), ("shell_command", "command")] {
        let stage = Stage::new();
        stage.call(tool, json!({key: "true"})).await;
        let before = memory();
        let script = "head -c 100000000 /dev/zero | tr '\\0' '\\n'; echo the end";
        let call = stage.call(tool, json!({key: script, "yield_time_ms": 30_000, "timeout_ms": 60_000}));
        let ((text, _), most) = most_memory(call).await;
        let grown = most.saturating_sub(before);
        assert!(grown < 32 << 20, "{tool} takes {grown} bytes");
        assert!(text.len() < 48_000 && output(&text).ends_with("the end\n"), "{} bytes", text.len());
        let deltas = stage.deltas();
        assert!(deltas.iter().all(|delta| delta.len() <= 8_192) && deltas.len() <= 10_000);
        assert!(deltas.iter().map(String::len).sum::<usize>() <= 1_048_576);
        if tool == "exec_command" {
            let ended = &stage.ended()[1];
            let kept = ended["aggregatedOutput"].as_str().expect("output");
            assert!(kept.len() <= 1_048_576 + 100 && kept.contains("the end\n\n[Full output: "));
        }
    }
}
