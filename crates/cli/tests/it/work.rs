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
        "item.started command_execution in_progress",
        "item.completed command_execution completed",
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
    let looked = &events[4]["item"];
    assert_eq!(
        looked["command"],
        format!("read_file {}", changed.display()),
        "what an agent looks at is seen"
    );
    assert_eq!(events[6]["item"]["changes"], change);
    let begun = &events[9]["item"];
    assert_eq!((&begun["aggregated_output"], &begun["exit_code"]), (&json!(""), &Value::Null));
    let ended = &events[10]["item"];
    assert_eq!(ended["id"], begun["id"]);
    assert_eq!((&ended["exit_code"], &ended["status"]), (&json!(3), &json!("failed")));
    let output = ended["aggregated_output"].as_str().expect("text");
    assert!(output.contains("alpha\ngamma\nhello\n") && output.contains("wrong\n"), "{output}");
    let todo = json!([{ "text": "change", "completed": true }, { "text": "check", "completed": true }]);
    assert_eq!(events[11]["item"]["items"], todo);
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

/// Each with the reason that the model reads and the flag that would allow it, in the events and in the record.
#[test]
fn what_is_refused_is_an_item_with_its_reason() {
    let place = Place::new();
    let outside = place.root().join("outside.txt").display().to_string();
    let escalated = r#"call exec_command {"cmd": "date", "sandbox_permissions": "require_escalated"}"#;
    let prompt =
        format!("run rm -rf keep\ncreate {outside} with x\ncreate .git/hooks/post with x\n{escalated}");
    let ran = work(&place, &["--json", "--full-auto"], &prompt);
    let ended: Vec<Value> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "item.completed" && event["item"]["type"] != "agent_message")
        .map(|event| event["item"].clone())
        .collect();
    let begun = ran.types().iter().filter(|kind| *kind == "item.started").count();
    assert_eq!((ended.len(), begun), (4, 4), "{}", ran.out);
    let shell = ended[0]["command"].as_str().expect("a command");
    let reasons = [
        format!("`{shell}` was rejected: it deletes without asking back, and nobody can be asked about it"),
        format!(
            "patch rejected: {outside} is outside of what may be written to (sandbox `workspace-write`), and nobody can \
             be asked (approval policy `never`)"
        ),
        format!(
            "patch rejected: {}/.git/hooks/post is protected: it decides what agents or git do later (sandbox \
             `workspace-write`), and nobody can be asked (approval policy `never`)",
            place.folder().display()
        ),
        "approval policy is Never; reject command — you cannot ask for escalated permissions if the approval policy is \
         Never"
            .to_owned(),
    ];
    let hints = ["danger-full-access", "--add-dir DIR", "danger-full-access", "danger-full-access"];
    let told = ran.events().iter().rev().find_map(|event| event["item"]["text"].as_str().map(str::to_owned));
    let told = told.expect("an answer");
    for ((item, reason), hint) in ended.iter().zip(&reasons).zip(hints) {
        let key = if item["type"] == "file_change" { "reason" } else { "aggregated_output" };
        assert_eq!((&item["status"], &item[key]), (&json!("declined"), &json!(reason)));
        assert!(item["hint"].as_str().is_some_and(|text| text.contains(hint)), "{item}");
        assert!(told.contains(reason.as_str()), "the model reads the same: {reason}\n{told}");
    }
    let shown = place.run(&["threads", "show", "--json", &ran.thread_id()]).good().document();
    let items = shown["turns"][0]["items"].as_array().expect("items").iter();
    let kept = items.filter(|item| item["status"] == "declined");
    let kept: Vec<&str> =
        kept.filter_map(|item| item["reason"].as_str().or(item["aggregatedOutput"].as_str())).collect();
    assert_eq!(kept, reasons);
    // A person reads them on lines of their own.
    let ran = work(&place, &["--full-auto"], &prompt);
    for (reason, hint) in reasons.iter().zip(hints) {
        // Without the shell around it.
        let reason = reason.replace(shell, "rm -rf keep");
        let at = ran
            .err
            .find(&format!("    {reason}\n    -> "))
            .unwrap_or_else(|| panic!("{reason}: {}", ran.err));
        let advice = ran.err[at..].lines().nth(1).unwrap_or_default();
        assert!(advice.contains(hint), "{advice}");
    }
}

#[test]
fn what_is_looked_at_is_an_item() {
    let place = Place::new();
    fs::write(place.folder().join("a.txt"), "alpha\n").expect("written");
    let ran = work(&place, &["--json"], "read a.txt\nlist files\nsearch for alpha\nread none.txt");
    assert_eq!(
        course(&ran),
        [
            "item.started command_execution in_progress",
            "item.completed command_execution completed",
            "item.started command_execution in_progress",
            "item.completed command_execution completed",
            "item.started command_execution in_progress",
            "item.completed command_execution completed",
            "item.started command_execution in_progress",
            "item.completed command_execution failed",
            "item.completed agent_message",
        ]
    );
    let folder = place.folder().display().to_string();
    let events = ran.events();
    let command = |at: usize| events[at]["item"]["command"].as_str().expect("a command").to_owned();
    assert_eq!(command(3), format!("read_file {folder}/a.txt"));
    assert_eq!(command(5), format!("list_dir {folder}"));
    assert_eq!(command(7), "grep_files alpha .");
    assert_eq!(events[9]["item"]["aggregated_output"], format!("{folder}/none.txt does not exist"));
    let ran = work(&place, &[], "read a.txt\nsearch for alpha\nread none.txt");
    for line in ["ok  read a.txt (", "ok  search . for alpha (", "no  read none.txt ("] {
        assert!(ran.err.contains(line), "{line}: {}", ran.err);
    }
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
