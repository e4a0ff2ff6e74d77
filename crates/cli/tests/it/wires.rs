//! One table: every scenario of the program on every wire, against servers that are as strict as the vendors.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use model_http::{OfflineModel, OfflineReply, OfflineRequest, OfflineResponder, Wire};
use serde_json::{Value, json};
use testkit::{LinesInTime, VendorServer, call_event, completed_event, text_event};

use crate::support::Place;

/// A test for each wire of each scenario.
macro_rules! on_every_wire {
    ($($scenario:ident)*) => {
        mod responses { $( #[test] fn $scenario() { super::$scenario(super::Wire::Responses); } )* }
        mod chat { $( #[test] fn $scenario() { super::$scenario(super::Wire::Chat); } )* }
        mod messages { $( #[test] fn $scenario() { super::$scenario(super::Wire::Messages); } )* }
    };
}

pub(crate) use on_every_wire;

on_every_wire! {
    demo
    exec_with_tools
    app_server_turn_with_tools
    delegation_through_the_bridge
    sub_agents
    a_broken_stream_runs_no_call_twice
    a_full_window_is_compacted_and_the_turn_goes_on
    a_turn_says_what_it_cost
}

/// The request to a model, as JSON.
pub(crate) fn body_of(request: OfflineRequest<'_>) -> Value {
    serde_json::to_value(request.body).expect("JSON")
}

/// The name and arguments of a call that runs a command.
pub(crate) fn command(body: &Value, script: &str) -> (&'static str, Value) {
    let has = |name: &str| {
        body["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    };
    match has("exec_command") {
        true => ("exec_command", json!({"cmd": script})),
        false => ("shell", json!({"command": ["sh", "-c", script]})),
    }
}

/// The items since the last thing that a person said.
pub(crate) fn since_the_prompt<'a>(body: &'a Value, prompt: &str) -> &'a [Value] {
    let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
    let said = |item: &Value| item["content"].to_string().contains(prompt) && item["role"] == "user";
    let at = items.iter().rposition(said).map_or(0, |at| at + 1);
    &items[at..]
}

pub(crate) fn has_output(items: &[Value]) -> bool {
    items.iter().any(|item| item["type"].as_str().is_some_and(|kind| kind.ends_with("_output")))
}

/// A home whose provider is the server.
pub(crate) fn place_with(server: &VendorServer, keys: &str) -> Place {
    place_of(server, "vendor", &format!("model = \"mock-model\"\n{keys}"))
}

/// A home whose provider of this name is the server.
pub(crate) fn place_of(server: &VendorServer, provider: &str, keys: &str) -> Place {
    let place = Place::new();
    fs::create_dir_all(place.home()).expect("made");
    let config = format!(
        "model_provider = \"{provider}\"\nallow_login_shell = false\n{keys}\n{}",
        server.provider_table(provider)
    );
    fs::write(place.home().join("config.toml"), config).expect("written");
    place
}

fn demo(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(OfflineModel));
    let place = Place::new();
    let ran = place.run(&["demo", "--model-url", &server.base_url(), "--model-wire", wire.name()]).good();
    assert!(ran.out.contains("greet.sh") && ran.out.contains("CHANGES.md"), "{}", ran.out);
    assert!(ran.out.contains("3. What was recorded"), "{}", ran.out);
    assert!(server.bodies().len() > 8, "only {} requests", server.bodies().len());
}

fn exec_with_tools(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(OfflineModel));
    let place = place_with(&server, "");
    fs::write(place.folder().join("a.txt"), "the text of a file").expect("written");
    let ran = place.run(&["exec", "--yolo", "run echo ran-by-the-model then read a.txt"]).good();
    assert!(ran.out.contains("ran-by-the-model") && ran.out.contains("the text of a file"), "{}", ran.out);
    assert_eq!(server.bodies().len(), 3);
}

/// A server over pipes.
pub(crate) struct PipedServer {
    pub(crate) child: Child,
    input: ChildStdin,
    lines: LinesInTime,
    asked: u64,
}

impl PipedServer {
    pub(crate) fn open(place: &Place) -> Self {
        Self::open_with(place, |_| {})
    }

    pub(crate) fn open_with(place: &Place, change: impl FnOnce(&mut Command)) -> Self {
        let mut command = place.command(&["app-server"]);
        change(&mut command);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut pipes = Self { child, input, lines: LinesInTime::new(output), asked: 0 };
        let client = json!({"name": "wires_test", "version": "1"});
        pipes.ask("initialize", &json!({"clientInfo": client, "capabilities": {"experimentalApi": true}}));
        pipes
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        writeln!(self.input, "{}", json!({"id": id, "method": method, "params": params})).expect("written");
        let answer = self.until(|message| message["id"] == id && message.get("method").is_none());
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    pub(crate) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("the server says more");
            let message: Value = serde_json::from_str(&line).expect("JSON");
            if fits(&message) {
                return message;
            }
        }
    }

    /// The params of `turn/completed`, and the items that ended before it.
    pub(crate) fn turn(&mut self, thread: &str, text: &str) -> (Value, Vec<Value>) {
        self.ask("turn/start", &json!({"threadId": thread, "input": [{"type": "text", "text": text}]}));
        let mut items = Vec::new();
        loop {
            let message = self.until(|message| message.get("method").is_some());
            match message["method"].as_str().unwrap_or_default() {
                "item/completed" if message["params"]["threadId"] == thread => {
                    items.push(message["params"]["item"].clone());
                }
                "turn/completed" if message["params"]["threadId"] == thread => {
                    return (message["params"].clone(), items);
                }
                _ => {}
            }
        }
    }

    pub(crate) fn start_thread(&mut self, place: &Place, more: &Value) -> String {
        let mut params =
            json!({"cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access"});
        params.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        self.ask("thread/start", &params)["thread"]["id"].as_str().expect("an id").to_owned()
    }
}

impl Drop for PipedServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn app_server_turn_with_tools(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(OfflineModel));
    let place = place_with(&server, "");
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let (ended, items) = pipes.turn(&thread, "create b.txt with \"made\" then run cat b.txt");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    // A model in no catalogue is offered patches on these wires.
    assert!(wire == Wire::Responses || kinds.contains(&"fileChange"), "{kinds:?}");
    let commands = items.iter().filter(|item| item["type"] == "commandExecution");
    let outputs: String = commands.filter_map(|item| item["aggregatedOutput"].as_str()).collect();
    assert!(outputs.contains("made"), "{items:?}");
    // A second turn goes on with the same history.
    let (ended, _) = pipes.turn(&thread, "say goodbye");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    assert!(server.bodies().last().expect("a request").to_string().contains("b.txt"));
    // Neither the start nor a turn asks a configured provider for its models.
    assert_eq!(server.lists(), 0);
}

fn delegation_through_the_bridge(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(OfflineModel));
    let place = Place::new();
    let arguments = ["responses-bridge", "--upstream", &server.base_url(), "--upstream-wire", wire.name()];
    let mut command = place.command(&[&arguments[..], &["--key-env", "BRIDGE_KEY"]].concat());
    let mut child = command.env("BRIDGE_KEY", "k").stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = LinesInTime::new(child.stdout.take().expect("piped"));
    let line = lines.next().expect("an address");
    let address = line.split("listening on ").nth(1).expect("an address").trim().to_owned();
    let mut pipes = PipedServer::open(&place);
    let delegation = json!({"bridgeUrl": format!("{address}/v1")});
    let thread = pipes.start_thread(&place, &json!({"sdkDelegation": delegation, "model": "mock-model"}));
    let (ended, items) = pipes.turn(&thread, "run echo bridged");
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    let command = items.iter().find(|item| item["type"] == "commandExecution").expect("a command");
    assert!(command["aggregatedOutput"].as_str().is_some_and(|text| text.contains("bridged")), "{command}");
    assert_eq!(server.bodies().len(), 2);
}

/// A parent that starts a child, waits for it and says what it heard.
#[derive(Debug)]
struct ParentModel;

impl OfflineResponder for ParentModel {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = body_of(request);
        let text = body["input"].to_string();
        let outputs = |id: &str| {
            let items = body["input"].as_array().expect("items").iter();
            let mut found = items.filter(|item| item["call_id"] == id && item.get("output").is_some());
            found.next().map(|item| item["output"].as_str().unwrap_or_default().to_owned())
        };
        let done = completed_event(10, 5);
        if !text.contains("ask your child") {
            return OfflineReply::events(vec![text_event("the child was here"), done]);
        }
        let Some(spawned) = outputs("c1") else {
            let call = call_event("c1", "spawn_agent", &json!({"message": "look around"}));
            return OfflineReply::events(vec![call, done]);
        };
        let spawned: Value = serde_json::from_str(&spawned).expect("JSON");
        match outputs("c2") {
            None => {
                let arguments = json!({"targets": [spawned["agent_id"]], "timeout_ms": 60_000});
                OfflineReply::events(vec![call_event("c2", "wait_agent", &arguments), done])
            }
            Some(heard) => OfflineReply::events(vec![text_event(&format!("heard: {heard}")), done]),
        }
    }
}

fn sub_agents(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(ParentModel));
    let place = place_with(&server, "");
    let ran = place.run(&["exec", "--yolo", "ask your child"]).good();
    assert!(ran.out.contains("the child was here"), "{ran:?}");
}

/// Breaks the stream behind the first call; after that, calls until it sees an output.
#[derive(Debug, Default)]
struct Breaking(AtomicUsize);

impl OfflineResponder for Breaking {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = body_of(request);
        let (name, arguments) = command(&body, "echo once >> count.txt");
        let call = call_event("call_0", name, &arguments);
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => OfflineReply::events(vec![call]),
            _ if has_output(since_the_prompt(&body, "count it")) => {
                OfflineReply::events(vec![text_event("counted"), completed_event(1, 1)])
            }
            _ => OfflineReply::events(vec![call, completed_event(1, 1)]),
        }
    }
}

fn a_broken_stream_runs_no_call_twice(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Breaking::default()));
    let place = place_with(&server, "");
    let ran = place.run(&["exec", "--yolo", "count it"]).good();
    assert!(ran.out.contains("counted"), "{ran:?}");
    assert_eq!(fs::read_to_string(place.folder().join("count.txt")).expect("written"), "once\n");
}

/// A provider of the wire that is known by name.
fn known(wire: Wire) -> &'static str {
    match wire {
        Wire::Responses => "xai",
        Wire::Chat => "groq",
        Wire::Messages => "anthropic",
    }
}

/// Refuses what is longer than one question, once.
#[derive(Debug, Default)]
struct SmallWindow(AtomicUsize);

impl OfflineResponder for SmallWindow {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = body_of(request);
        let text = body["input"].to_string();
        if text.contains("a short summary of it all") {
            return OfflineReply::events(vec![text_event("went on after it"), completed_event(5, 5)]);
        }
        if text.contains("second question") && self.0.fetch_add(1, Ordering::SeqCst) == 0 {
            let error = json!({"error": {"message": "prompt is too long: 9 tokens > 8 maximum",
                "type": "invalid_request_error", "code": "context_length_exceeded"}});
            return OfflineReply::refused(400, error.to_string());
        }
        let said =
            if self.0.load(Ordering::SeqCst) > 0 { "a short summary of it all" } else { "first answer" };
        OfflineReply::events(vec![text_event(said), completed_event(5, 5)])
    }
}

fn a_full_window_is_compacted_and_the_turn_goes_on(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(SmallWindow::default()));
    makes_room_and_goes_on(&place_of(&server, known(wire), "model = \"mock-model\""));
    if wire == Wire::Responses {
        let server = VendorServer::start(wire, Arc::new(SmallWindow::default()));
        makes_room_and_goes_on(&place_with(&server, ""));
    }
}

fn makes_room_and_goes_on(place: &Place) {
    let mut pipes = PipedServer::open(place);
    let thread = pipes.start_thread(place, &json!({}));
    pipes.turn(&thread, "first question");
    let (ended, items) = pipes.turn(&thread, "second question");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    assert!(kinds.contains(&"contextCompaction"), "{kinds:?}");
    let last = items.last().expect("an item");
    assert_eq!(last["text"], "went on after it");
}

/// Says something, with or without a count of tokens.
#[derive(Debug)]
struct Counting;

impl OfflineResponder for Counting {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let end = match body_of(request)["input"].to_string().contains("uncounted") {
            true => {
                json!({"type": "response.completed", "response": {"id": "r1", "usage": null}}).to_string()
            }
            false => completed_event(1_000_000, 100_000),
        };
        OfflineReply::events(vec![text_event("said"), end])
    }
}

fn a_turn_says_what_it_cost(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Counting));
    let prices = "[prices.\"mock-\"]\ninput = 2.0\noutput = 10.0\n";
    let place = place_of(&server, known(wire), &format!("model = \"mock-model\"\n{prices}"));
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let (ended, _) = pipes.turn(&thread, "counted");
    assert_eq!(ended["cost"], json!({"amount": 3.0}), "{ended}");
    let thread = pipes.start_thread(&place, &json!({}));
    let (ended, _) = pipes.turn(&thread, "uncounted");
    assert_eq!(ended["cost"]["isEstimated"], true, "{ended}");
    assert!(ended["cost"]["amount"].as_f64().is_some_and(|amount| amount > 0.0), "{ended}");
    if wire == Wire::Responses {
        // As the reference does with a server that nobody knows: nothing is counted.
        let place = place_with(&server, prices);
        let mut pipes = PipedServer::open(&place);
        let thread = pipes.start_thread(&place, &json!({}));
        let (ended, _) = pipes.turn(&thread, "uncounted");
        assert_eq!(ended.get("cost"), None, "{ended}");
    }
    let ran = place.run(&["exec", "--yolo", "counted"]).good();
    assert!(ran.err.contains("cost of this turn: 3.0000"), "{}", ran.err);
    let ran = place.run(&["exec", "--yolo", "--json", "counted"]).good();
    let last = ran.events().into_iter().last().expect("events");
    assert_eq!(last["cost"], json!({"amount": 3.0, "is_estimated": false}), "{last}");
}
