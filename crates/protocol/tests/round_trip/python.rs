//! Rust, Python and back: the pydantic models read what Rust writes and lose nothing of it, known or not.

use std::env;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fixtures::{Fixture, all, differences, parse};
use crate::mutations::{Change, mutations};
use crate::random::Random;

#[test]
fn every_fixture_survives_python() {
    let written = |fixture: &Fixture| {
        let text = fixture.round_trip(&fixture.payload.to_string()).expect("every fixture decodes");
        Fixture { payload: parse(&text), ..fixture.clone() }
    };
    check(&all().iter().map(written).collect::<Vec<_>>());
}

/// Everything Rust still reads must pass through Python as it came: added fields, words of open enums, nulls and gaps.
#[test]
fn valid_messages_with_surprises_survive_python() {
    let mut random = Random::new(5_102_025);
    let surprises = [Change::UnknownField, Change::UnknownWord, Change::Nulled, Change::Dropped];
    let mut messages = Vec::new();
    for fixture in all() {
        let candidates: Vec<_> = mutations(&fixture.payload, &mut random)
            .into_iter()
            .filter(|mutation| surprises.contains(&mutation.change))
            .collect();
        for _ in 0..3.min(candidates.len()) {
            let mutation = random.pick(&candidates);
            if fixture.round_trip(&mutation.text).is_ok() {
                let place = format!("{} {:?} at {}", fixture.place, mutation.change, mutation.place);
                messages.push(Fixture { place, payload: parse(&mutation.text), ..fixture.clone() });
            }
        }
    }
    assert!(messages.len() > 500, "only {} damaged messages are still valid", messages.len());
    check(&messages);
}

/// Sends the messages through Python; each must come back equal and mean the same to Rust.
fn check(messages: &[Fixture]) {
    let Some(python) = env::var_os("OARLOCK_PYTHON") else {
        println!("skipped: OARLOCK_PYTHON names no interpreter with pydantic; the full test script sets it");
        return;
    };
    let answers = echo(Path::new(&python), messages);
    assert_eq!(answers.len(), messages.len(), "one line for each message");
    let wrong: Vec<String> =
        messages.iter().zip(&answers).filter_map(|(message, answer)| difference(message, answer)).collect();
    assert!(wrong.is_empty(), "{} of {} changed:\n{}", wrong.len(), messages.len(), wrong.join("\n"));
    println!("{} messages came back from Python unchanged", messages.len());
}

fn echo(python: &Path, messages: &[Fixture]) -> Vec<Value> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/oarlock-protocol");
    let output = Command::new(python)
        .arg(package.join("tests/echo_messages.py"))
        .env("PYTHONPATH", package.join("src"))
        .env("PYTHONUTF8", "1")
        .stdin(lines(messages))
        .output()
        .expect("OARLOCK_PYTHON can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("Python writes UTF-8");
    text.lines().map(parse).collect()
}

/// A file, to avoid a deadlock on a full pipe.
fn lines(messages: &[Fixture]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    for message in messages {
        writeln!(file, "{}", message.line()).expect("the temporary file takes the messages");
    }
    file.rewind().expect("a file can be read from its start");
    file
}

fn difference(message: &Fixture, answer: &Value) -> Option<String> {
    let sent = &message.payload;
    let Some(back) = answer.get("payload") else { return Some(format!("{message}: {}", answer["error"])) };
    let meaning = |payload: &Value| message.round_trip(&payload.to_string());
    let same = back == sent && meaning(back) == meaning(sent);
    (!same).then(|| format!("{message}: {}", differences(sent, back).join(", ")))
}
