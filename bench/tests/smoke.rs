//! Drives the fake app-server: what it does slowly must show, and what it does wrong must not count.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const BENCH: &str = env!("CARGO_BIN_EXE_oarlock-bench");
const FAKE: &str = env!("CARGO_BIN_EXE_fake-app-server");

/// A finished run.
struct Run {
    output: Output,
    report: Value,
}

impl Run {
    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn failures(&self) -> Vec<String> {
        let failures = self.report["failures"].as_array().expect("a list of failures");
        failures.iter().map(|failure| failure["message"].to_string()).collect()
    }

    fn metric(&self, key: &str) -> Option<&Value> {
        self.report["metrics"].as_array().expect("metrics").iter().find(|metric| metric["key"] == key)
    }

    fn median(&self, key: &str, server: &str) -> f64 {
        let metric = self.metric(key).unwrap_or_else(|| panic!("no metric {key}: {}", self.stderr()));
        metric["servers"][server]["median"].as_f64().unwrap_or_else(|| panic!("no {key} of {server}"))
    }

    fn goal(&self, key: &str) -> &Value {
        let goals = self.report["goals"].as_array().expect("goals were asked for");
        goals.iter().find(|goal| goal["metric"] == key).expect("a goal of this metric")
    }
}

/// Runs the driver on fakes with these flaws, each named by its position: `s0`, `s1`.
fn run(flaws: &[&str], arguments: &str) -> Run {
    let servers: Vec<String> = flaws.iter().map(|flaws| format!("'{FAKE}' {flaws}")).collect();
    run_commands(&servers, arguments)
}

fn run_commands(servers: &[String], arguments: &str) -> Run {
    let folder = TempDir::new().expect("a temporary folder");
    let work = folder.path().join("work");
    fs::create_dir(&work).expect("a work folder");
    let file = folder.path().join("report.json");
    let mut command = Command::new(BENCH);
    for (index, server) in servers.iter().enumerate() {
        command.arg("--server").arg(format!("s{index}={server}"));
    }
    let output = command
        .args(["--quiet", "20", "--timeout", "20", "--json"])
        .arg(&file)
        .arg("--work")
        .arg(&work)
        .args(arguments.split_whitespace())
        .output()
        .expect("the driver runs");
    let left = fs::read_dir(&work).expect("the work folder").count();
    assert_eq!(left, 0, "homes are left behind");
    let report = fs::read(&file).map_or(Value::Null, |text| serde_json::from_slice(&text).expect("JSON"));
    Run { output, report }
}

#[test]
fn what_a_server_does_slowly_shows_in_the_right_metric() {
    let slow = "--slow-initialize-ms 60 --slow-turn-ms 40 --slow-command-ms 40 --ballast-mib 48 --merge 50";
    let run = run(&["", slow], "--scale 50 --reps 2");
    assert_eq!(run.failures(), Vec::<String>::new(), "{}", run.stderr());
    assert!(run.output.status.success());

    for key in ["initialize_fresh_ms", "initialize_used_ms"] {
        let added = run.median(key, "s1") - run.median(key, "s0");
        assert!(added > 40.0, "{key}: {added}");
    }
    for key in ["rss_rest_mib", "rss_threads_mib"] {
        let added = run.median(key, "s1") - run.median(key, "s0");
        assert!((44.0..60.0).contains(&added), "{key}: {added}");
    }
    assert!(run.median("turn_ms", "s1") >= 40.0);
    for key in ["exec_ms", "sandboxed_exec_ms", "output_wall_ms"] {
        assert!(run.median(key, "s1") >= 80.0, "the turn and the command both wait");
    }
    assert!(run.median("stream_wall_ms", "s1") >= 40.0);
    assert!(
        run.median("concurrent_wall_ms", "s1") >= 80.0,
        "the fake runs its two turns one after the other"
    );

    assert_eq!(run.median("stream_notifications", "s0") as usize, 400);
    assert_eq!(run.median("stream_notifications", "s1") as usize, 8);
    assert_eq!(run.median("listed", "s0") as usize, 21);
    let size = fs::metadata(FAKE).expect("the fake").len() as f64 / 1e6;
    assert!((run.median("binary_mb", "s0") - size).abs() < 0.001);
}

#[test]
fn rates_ratios_and_counts_agree_with_each_other() {
    let run = run(&["", "--slow-initialize-ms 60"], "--scale 50 --reps 3 --only initialize turn stream");
    assert_eq!(run.failures(), Vec::<String>::new(), "{}", run.stderr());
    for server in ["s0", "s1"] {
        // The last delta cannot arrive after the turn has ended.
        let least = 400.0 / (run.median("stream_wall_ms", server) / 1_000.0);
        assert!(run.median("stream_deltas_per_s", server) >= least * 0.9);
        let turns = &run.metric("turn_ms").expect("turns were measured")["servers"][server];
        assert_eq!((&turns["n"], turns["samples"].as_array().map(Vec::len)), (&6.into(), Some(6)));
    }
    let metric = run.metric("initialize_used_ms").expect("measured");
    let expected = run.median("initialize_used_ms", "s0") / run.median("initialize_used_ms", "s1");
    let ratio = &metric["ratios"][0];
    assert_eq!((&ratio["server"], &ratio["baseline"]), (&"s1".into(), &"s0".into()));
    assert!((ratio["timesBetter"].as_f64().expect("a number") - expected).abs() < 1e-9);
    assert!(run.stdout().contains("s1 vs s0"), "{}", run.stdout());
    assert!(run.metric("resume_ms").is_none(), "it was not asked for");
}

#[test]
fn what_is_delegated_is_measured_where_the_server_delegates() {
    let slow = "--delegate --slow-turn-ms 40 --slow-barrier-ms 20 --merge 50";
    let arguments = "--scale 50 --reps 2 --only delegated-turn delegated-stream delegated-record --goals";
    let run = run(&["", "--delegate", slow], arguments);
    assert_eq!(run.failures(), Vec::<String>::new(), "{}", run.stderr());
    assert!(run.stderr().contains("delegated-turn s0: it does not delegate"), "{}", run.stderr());
    assert!(run.median("delegated_turn_ms", "s2") >= 40.0);
    assert!(run.median("delegated_turn_direct_ms", "s2") >= 40.0, "the fake waits in either");
    assert!((0.5..2.0).contains(&run.median("delegated_turn_ratio", "s2")));
    assert_eq!(run.median("delegated_stream_notifications", "s1") as usize, 400);
    assert_eq!(run.median("delegated_stream_notifications", "s2") as usize, 8);
    assert!(run.median("delegated_deltas_per_s", "s2") <= 400.0 / 0.04);
    assert_eq!(run.median("record_barriers", "s1") as usize, 4);
    assert!((20.0..40.0).contains(&run.median("record_barrier_ms", "s2")), "{}", run.stdout());
    let goals = run.report["goals"].as_array().expect("goals");
    let judged = |server: &str| goals.iter().filter(|goal| goal["server"] == server).count();
    assert_eq!((judged("s0"), judged("s1"), judged("s2")), (0, 3, 3));
    assert_eq!((&goals[2]["metric"], &goals[2]["baseline"]), (&"record_barrier_ms".into(), &"-".into()));
    assert_eq!(goals[2]["outcome"], "pass", "{}", run.stdout());
    assert_eq!(goals[5]["outcome"], "fail", "{}", run.stdout());
}

#[test]
fn wires_are_measured_where_the_server_speaks_them() {
    let servers = ["", "--wires", "--wires --slow-chat-ms 20 --slow-history-us 500 --merge 50"];
    let run = run(&servers, "--scale 50 --reps 2 --only wire-turn wire-stream long-thread --goals");
    assert_eq!(run.failures(), Vec::<String>::new(), "{}", run.stderr());
    assert!(run.stderr().contains("wire-turn s0: it does not ask models by every wire"), "{}", run.stderr());
    assert!(run.median("wire_turn_chat_ms", "s2") >= 20.0);
    assert!(run.median("wire_turn_extra_ms", "s2") >= 10.0, "{}", run.stdout());
    assert!(run.median("wire_stream_share", "s2") < 1.0);
    let growth = run.median("long_thread_turns_ms", "s2") - run.median("long_thread_fresh_ms", "s2");
    assert!(growth >= 2.0, "{growth}");
    assert!(run.median("long_thread_growth_ms", "s2") > 1.0);
    let goals = run.report["goals"].as_array().expect("goals");
    let judged = |server: &str| goals.iter().filter(|goal| goal["server"] == server).count();
    assert_eq!((judged("s0"), judged("s1"), judged("s2")), (0, 3, 3));
    let missed = |goal: &&Value| goal["server"] == "s2" && goal["outcome"] == "fail";
    assert!(goals.iter().filter(missed).count() >= 2, "{}", run.stdout());
}

#[test]
fn a_server_that_keeps_what_a_host_floods_it_with_misses_the_goal() {
    let servers = ["--delegate", "--delegate --hoard-events"];
    let run = run(&servers, "--scale 20 --reps 1 --only delegated-unread delegated-unacknowledged");
    assert!(run.median("unread_growth_mib", "s0") < 8.0);
    // Half of it was pushed at one process and half at another.
    assert!(run.median("unread_growth_mib", "s1") >= run.median("unread_pushed_mb", "s1") * 0.45);
    assert!(run.median("unacknowledged_growth_mib", "s0") < 8.0);
    assert!(run.median("unacknowledged_pushed_mb", "s0") >= 20.0);
    assert_eq!(run.failures().len(), 1, "{}", run.stderr());
    assert!(run.failures()[0].contains("the server takes everything"), "{}", run.failures()[0]);
}

/// A flaw, the measure that must notice it, and what that says.
const NOTICED: &[(&str, &str, &str)] = &[
    ("--lose-delta", "stream", "wrong text at byte"),
    ("--lose-delta", "concurrent", "wrong text at byte"),
    ("--fail-turns", "turn", "ended as"),
    ("--refuse-turns", "turn", "turn/start is refused"),
    ("--refuse-turns", "list", "turn/start is refused"),
    ("--skip-model", "turn", "the model was asked 0 times instead of 1"),
    ("--skip-model", "stream", "the message is not the model's"),
    ("--fail-commands", "exec", "the command did not end well"),
    ("--fail-commands", "sandboxed-exec", "the command did not end well"),
    ("--fail-commands", "output", "the command did not end well"),
    ("--skip-commands", "exec", "the model was asked 1 times instead of 2"),
    ("--lose-items", "resume", "came back right"),
    ("--delegate --lose-delta", "delegated-stream", "wrong text at byte"),
    ("--delegate --fail-turns", "delegated-turn", "ended as"),
    ("--delegate --fail-commands", "delegated-record", "the command did not end well"),
    ("--delegate --lose-records", "delegated-record", "the record goes on at 1 and not at 0"),
    ("--wires --lose-delta", "wire-stream", "wrong text at byte"),
    ("--die", "turn", "the fake dies as asked"),
];

#[test]
fn work_that_was_not_done_gives_no_sample() {
    for (flaw, measure, words) in NOTICED {
        let run = run(&[flaw], &format!("--scale 100 --reps 1 --only {measure}"));
        let failures = run.failures();
        assert_eq!(failures.len(), 1, "{flaw} on {measure}: {}", run.stderr());
        assert!(failures[0].contains(words), "{flaw} on {measure}: {}", failures[0]);
        assert_eq!(run.report["metrics"], Value::Array(Vec::new()), "{flaw} on {measure}");
        assert!(run.output.status.success(), "only --strict makes it an error");
    }
}

#[test]
fn a_thread_that_is_not_listed_is_counted_and_misses_the_goal() {
    let run = run(&["", "--hide-thread"], "--scale 100 --reps 1 --only list --goals");
    assert_eq!((run.median("listed", "s0") as usize, run.median("listed", "s1") as usize), (11, 10));
    assert_eq!(run.goal("listed")["outcome"], "fail");
    assert_eq!(run.goal("listed")["reached"], 10.0);
}

#[test]
fn output_that_is_kept_shows_and_misses_the_goal() {
    let run = run(&["", "--hoard-output"], "--scale 8 --reps 1 --only output --goals");
    assert_eq!(run.failures(), Vec::<String>::new(), "{}", run.stderr());
    let kept = 50_000_000.0 / f64::from(1 << 20);
    assert!(run.median("output_growth_mib", "s0") < 8.0);
    assert!(run.median("output_growth_mib", "s1") >= kept - 1.0);
    assert_eq!(run.goal("output_growth_mib")["outcome"], "fail");
}

#[test]
fn goals_follow_the_baseline_and_only_strict_makes_them_count() {
    let servers = ["--claim-version 0.117.0 --slow-initialize-ms 400", ""];
    let arguments = "--scale 100 --reps 1 --only initialize stream size --goals";
    let lenient = run(&servers, arguments);
    assert_eq!(lenient.goal("stream_deltas_per_s")["target"]["timesBetter"], 80.0);
    assert_eq!(lenient.goal("stream_deltas_per_s")["outcome"], "fail");
    assert_eq!(lenient.goal("initialize_used_ms")["outcome"], "pass", "{}", lenient.stdout());
    assert_eq!(lenient.goal("binary_mb")["target"]["under"], 20.0);
    assert!(lenient.output.status.success());
    let strict = run(&servers, &format!("{arguments} --strict"));
    assert_eq!(strict.output.status.code(), Some(1));
    // Judged the other way round, against a server of another version.
    let reversed = run(&servers, &format!("{arguments} --baseline s1"));
    assert_eq!(reversed.goal("stream_deltas_per_s")["target"]["timesBetter"], 10.0);
    assert_eq!(reversed.goal("initialize_used_ms")["outcome"], "fail");
}

#[test]
fn a_launcher_is_not_taken_for_the_server() {
    let launcher = format!(r#"sh -c '"$0" "$@"; true' '{FAKE}'"#);
    let run = run_commands(&[launcher], "--reps 1 --only size");
    let executable = run.report["servers"][0]["executable"].as_str().expect("a path").to_owned();
    assert_eq!(fs::canonicalize(executable).ok(), fs::canonicalize(FAKE).ok());
}

#[test]
fn a_server_that_cannot_start_ends_the_run() {
    let missing = run_commands(&["/no/such/server".to_owned()], "--only size");
    assert_eq!(missing.output.status.code(), Some(2));
    assert!(
        missing.stderr().contains("server s0: /no/such/server cannot be started"),
        "{}",
        missing.stderr()
    );
    let silent = run_commands(&["sh -c 'echo no server here >&2; exit 1'".to_owned()], "--only size");
    assert_eq!(silent.output.status.code(), Some(2));
    assert!(silent.stderr().contains("no server here"), "{}", silent.stderr());
}
