//! Requests of clients that name a placement: carried out there, each connection's apart from those of all others, and over with
//! the connection.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::host::{HostClient, RunningHost, socket, until};
use crate::placement_sites::{runtimes_in, small_runtime};
use crate::placements::{configure, id_of, open_cage, start};
use crate::support::Place;

/// A host with a task in a placement of its own, whose runtime has ended.
struct Placed {
    place: Place,
    _host: RunningHost,
    id: String,
    workspace: PathBuf,
}

impl Placed {
    fn new(backend: &str) -> Self {
        let place = Place::new();
        configure(&place, &open_cage(&place));
        let runtime = small_runtime(&place);
        let host = RunningHost::start(&place, &["--runtime", &runtime]);
        let mut client = HostClient::connect(&place);
        let thread = id_of(&start(&mut client, backend, "never"));
        client.ask("task/suspend", &json!({"threadId": thread}));
        let listed = client.ask("placement/list", &json!({}))["data"][0].take();
        let text = |name: &str| listed[name].as_str().expect("text").to_owned();
        Self { place, _host: host, id: text("id"), workspace: text("workspace").into() }
    }

    fn with_id(&self, mut params: Value) -> Value {
        params["placementId"] = json!(self.id);
        params
    }

    fn ask(&self, client: &mut HostClient, method: &str, params: Value) -> Value {
        client.ask(method, &self.with_id(params))
    }

    fn path(&self, path: &str) -> String {
        self.workspace.join(path).to_string_lossy().into_owned()
    }

    /// Starts a command of this name, and does not wait for its end.
    fn begin(&self, client: &mut HostClient, name: &str, command: &[&str], more: &Value) {
        let mut params = json!({
            "command": command, "processId": name, "streamStdin": true, "streamStdoutStderr": true, "disableTimeout": true,
            "sandboxPolicy": {"type": "dangerFullAccess"},
        });
        params.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        client.write(
            &json!({"id": format!("exec {name}"), "method": "command/exec", "params": self.with_id(params)}),
        );
    }
}

/// Reads the output of a command until it contains this text.
fn said(client: &mut HostClient, name: &str, wanted: &str) {
    let mut text = String::new();
    while !text.contains(wanted) {
        let delta = client.wait_for("command/exec/outputDelta")["params"].take();
        assert_eq!(delta["processId"], name, "{delta}");
        let piece = BASE64.decode(delta["deltaBase64"].as_str().expect("text")).expect("base64");
        text.push_str(&String::from_utf8_lossy(&piece));
    }
}

fn ended(client: &mut HostClient, name: &str) -> Value {
    let id = json!(format!("exec {name}"));
    if let Some(at) = client.heard.iter().position(|message| message["id"] == id) {
        return client.heard.remove(at).expect("it is there");
    }
    loop {
        let message = client.read();
        if message["id"] == id {
            return message;
        }
        client.heard.push_back(message);
    }
}

fn runs(word: &str) -> bool {
    let has_word = |process: &Path| {
        let line = fs::read_to_string(process.join("cmdline")).unwrap_or_default();
        line.split('\0').any(|found| found == word) && line.starts_with("sleep")
    };
    fs::read_dir("/proc").expect("processes").flatten().any(|entry| has_word(&entry.path()))
}

fn commands_of_two_clients(backend: &str) {
    let placed = Placed::new(backend);
    let mut one = HostClient::connect(&placed.place);
    let mut other = HostClient::connect(&placed.place);
    let answer = placed.ask(&mut one, "command/exec", json!({"command": ["pwd"]}));
    assert_eq!(answer["stdout"], format!("{}\n", placed.workspace.display()), "{answer}");

    // The same name twice.
    let write = |text: &str| json!({"processId": "p", "deltaBase64": BASE64.encode(text)});
    for (client, text) in [(&mut one, "one\n"), (&mut other, "other\n")] {
        placed.begin(client, "p", &["cat"], &json!({}));
        placed.ask(client, "command/exec/write", write(text));
    }
    said(&mut other, "p", "other\n");
    said(&mut one, "p", "one\n");
    placed.ask(&mut one, "command/exec/terminate", json!({"processId": "p"}));
    assert!(ended(&mut one, "p")["result"].is_object());
    // That was not the other's.
    placed.ask(&mut other, "command/exec/write", json!({"processId": "p", "closeStdin": true}));
    assert_eq!(ended(&mut other, "p")["result"]["exitCode"], 0);

    let size = json!({"rows": 10, "cols": 20});
    let script = "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.1; done";
    placed.begin(&mut one, "t", &["sh", "-c", script], &json!({"tty": true, "size": size}));
    said(&mut one, "t", "10 20");
    let size = json!({"rows": 11, "cols": 22});
    placed.ask(&mut one, "command/exec/resize", json!({"processId": "t", "size": size}));
    said(&mut one, "t", "11 22");
    ended(&mut one, "t");

    // With its client, everything ends that it has begun there, and nothing of anybody else.
    let word = if backend == "cage" { "6421" } else { "6422" };
    placed.begin(&mut one, "s", &["sleep", word], &json!({}));
    placed.begin(&mut other, "c", &["cat"], &json!({}));
    until("the command", || runs(word).then_some(()));
    drop(one);
    until("the end of the command", || (!runs(word)).then_some(()));
    placed.ask(&mut other, "command/exec/write", json!({"processId": "c", "closeStdin": true}));
    assert_eq!(ended(&mut other, "c")["result"]["exitCode"], 0);
    drop(other);
    until("no runtime is left", || runtimes_in(&placed.place.root()).is_empty().then_some(()));
}

fn files_and_searches(backend: &str) {
    let placed = Placed::new(backend);
    let mut client = HostClient::connect(&placed.place);
    let mut other = HostClient::connect(&placed.place);
    let facts = placed.ask(&mut client, "fs/getMetadata", json!({"path": placed.path("job.sh")}));
    assert_eq!(facts["isFile"], true, "{facts}");
    let watch = placed.ask(&mut client, "fs/watch", json!({"path": placed.path("copy.sh")}));
    let from_to = json!({"sourcePath": placed.path("job.sh"), "destinationPath": placed.path("copy.sh")});
    placed.ask(&mut other, "fs/copy", from_to);
    let changed = client.wait_for("fs/changed");
    assert_eq!(
        (&changed["params"]["watchId"], &changed["params"]["changedPaths"]),
        (&watch["watchId"], &json!([placed.path("copy.sh")]))
    );
    // An id of another connection says nothing here.
    placed.ask(&mut other, "fs/unwatch", json!({"watchId": watch["watchId"]}));
    placed.ask(&mut other, "fs/remove", json!({"path": placed.path("copy.sh")}));
    client.wait_for("fs/changed");
    placed.ask(&mut client, "fs/unwatch", json!({"watchId": watch["watchId"]}));
    assert!(!placed.workspace.join("copy.sh").exists());

    let roots = json!([placed.workspace]);
    let found = placed.ask(&mut client, "fuzzyFileSearch", json!({"query": "slow", "roots": roots}));
    assert_eq!(found["files"][0]["path"], "slow.sh", "{found}");
    for client in [&mut client, &mut other] {
        placed.ask(client, "fuzzyFileSearch/sessionStart", json!({"sessionId": "s", "roots": roots}));
    }
    placed.ask(&mut client, "fuzzyFileSearch/sessionUpdate", json!({"sessionId": "s", "query": "job"}));
    // The first is about the empty query that a session begins with.
    let updated = loop {
        let updated = client.wait_for("fuzzyFileSearch/sessionUpdated")["params"].take();
        if updated["query"] == "job" && updated["files"] != json!([]) {
            break updated;
        }
    };
    assert_eq!((&updated["sessionId"], &updated["files"][0]["path"]), (&json!("s"), &json!("job.sh")));
    client.wait_for("fuzzyFileSearch/sessionCompleted");
    placed.ask(&mut client, "fuzzyFileSearch/sessionStop", json!({"sessionId": "s"}));
    assert!(!other.log.iter().any(|message| message["method"] == "fuzzyFileSearch/sessionUpdated"));

    let skill = placed.workspace.join(".codex/skills/tidy");
    fs::create_dir_all(&skill).expect("made");
    fs::write(skill.join("SKILL.md"), "---\nname: tidy\ndescription: tidies up\n---\n").expect("written");
    let listed = placed.ask(&mut client, "skills/list", json!({"cwds": [placed.workspace]}));
    assert!(listed["data"][0]["skills"].to_string().contains("tidies up"), "{listed}");
    let refused = client.try_ask("gitDiffToRemote", &placed.with_id(json!({"cwd": placed.workspace})));
    let message = refused.expect_err("no repository")["message"].to_string();
    assert!(message.contains(&placed.path("").trim_end_matches('/').to_owned()), "{message}");

    // A suspended placement holds nothing of a client; the next use wakes it.
    placed.begin(&mut client, "c", &["cat"], &json!({}));
    placed.ask(&mut client, "command/exec/write", json!({"processId": "c", "deltaBase64": "eA=="}));
    client.ask("placement/suspend", &json!({"placementId": placed.id}));
    assert!(ended(&mut client, "c")["error"]["message"].as_str().is_some_and(|text| text.contains("ended")));
    placed.ask(&mut client, "fs/getMetadata", json!({"path": placed.path("job.sh")}));
}

#[test]
fn commands_in_a_placement_of_a_command() {
    commands_of_two_clients("cage");
}

#[test]
fn commands_in_a_placement_on_this_machine() {
    commands_of_two_clients("local");
}

#[test]
fn files_and_searches_in_a_placement_of_a_command() {
    files_and_searches("cage");
}

#[test]
fn files_and_searches_in_a_placement_on_this_machine() {
    files_and_searches("local");
}

#[test]
fn a_placement_is_named_by_those_who_may() {
    let placed = Placed::new("cage");
    let mut client = HostClient::connect(&placed.place);
    let of_cage =
        |policy: &str| placed.with_id(json!({"command": ["true"], "sandboxPolicy": {"type": policy}}));
    let refused = client.try_ask("command/exec", &of_cage("readOnly")).expect_err("not enforced there");
    assert_eq!(refused["data"]["code"], "sandboxUnavailable", "{refused}");
    let elsewhere = json!({"command": ["true"], "placementId": "p-none"});
    let refused = client.try_ask("command/exec", &elsewhere).expect_err("no such placement");
    assert!(refused["message"].to_string().contains("there is no placement p-none"), "{refused}");
    let mut stock = HostClient::stock_at(&socket(&placed.place), false);
    let refused =
        stock.try_ask("fs/getMetadata", &placed.with_id(json!({"path": "/"}))).expect_err("experimental");
    assert!(refused["message"].to_string().contains("placementId"), "{refused}");
}
