//! Several `oarlock host` on one Postgres, as real processes: killed, stopped past their lease, and without a database for a
//! while. Effects are counted outside, by commands that append to a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::PostgresServer;

use crate::host::{APPROVAL, HostClient, runtimes_of, until};
use crate::support::Place;

/// Short, so that tests need not wait long, and long enough for a busy machine.
const LEASE: &str = "7";

/// One host among others.
pub(crate) struct Replica {
    child: Child,
    socket: PathBuf,
}

impl Replica {
    pub(crate) fn start(place: &Place, server: &PostgresServer, name: &str) -> Self {
        Self::start_with(place, server, name, &[])
    }

    pub(crate) fn start_with(place: &Place, server: &PostgresServer, name: &str, more: &[&str]) -> Self {
        let url = server.url();
        let arguments =
            ["host", "--provider", "offline", "--store", &url, "--replica", name, "--lease", LEASE];
        Self::spawn(place, &mut place.command(&[&arguments[..], more].concat()), name)
    }

    pub(crate) fn spawn(place: &Place, command: &mut Command, name: &str) -> Self {
        let child = command.stderr(Stdio::inherit()).spawn().expect("the host starts");
        let socket = place.home().join(format!("host-{name}.sock"));
        let replica = Self { child, socket };
        until("the socket of the host", || UnixStream::connect(&replica.socket).ok());
        replica
    }

    pub(crate) fn client(&self) -> HostClient {
        HostClient::at(&self.socket)
    }

    /// One that knows nothing of hosts, and of nothing experimental.
    pub(crate) fn stock_client(&self) -> HostClient {
        HostClient::stock_at(&self.socket, false)
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().expect("kill runs").success());
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    fn command(&self, place: &Place, arguments: &[&str]) -> crate::support::Ran {
        let url = format!("unix://{}", self.socket.display());
        let (name, rest) = arguments.split_first().expect("a command");
        place.run(&[&[*name, "--host", &url], rest].concat())
    }

    /// The operations of a thread that wait for a decision, as this host sees them.
    pub(crate) fn pending(&self, place: &Place, thread: &str) -> Option<Value> {
        let listed = self.command(place, &["pending", "--json"]).good().document();
        listed.as_array().and_then(|all| all.iter().find(|row| row["threadId"] == thread)).cloned()
    }

    pub(crate) fn state(&self, place: &Place, thread: &str) -> String {
        let listed = self.command(place, &["tasks", "--json"]).good().document();
        let found = listed.as_array().and_then(|all| all.iter().find(|row| row["id"] == thread)).cloned();
        found.and_then(|row| row["state"].as_str().map(str::to_owned)).unwrap_or_default()
    }

    pub(crate) fn decide(&self, place: &Place, verb: &str, operation: &Value, more: &[&str]) {
        let id = operation["operationId"].as_str().expect("an id").to_owned();
        self.command(place, &[&[verb, &id], more].concat()).good();
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // A stopped process ends by this, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn postgres() -> Option<PostgresServer> {
    PostgresServer::start(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// A command that counts its runs in a file of its name, and goes on when `NAME.go` is there.
pub(crate) fn job(place: &Place, name: &str) {
    let script = format!("echo x >> {name}.runs\nwhile [ ! -e {name}.go ]; do sleep 0.05; done\n");
    fs::write(place.folder().join(format!("{name}.sh")), script).expect("written");
}

pub(crate) fn let_go(place: &Place, name: &str) {
    fs::write(place.folder().join(format!("{name}.go")), "").expect("written");
}

pub(crate) fn runs(place: &Place, name: &str) -> usize {
    fs::read_to_string(place.folder().join(format!("{name}.runs"))).map_or(0, |text| text.lines().count())
}

#[test]
fn a_database_that_is_restarted_in_mid_turn_delays_and_loses_nothing() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let host = Replica::start(&place, &server, "a");
    let mut client = host.client();
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "run sh job.sh", "i1");
    until("the command", || (runs(&place, "job") == 1).then_some(()));
    server.stop("immediate");
    // Its end cannot be recorded now.
    let_go(&place, "job");
    server.begin();
    assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
    client.turn(&thread, "say hello", "i2");
    assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"].as_array().map(Vec::len), Some(2), "{read}");
    assert_eq!(runs(&place, "job"), 1);
}

#[test]
fn input_that_comes_to_another_host_is_taken_by_the_owner() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let [first, second] = ["a", "b"].map(|name| Replica::start(&place, &server, name));
    let mut owner = first.client();
    let thread = owner.start_thread(&place, "never");
    let mut client = second.client();
    let turn = client.turn(&thread, "run sh job.sh", "i1");
    assert_eq!(turn["status"], "inProgress", "it is committed, and so it is no error");
    assert_eq!(client.turn(&thread, "run sh job.sh", "i1")["id"], turn["id"], "known input");
    until("the command", || (runs(&place, "job") == 1).then_some(()));
    let steer = json!({
        "threadId": thread, "expectedTurnId": turn["id"], "inputId": "i2",
        "input": [{"type": "text", "text": "then say hello"}],
    });
    assert_eq!(client.ask("turn/steer", &steer)["turnId"], turn["id"]);
    let_go(&place, "job");
    let completed = owner.wait_for("turn/completed");
    assert_eq!(completed["params"]["turn"]["id"], turn["id"], "{completed}");
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert!(read.to_string().contains("then say hello"), "{read}");
    assert_eq!(runs(&place, "job"), 1);
}

#[test]
fn the_tasks_of_a_killed_host_are_taken_over_and_nothing_runs_twice() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    for name in ["ran", "asked"] {
        job(&place, name);
    }
    let_go(&place, "asked");
    let [first, second, third] = ["a", "b", "c"].map(|name| Replica::start(&place, &server, name));
    let mut client = first.client();
    let ran = client.start_thread(&place, "never");
    client.turn(&ran, "run sh ran.sh", "i1");
    until("the command", || (runs(&place, "ran") == 1).then_some(()));
    let asked = client.start_thread(&place, "untrusted");
    client.turn(&asked, "run sh asked.sh", "i1");
    client.wait_for(APPROVAL);
    let before = second.pending(&place, &asked).expect("every host sees what waits");
    let refused = second.client().try_ask("thread/resume", &json!({"threadId": ran})).expect_err("another's");
    assert_eq!(refused["data"]["code"], "ownedElsewhere", "{refused}");
    let runtimes = runtimes_of(&first.child);
    assert_eq!(runtimes.len(), 2);
    first.kill();

    // The command that ran was lost with its host: its outcome is unknown until somebody decides.
    let lost = until("the loss", || {
        second.pending(&place, &ran).filter(|operation| operation["state"] == "unknown")
    });
    for runtime in runtimes {
        until("the end of the old runtimes", || (!Path::new("/proc").join(&runtime).exists()).then_some(()));
    }
    third.decide(&place, "respond", &lost, &["it had been done"]);
    let waiting = third.pending(&place, &asked).expect("it still waits");
    assert_eq!(waiting["operationId"], before["operationId"], "the same operation");
    second.decide(&place, "approve", &waiting, &[]);
    for thread in [&ran, &asked] {
        until("the end of the turn", || (third.state(&place, thread) == "idle").then_some(()));
        let read = second.client().ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
        assert_eq!(read["thread"]["turns"][0]["status"], "completed", "{read}");
    }
    assert_eq!((runs(&place, "ran"), runs(&place, "asked")), (1, 1));
}

#[test]
fn a_host_that_was_stopped_past_its_lease_finds_itself_fenced_and_so_does_its_runtime() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    for name in ["ran", "asked"] {
        job(&place, name);
    }
    let_go(&place, "asked");
    let [first, second] = ["a", "b"].map(|name| Replica::start(&place, &server, name));
    let mut client = first.client();
    let ran = client.start_thread(&place, "never");
    client.turn(&ran, "run sh ran.sh", "i1");
    let asked = client.start_thread(&place, "untrusted");
    client.turn(&asked, "run sh asked.sh", "i1");
    let question = client.wait_for(APPROVAL);
    until("the command", || (runs(&place, "ran") == 1).then_some(()));
    let stale = runtimes_of(&first.child);
    first.signal("-STOP");

    // Decided while its owner is silent: carried out by the next one, once.
    let waiting = second.pending(&place, &asked).expect("it waits");
    second.decide(&place, "approve", &waiting, &[]);
    until("the approved command", || (runs(&place, "asked") == 1).then_some(()));
    let lost = until("the loss", || {
        second.pending(&place, &ran).filter(|operation| operation["state"] == "unknown")
    });
    // Nobody is left who could do anything for the old owner.
    for runtime in &stale {
        let path = Path::new("/proc").join(runtime).join("stat");
        let stat = fs::read_to_string(path).unwrap_or_default();
        let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).unwrap_or("gone");
        assert!(matches!(state, "gone" | "Z"), "a runtime of the stopped host still lives: {stat}");
    }
    let_go(&place, "ran");
    first.signal("-CONT");
    // The client of the fenced host answers too late.
    client.write(&json!({"id": question["id"], "result": {"decision": "accept"}}));
    until("the fenced host to answer", || (!first.state(&place, &ran).is_empty()).then_some(()));
    second.decide(&place, "respond", &lost, &["it had been done"]);
    for thread in [&ran, &asked] {
        until("the end of the turn", || (second.state(&place, thread) == "idle").then_some(()));
    }
    until("no runtime at the fenced host", || runtimes_of(&first.child).is_empty().then_some(()));
    assert_eq!((runs(&place, "ran"), runs(&place, "asked")), (1, 1));
    // It has a lease again, and takes new work.
    let mut client = first.client();
    let fresh = until("a lease", || {
        let params =
            json!({"cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access"});
        client.try_ask("thread/start", &params).ok()
    });
    let fresh = fresh["thread"]["id"].as_str().expect("an id").to_owned();
    client.turn(&fresh, "say hello", "i1");
    assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
}

#[test]
fn a_name_belongs_to_one_host_and_a_host_that_stops_leaves_its_tasks_to_others() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    job(&place, "job");
    let mut first = Replica::start(&place, &server, "a");
    let mut client = first.client();
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    let second = Replica::start(&place, &server, "b");
    first.signal("-TERM");
    until("the end of the host", || first.child.try_wait().expect("a child"));
    let_go(&place, "job");
    let waiting = second.pending(&place, &thread).expect("it waits");
    second.decide(&place, "approve", &waiting, &[]);
    until("the end of the turn", || (second.state(&place, &thread) == "idle").then_some(()));
    assert_eq!(runs(&place, "job"), 1);
    // Another one under the same name: the first is told, and ends.
    let mut second = second;
    let _other = Replica::start(&place, &server, "b");
    let status = until("the end of the replaced host", || second.child.try_wait().expect("a child"));
    assert!(!status.success());
}

#[test]
fn a_password_is_found_outside_the_command_line_and_stays_with_the_host() {
    let Some(server) = postgres() else { return };
    let place = Place::new();
    server.require_password("hunter2");
    let passwords = place.folder().join("passwords");
    fs::write(&passwords, "*:*:*:oar:hunter2\n").expect("written");
    fs::set_permissions(&passwords, fs::Permissions::from_mode(0o600)).expect("changed");
    let with_file = format!("{}?passfile={}", server.url(), passwords.display());
    for (name, store, password) in [("a", server.url(), Some("hunter2")), ("b", with_file, None)] {
        let arguments = ["host", "--provider", "offline", "--replica", name];
        let mut command = place.command(&arguments);
        command.env("OARLOCK_STORE", store).envs(password.map(|password| ("PGPASSWORD", password)));
        let host = Replica::spawn(&place, &mut command, name);
        let arguments = fs::read(format!("/proc/{}/cmdline", host.child.id())).expect("its arguments");
        let arguments = String::from_utf8_lossy(&arguments).into_owned();
        assert!(!arguments.contains("hunter2") && !arguments.contains("postgres:"), "{arguments}");
        let mut client = host.client();
        let thread = client.start_thread(&place, "never");
        client.turn(&thread, "run sh -c env", "i1");
        assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
        let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true})).to_string();
        assert!(
            read.contains("PATH=") && !read.contains("hunter2") && !read.contains("OARLOCK_STORE"),
            "{read}"
        );
    }
    let mut refused =
        place.command(&["host", "--provider", "offline", "--store", &server.url(), "--replica", "c"]);
    let output = refused.env("PGPASSWORD", "wrong").output().expect("it runs");
    assert!(!output.status.success());
}
