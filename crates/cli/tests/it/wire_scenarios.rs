//! More of the table of wires: hosts, kills, images, schemas, interrupts and plans on every wire, and servers of this
//! machine that are asked what only they know.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model_http::{OfflineReply, OfflineRequest, OfflineResponder, Outcome, Wire};
use serde_json::{Value, json};
use testkit::{VendorServer, call_event, completed_event, text_event};

use crate::host::{HostClient, RunningHost, until};
use crate::providers::{PIXEL, Traveller};
use crate::wires::since_the_prompt;
use crate::wires::{PipedServer, body_of, command, has_output, on_every_wire, place_of, place_with};

on_every_wire! {
    a_task_of_a_host
    a_server_killed_in_mid_turn
    an_image
    a_structured_answer
    an_interrupt
    a_plan
    a_model_that_only_the_server_can_name
    a_window_that_only_the_server_knows
}

fn a_task_of_a_host(wire: Wire) {
    // One that wants its reasoning back, and takes no images.
    let name = if wire == Wire::Chat { "deepseek" } else { "vendor" };
    let server = VendorServer::start_as(wire, name, Arc::new(Traveller("task")));
    let place = place_of(&server, name, "model = \"claude-opus-4-6\"");
    let _host = RunningHost::with_provider(&place, name, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    for (text, id) in [("look around", "i1"), ("and now", "i2")] {
        client.turn(&thread, text, id);
        let ended = client.wait_for("turn/completed");
        assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    }
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 3, "{bodies:?}");
    let next = bodies[1].to_string();
    let returned = match wire {
        Wire::Responses => "sealed-task",
        Wire::Chat => "\"reasoning_content\":\"thought of task\"",
        Wire::Messages => "\"signature\":\"sig-",
    };
    assert!(next.contains(returned), "{next}");
    let tools = bodies[0]["tools"].to_string();
    assert_eq!(tools.contains("view_image"), wire != Wire::Chat, "{tools}");
    // A model in no catalogue has patches on these wires, and is asked to think as the wire does it.
    assert!(wire == Wire::Responses || tools.contains("apply_patch"), "{tools}");
    assert_eq!(bodies[0]["thinking"]["type"] == "adaptive", wire == Wire::Messages);
}

/// Pauses once, and ends when it finds what it had said: at once, or only when it is asked for the second time.
#[derive(Debug)]
struct Pausing {
    is_stuck: AtomicBool,
}

impl OfflineResponder for Pausing {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        if !body_of(request)["input"].to_string().contains("the first half") {
            let paused = json!({"type": "response.paused"}).to_string();
            return OfflineReply::events(vec![text_event("the first half"), paused]);
        }
        let mut reply = OfflineReply::events(vec![text_event("the second half"), completed_event(10, 5)]);
        if self.is_stuck.swap(false, Ordering::Relaxed) {
            reply.outcome = Outcome::Events { events: Vec::new(), stays_open: true };
        }
        reply
    }
}

/// The texts of the last turn, and what is counted for the task.
fn said_and_counted(client: &mut HostClient, thread: &str) -> (Vec<String>, Value) {
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    let items = read["thread"]["turns"][0]["items"].as_array().expect("items").clone();
    let texts = items.iter().filter(|item| item["type"] == "agentMessage");
    let texts = texts.map(|item| item["text"].as_str().unwrap_or_default().to_owned()).collect();
    let counted = client.ask("usage/list", &json!({"threadId": thread, "groupBy": "task"}));
    (texts, counted["data"][0].clone())
}

#[test]
fn a_task_whose_model_pauses_goes_on() {
    let server = VendorServer::start(Wire::Messages, Arc::new(Pausing { is_stuck: AtomicBool::new(false) }));
    let place = place_with(&server, "");
    let _host = RunningHost::with_provider(&place, "vendor", &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "tell me", "i1");
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    assert_eq!(server.bodies().len(), 2);
    let (texts, counted) = said_and_counted(&mut client, &thread);
    assert_eq!(texts, ["the first half", "the second half"]);
    assert_eq!(
        (&counted["requests"], &counted["outputTokens"]),
        (&json!(1), &json!(5)),
        "one request: {counted}"
    );
}

#[test]
fn a_host_that_is_killed_while_a_model_pauses_asks_for_the_whole_answer_again() {
    let server = VendorServer::start(Wire::Messages, Arc::new(Pausing { is_stuck: AtomicBool::new(true) }));
    let place = place_with(&server, "");
    let host = RunningHost::with_provider(&place, "vendor", &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "tell me", "i1");
    until("the model is asked to go on", || (server.bodies().len() == 2).then_some(()));
    host.kill();
    let _host = RunningHost::with_provider(&place, "vendor", &[]);
    let mut client = HostClient::connect(&place);
    client.ask("thread/resume", &json!({"threadId": thread}));
    until("the turn ends", || {
        let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
        (read["thread"]["turns"][0]["status"] == "completed").then_some(())
    });
    let (texts, counted) = said_and_counted(&mut client, &thread);
    assert_eq!(texts.last().map(String::as_str), Some("the second half"), "{texts:?}");
    assert_eq!((&counted["requests"], &counted["outputTokens"]), (&json!(1), &json!(5)), "{counted}");
}

/// Calls a command that counts itself and goes on for long; answers once there is an output.
#[derive(Debug)]
struct Counting;

impl OfflineResponder for Counting {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = body_of(request);
        let items = body["input"].as_array().map_or(&[][..], Vec::as_slice);
        if has_output(items) {
            return OfflineReply::events(vec![text_event("went on"), completed_event(1, 1)]);
        }
        let (name, arguments) = command(&body, "echo once >> count.txt; sleep 300");
        OfflineReply::events(vec![call_event("call_0", name, &arguments), completed_event(1, 1)])
    }
}

fn a_server_killed_in_mid_turn(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Counting));
    let place = place_with(&server, "");
    let count = place.folder().join("count.txt");
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let input = json!([{"type": "text", "text": "count it"}]);
    pipes.ask("turn/start", &json!({"threadId": thread, "input": input}));
    until("the command to run", || fs::read_to_string(&count).ok().filter(|text| !text.is_empty()));
    pipes.child.kill().expect("killed");
    pipes.child.wait().expect("ended");
    drop(pipes);
    let mut pipes = PipedServer::open(&place);
    pipes.ask("thread/resume", &json!({"threadId": thread}));
    let (ended, items) = pipes.turn(&thread, "go on");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    assert_eq!(items.last().expect("an item")["text"], "went on");
    assert_eq!(fs::read_to_string(&count).expect("written"), "once\n", "the call ran once");
}

fn an_image(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Traveller("image")));
    let place = place_with(&server, "");
    let picture = place.file("pixel.png", PIXEL);
    let ran = place.run(&["exec", "--yolo", "what is this", "--image", &picture]).good();
    assert!(ran.out.contains("answer of image"), "{ran:?}");
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 2);
    assert!(bodies.iter().all(|body| body.to_string().contains("iVBORw0KGgo")), "{bodies:?}");
}

/// Answers with this text where a schema was asked for.
#[derive(Debug)]
struct Structured(&'static str);

impl OfflineResponder for Structured {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let has_schema = request.body.text.as_ref().is_some_and(|text| text.format.is_some());
        let said = if has_schema { self.0 } else { "no schema was asked for" };
        OfflineReply::events(vec![text_event(said), completed_event(1, 1)])
    }
}

fn a_structured_answer(wire: Wire) {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        "additionalProperties": false});
    let answered = |answer: &'static str| {
        let server = VendorServer::start(wire, Arc::new(Structured(answer)));
        let place = place_with(&server, "");
        let file = place.file("schema.json", schema.to_string());
        place.run(&["exec", "--yolo", "count", "--output-schema", &file])
    };
    let ran = answered("{\"n\": 7}").good();
    assert!(ran.out.contains("{\"n\": 7}"), "{ran:?}");
    if wire != Wire::Responses {
        // Not every server of these holds its model to a schema.
        let ran = answered("seven").bad();
        assert!(ran.err.contains("the answer does not match the schema"), "{ran:?}");
    }
}

/// Begins an answer and never ends it; the next one is whole.
#[derive(Debug, Default)]
struct Endless(AtomicBool);

impl OfflineResponder for Endless {
    fn respond(&self, _: OfflineRequest<'_>) -> OfflineReply {
        if self.0.swap(true, Ordering::SeqCst) {
            return OfflineReply::events(vec![text_event("the next answer"), completed_event(1, 1)]);
        }
        let item = json!({"type": "message", "id": "m1", "role": "assistant", "content": []});
        let added = json!({"type": "response.output_item.added", "item": item}).to_string();
        let delta = json!({"type": "response.output_text.delta", "delta": "it begins"}).to_string();
        let outcome = Outcome::Events { events: vec![added, delta], stays_open: true };
        OfflineReply { outcome, ..OfflineReply::events(Vec::new()) }
    }
}

fn an_interrupt(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Endless::default()));
    let place = place_with(&server, "");
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let input = json!([{"type": "text", "text": "talk for ever"}]);
    let started = pipes.ask("turn/start", &json!({"threadId": thread, "input": input}));
    pipes.until(|message| message["method"] == "item/agentMessage/delta");
    pipes.ask("turn/interrupt", &json!({"threadId": thread, "turnId": started["turn"]["id"]}));
    let ended = pipes.until(|message| message["method"] == "turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "interrupted", "{ended}");
    let (ended, items) = pipes.turn(&thread, "and now");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    assert_eq!(items.last().expect("an item")["text"], "the next answer");
}

/// Makes a plan, then answers.
#[derive(Debug)]
struct Planner;

impl OfflineResponder for Planner {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let body = body_of(request);
        if has_output(since_the_prompt(&body, "make a plan")) {
            return OfflineReply::events(vec![text_event("planned"), completed_event(1, 1)]);
        }
        let plan = json!({"plan": [{"step": "look", "status": "in_progress"}, {"step": "act", "status": "pending"}]});
        OfflineReply::events(vec![call_event("call_0", "update_plan", &plan), completed_event(1, 1)])
    }
}

fn a_plan(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Planner));
    let place = place_with(&server, "");
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let input = json!([{"type": "text", "text": "make a plan"}]);
    pipes.ask("turn/start", &json!({"threadId": thread, "input": input}));
    let told = pipes.until(|message| message["method"] == "turn/plan/updated");
    let steps = told["params"]["plan"].as_array().expect("steps").iter();
    let steps: Vec<&str> = steps.filter_map(|step| step["step"].as_str()).collect();
    assert_eq!(steps, ["look", "act"]);
    let ended = pipes.until(|message| message["method"] == "turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
}

/// Says which model was asked.
#[derive(Debug)]
pub(crate) struct Named;

impl OfflineResponder for Named {
    fn respond(&self, request: OfflineRequest<'_>) -> OfflineReply {
        let said = format!("hello from {}", request.body.model);
        OfflineReply::events(vec![text_event(&said), completed_event(1, 1)])
    }
}

fn a_model_that_only_the_server_can_name(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Named));
    let place = place_of(&server, "ollama", "");
    let ran = place.run(&["exec", "--yolo", "hello"]).good();
    assert!(ran.out.contains("hello from mock-model"), "{ran:?}");
    let mut pipes = PipedServer::open(&place);
    let started = pipes.ask("thread/start", &json!({"cwd": place.folder()}));
    assert_eq!(started["model"], "mock-model", "{started}");
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    let (ended, items) = pipes.turn(&thread, "hello");
    assert_eq!(ended["turn"]["status"], "completed", "{ended}");
    assert_eq!(items.last().expect("an item")["text"], "hello from mock-model");
    let _host = RunningHost::with_provider(&place, "ollama", &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "hello", "i1");
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    assert!(server.bodies().iter().all(|body| body["model"] == "mock-model"), "{:?}", server.bodies());
}

fn a_window_that_only_the_server_knows(wire: Wire) {
    let server = VendorServer::start(wire, Arc::new(Named));
    let place = place_of(&server, "vllm", "model = \"roomy-model\"");
    let ran = place.run(&["exec", "--yolo", "--json", "hello"]).good();
    assert!(!ran.err.contains("nothing is known of the model"), "{}", ran.err);
    let mut pipes = PipedServer::open(&place);
    let thread = pipes.start_thread(&place, &json!({}));
    let input = json!([{"type": "text", "text": "hello"}]);
    pipes.ask("turn/start", &json!({"threadId": thread, "input": input}));
    let told = pipes.until(|message| message["method"] == "thread/tokenUsage/updated");
    // The window that the server reports, less the part that is kept free.
    let window = told["params"]["tokenUsage"]["modelContextWindow"].as_i64().expect("a window");
    assert!((50_000..=64_000).contains(&window), "{told}");
    pipes.until(|message| message["method"] == "turn/completed");
    // Once for each process.
    assert_eq!(server.lists(), 2);
    // A window that is configured is nobody else's business.
    let place = place_of(&server, "vllm", "model = \"roomy-model\"\nmodel_context_window = 9000");
    place.run(&["exec", "--yolo", "hello"]).good();
    assert_eq!(server.lists(), 2);
}

/// Two turns with thinking and calls, against servers with the rules of each vendor.
#[test]
fn vendors_accept_every_request_of_a_thread() {
    for (name, wire) in [
        ("mistral", Wire::Chat),
        ("deepseek", Wire::Chat),
        ("gemini", Wire::Chat),
        ("groq", Wire::Chat),
        ("openrouter", Wire::Chat),
        ("anthropic", Wire::Messages),
        ("xai", Wire::Responses),
    ] {
        let server = VendorServer::start_as(wire, name, Arc::new(Traveller("vendor")));
        // A model that thinks with a budget, which has rules of its own.
        let place = place_of(&server, name, "model = \"claude-opus-4-5\"");
        place.run(&["exec", "--yolo", "look around"]).good();
        place.run(&["exec", "resume", "--last", "and now", "--yolo"]).good();
        let bodies = server.bodies();
        assert_eq!(bodies.len(), 3, "{name}");
        let sent = bodies[2].to_string();
        match name {
            "gemini" => assert!(sent.contains("sig-of-gemini"), "{sent}"),
            "deepseek" => assert!(sent.contains("thought of vendor"), "{sent}"),
            "anthropic" => assert!(sent.contains("\"type\":\"enabled\""), "{sent}"),
            _ => assert_eq!(sent.contains("thought of vendor"), wire == Wire::Responses, "{sent}"),
        }
        server.assert_accepted();
    }
}
