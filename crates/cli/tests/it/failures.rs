//! Failures are reported once and in one sentence.

use serde_json::json;
use testkit::RunInTime;

use crate::support::{Place, Scripted, exec, records};

#[test]
fn without_a_key_both_ways_out_are_named_once() {
    let place = Place::new();
    let ran = place.run(&["exec", "say hi"]).bad();
    assert!(ran.out.is_empty());
    assert_eq!(ran.err.matches("OPENAI_API_KEY").count(), 1, "{}", ran.err);
    assert_eq!(ran.err.matches("--provider offline").count(), 1, "{}", ran.err);

    let ran = place.run(&["exec", "--json", "say hi"]).bad();
    assert_eq!(ran.types(), ["thread.started", "turn.started", "error", "turn.failed"]);
    assert!(ran.err.is_empty(), "{}", ran.err);
}

#[test]
fn a_provider_that_fails_fails_the_turn() {
    let place = Place::new();
    let busy = json!({ "fail": { "status": 400, "body": { "error": { "message": "no such thing" } } } });
    let model = Scripted::start(&place, &json!([busy, busy]));
    let flags = model.flags();
    let ran = place.run(&exec(&flags, &["go"])).bad();
    assert_eq!(ran.err.matches("no such thing").count(), 1, "{}", ran.err);
    assert!(ran.out.is_empty());
    let ran = place.run(&exec(&flags, &["--json", "go"])).bad();
    let last = ran.events().pop().expect("events");
    assert_eq!(last["type"], "turn.failed");
    assert!(last["error"]["message"].as_str().is_some_and(|text| text.contains("no such thing")), "{last}");
}

#[test]
fn what_is_wrong_on_the_line_is_named_and_starts_nothing() {
    let place = Place::new();
    let not_json = place.file("schema.txt", "{");
    let rows: &[(&[&str], &str)] = &[
        (&["--output-schema", "/nowhere.json", "x"], "--output-schema /nowhere.json"),
        (&["--output-schema", &not_json, "x"], "is not JSON"),
        (&["-i", "/nowhere.png", "x"], "--image /nowhere.png"),
        (&["-C", "/nowhere", "x"], "--cd /nowhere"),
        (&["-c", "model", "x"], "`-c model` has no `=`"),
        (&["-c", "approval_policy=5", "x"], "approval_policy"),
        (&["--enable", "flying", "x"], "no feature `flying`"),
        (&["-p", "nobody", "x"], "profile `nobody` not found"),
        (&["--provider", "nobody", "x"], "provider `nobody` not found"),
        (&["--oss", "x"], "--local-provider"),
        (&["resume"], "--last"),
        (&["resume", "0198f0a0-0000-7000-8000-00000000abcd", "x"], "0198f0a0-0000-7000-8000-00000000abcd"),
    ];
    for (arguments, expected) in rows {
        let ran = place.run(&[&["exec"], *arguments].concat()).bad();
        assert!(ran.err.contains(expected), "{arguments:?}: {}", ran.err);
        assert!(ran.out.is_empty(), "{arguments:?}: {}", ran.out);
    }
    assert!(records(&place.home()).is_empty());
    assert_eq!(place.run(&["exec", "--sandbox", "sometimes", "x"]).code, Some(2));
}

#[test]
fn a_reader_that_leaves_ends_the_work() {
    let place = Place::new();
    let line = format!("{} exec --provider offline --json 'say hi' | true", env!("CARGO_BIN_EXE_oarlock"));
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(line).current_dir(place.folder()).env("OARLOCK_HOME", place.home());
    let output = shell.stdin(std::process::Stdio::null()).output_in_time();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!told.contains("panicked"), "{told}");
}
