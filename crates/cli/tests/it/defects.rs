//! Panics in real processes: one line, the end of the process, and nothing lost for those who go on.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use serde_json::json;
use testkit::EndInTime as _;

use crate::host::{APPROVAL, HostClient, RunningHost, job, pending, runs, socket, state, until};
use crate::support::Place;
use crate::wires::PipedServer;

const SIGABRT: i32 = 6;

/// A host whose standard error is a file, and which ends, or whose runtime does, by a panic at this point.
fn host_with_defect(place: &Place, point: &str) -> Command {
    let marks = place.root().join("marks");
    fs::create_dir_all(&marks).expect("made");
    let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
    let mut command = place.command(&["host", "--provider", "offline", "--store", &store]);
    command.env("OARLOCK_KILL_AT", format!("{}:{point}!", marks.display()));
    command.stderr(File::create(place.root().join("log")).expect("made"));
    command
}

/// The one line about the defect.
fn report(place: &Place) -> String {
    let log = fs::read_to_string(place.root().join("log")).expect("text");
    let mut lines = log.lines().filter(|line| line.contains("a defect ended this program"));
    let line = lines.next().unwrap_or_else(|| panic!("no report in\n{log}"));
    assert_eq!(lines.next(), None);
    assert!(!log.contains("heronry"), "words of the user in\n{log}");
    line.to_owned()
}

#[test]
fn a_runtime_that_ends_by_a_panic_is_brought_back_and_nothing_runs_twice() {
    let place = Place::new();
    job(&place, "");
    let _host = RunningHost::of(&place, &mut host_with_defect(&place, "runtime.operationProposed.after"));
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh then say heronry", "i1");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
    assert_eq!(runs(&place), 1);
    assert!(report(&place).contains("(a test wants a panic at a kill point). What was acknowledged"));
}

#[test]
fn a_host_that_ends_by_a_panic_goes_on_when_it_is_started_again() {
    let place = Place::new();
    job(&place, "");
    let mut first = host_with_defect(&place, "host.decision.after").spawn().expect("the host starts");
    until("the socket of the host", || std::os::unix::net::UnixStream::connect(socket(&place)).ok());
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh then say heronry", "i1");
    let asked = client.wait_for(APPROVAL);
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    assert_eq!(first.wait().expect("an end").signal(), Some(SIGABRT));
    assert!(report(&place).starts_with("oarlock: a defect ended this program at crates/"));
    // The decision was stored and not carried out.
    let _host = RunningHost::start(&place, &[]);
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!((runs(&place), pending(&place).len()), (1, 0));
}

#[test]
fn a_reader_that_left_is_no_defect() {
    let place = Place::new();
    for (arguments, code) in [(&["status", "--help"][..], 0), (&["sandbox-check"], 1)] {
        let mut command = place.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        drop(child.stdout.take());
        let ended = child.end_in_time();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!((ended.status.code(), &*said), (Some(code), ""), "{arguments:?}");
    }
}

#[test]
fn a_server_goes_on_when_nobody_reads_its_log() {
    let place = Place::new();
    let mut server = PipedServer::open_with(&place, |command| {
        command.env("RUST_LOG", "debug").stderr(Stdio::piped());
    });
    drop(server.child.stderr.take());
    let thread = server.start_thread(&place, &json!({"modelProvider": "offline"}));
    assert_eq!(server.turn(&thread, "say hello").0["turn"]["status"], "completed");
}
