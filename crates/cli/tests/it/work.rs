//! Commands that run and files that change.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::{EndInTime, LinesInTime, RunInTime};

use crate::support::{Place, Ran, Sign, running, signal};

/// Only the workspace is writable, and what a user's shell says when it starts is left out.
const QUIET: &[&str] = &[
    "-c",
    "sandbox_workspace_write={exclude_slash_tmp=true,exclude_tmpdir_env_var=true}",
    "-c",
    "allow_login_shell=false",
];

fn work(place: &Place, options: &[&str], prompt: &str) -> Ran {
    place.offline(&[QUIET, options, &[prompt]].concat()).good()
}

/// Type of event, type of item, status.
fn course(ran: &Ran) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = ran.events().into_iter().filter(|event| event.get("item").is_some());
    let course = events.map(|event| {
        let (kind, item) = (text(&event["type"]), &event["item"]);
        format!("{kind} {} {}", text(&item["type"]), text(&item["status"])).trim_end().to_owned()
    });
    course.collect()
}

#[test]
fn commands_patches_and_plans_are_events() {
    let place = Place::new();
    fs::write(place.folder().join("a.txt"), "alpha\nbeta\n").expect("written");
    let prompt = "plan: change; check\nreplace beta with gamma in a.txt\ncreate sub/b.txt with hello\n\
                  run cat a.txt sub/b.txt; echo wrong >&2; exit 3\nfinish the plan\nsum up";
    let ran = work(&place, &["--json", "--full-auto"], prompt);
    let expected = [
        "item.started todo_list",
        "item.started file_change in_progress",
        "item.completed file_change completed",
        "item.started file_change in_progress",
        "item.completed file_change completed",
        "item.started command_execution in_progress",
        "item.completed command_execution failed",
        "item.updated todo_list",
        "item.completed agent_message",
        "item.completed todo_list",
    ];
    assert_eq!(course(&ran), expected);
    let events = ran.events();
    let changed = place.folder().join("a.txt");
    let change = json!([{ "path": changed.to_str().expect("plain"), "kind": "update" }]);
    assert_eq!(events[4]["item"]["changes"], change);
    let begun = &events[7]["item"];
    assert_eq!((&begun["aggregated_output"], &begun["exit_code"]), (&json!(""), &Value::Null));
    let ended = &events[8]["item"];
    assert_eq!(ended["id"], begun["id"]);
    assert_eq!((&ended["exit_code"], &ended["status"]), (&json!(3), &json!("failed")));
    let output = ended["aggregated_output"].as_str().expect("text");
    assert!(output.contains("alpha\ngamma\nhello\n") && output.contains("wrong\n"), "{output}");
    let todo = json!([{ "text": "change", "completed": true }, { "text": "check", "completed": true }]);
    assert_eq!(events[9]["item"]["items"], todo);
    assert_eq!(fs::read_to_string(changed).expect("there"), "alpha\ngamma\n");
}

#[test]
fn a_person_sees_what_is_done() {
    let place = Place::new();
    let ran = work(&place, &["--full-auto"], "create b.txt with hello\nrun cat b.txt; exit 3");
    for part in
        ["ok  edit add b.txt\n    +hello\n", "no  run cat b.txt; exit 3 (exit code 3, ", "    hello\n"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert!(ran.out.starts_with("Offline model: 2 of 2 steps done"), "{}", ran.out);
}

#[test]
fn flags_reach_the_sandbox() {
    let place = Place::new();
    let extra = place.root().join("extra");
    fs::create_dir(&extra).expect("made");
    let extra = extra.to_str().expect("plain");
    let prompt = format!("run touch in; touch {extra}/file; touch {}/out", place.root().display());
    let written = |options: &[&str]| {
        work(&place, options, &prompt);
        let paths = [place.folder().join("in"), place.root().join("extra/file"), place.root().join("out")];
        paths.map(|path| fs::remove_file(path).is_ok())
    };
    assert_eq!(written(&[]), [false, false, false], "read-only is the default");
    assert_eq!(written(&["--sandbox", "read-only"]), [false, false, false]);
    assert_eq!(written(&["--full-auto"]), [true, false, false]);
    assert_eq!(written(&["--sandbox", "workspace-write", "--add-dir", extra]), [true, true, false]);
    assert_eq!(written(&["--yolo"]), [true, true, true]);
}

#[test]
fn nobody_is_asked_so_what_needs_a_yes_is_refused() {
    let place = Place::new();
    fs::create_dir_all(place.home().join("rules")).expect("made");
    let rules = "prefix_rule(pattern=[\"touch\"], decision=\"prompt\")\n";
    fs::write(place.home().join("rules/default.rules"), rules).expect("written");
    let keep = place.folder().join("keep");
    fs::create_dir(&keep).expect("made");
    let options = ["--full-auto", "-c", "approval_policy=untrusted"];
    let ran = work(&place, &options, "run rm -rf keep\nrun touch new\ncreate ../outside.txt with x");
    assert!(keep.exists() && !place.folder().join("new").exists(), "{ran:?}");
    assert!(!place.root().join("outside.txt").exists(), "{ran:?}");
    assert!(ran.out.matches("rejected").count() >= 3, "{}", ran.out);
}

#[test]
fn an_interrupt_leaves_no_process() {
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let place = Place::new();
        let sign = Sign::make(place.folder().join("sign"));
        let prompt = "run sleep 31042 & setsid sleep 31042 & echo up > sign; sleep 31042";
        let arguments =
            [&["exec", "--provider", "offline", "--json", "--full-auto"], QUIET, &[prompt]].concat();
        let mut command = place.command(&arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary runs");
        sign.wait();
        assert!(!running("sleep 31042").is_empty());
        signal(&child, name);
        let output = child.end_in_time();
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(running("sleep 31042"), Vec::<String>::new());
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let event = |line| serde_json::from_str::<Value>(line).expect("an event");
        let mut last = told.lines().rev().map(event);
        assert_eq!(last.next().expect("a last event")["type"], "turn.interrupted");
        let item = last.next().expect("one before");
        assert_eq!((&item["type"], &item["item"]["status"]), (&json!("item.completed"), &json!("failed")));
        assert!(!told.contains("turn.completed"), "{told}");
    }
}

#[test]
fn a_command_that_runs_on_ends_with_the_program() {
    let place = Place::new();
    let prompt = r#"call exec_command {"cmd": "sleep 31043", "yield_time_ms": 250}"#;
    let ran = work(&place, &["--json"], prompt);
    assert_eq!(running("sleep 31043"), Vec::<String>::new());
    let closed =
        course(&ran).iter().filter(|step| step.starts_with("item.completed command_execution")).count();
    assert_eq!(closed, 1, "what has begun is told to have ended: {}", ran.out);
}

#[test]
fn a_server_is_sealed_before_it_answers() {
    let place = Place::new();
    let mut command = place.command(&["app-server"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut input = child.stdin.take().expect("piped");
    writeln!(input, "{}", json!({ "id": 1, "method": "nothing/of/the/kind" })).expect("sent");
    LinesInTime::new(child.stdout.take().expect("piped")).next().expect("an answer");
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("limits");
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).expect("the limit");
    assert_eq!(
        core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(),
        ["0", "0"],
        "no image of its memory"
    );
    drop(input);
    assert!(child.wait_in_time().success());
}

#[test]
fn a_missing_sandbox_is_told_at_the_start_and_nothing_runs_without() {
    let place = Place::new();
    // Within the sandbox no other one can be built, and the home of the one outside is out of reach.
    let inside = |arguments: &[&str]| {
        let home = format!("OARLOCK_HOME={}", place.folder().join("inner").display());
        let program =
            ["sandbox", "--mode", "workspace-write", "--", "env", &home, env!("CARGO_BIN_EXE_oarlock")];
        place.command(&[&program[..], arguments].concat())
    };
    let told = "sandboxed commands are refused: ";
    let arguments = ["exec", "--provider", "offline", "--full-auto", "run touch ran"];
    let output = inside(&arguments).output_in_time();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains(&format!("warning: {told}")), "{errors}");
    assert!(errors.contains("no  run touch ran (not started"), "{errors}");
    assert!(!place.folder().join("ran").exists());

    let mut server = inside(&["app-server"]);
    let server = server.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = server.spawn().expect("the binary runs");
    let input = child.stdin.take();
    let mut lines = LinesInTime::new(child.stderr.take().expect("piped"));
    assert!(lines.any(|line| line.contains(told)), "the log says so");
    drop(input);
    assert!(child.wait_in_time().success());
}
