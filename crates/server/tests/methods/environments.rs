//! Environments: `environment/*`, the choice in `thread/start` and `turn/start`, and what a model gets to see of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::client::{Client, turn, turn_plus};
use crate::paced_model::{Asked, PacedModel};
use crate::stage::Stage;

/// What needs a place to run in.
const PLACED: [&str; 3] = ["exec_command", "apply_patch", "view_image"];

/// A stage with a model that answers when told to.
async fn paced() -> (Stage, PacedModel) {
    let stage = Stage::new(json!([])).await;
    let model = PacedModel::new().await;
    stage.configure_port(model.port, "model = \"gpt-5.3-codex\"");
    (stage, model)
}

fn path(stage: &Stage, name: &str) -> String {
    stage.cwd().join(name).to_string_lossy().into_owned()
}

/// A folder of the stage, known as an environment of its own name.
async fn add_folder(stage: &Stage, client: &mut Client, name: &str) -> Value {
    let cwd = path(stage, name);
    fs::create_dir(&cwd).expect("a folder");
    let environment = json!({"type": "local", "cwd": cwd});
    client.ask("environment/add", json!({"environmentId": name, "environment": environment})).await;
    json!({"environmentId": name, "cwd": cwd})
}

/// An environment behind a script that can be opened, closed and taken away.
struct Door {
    prefix: PathBuf,
    draft: PathBuf,
}

impl Door {
    fn new(stage: &Stage) -> Self {
        let door = Self { prefix: stage.cwd().join("prefix"), draft: stage.cwd().join("draft") };
        door.hold("#!/bin/sh\necho still booting >&2\nexit 1\n");
        door
    }

    /// Put in place whole: a script that is open for writing cannot be run.
    fn hold(&self, script: &str) {
        fs::write(&self.draft, script).expect("written");
        fs::set_permissions(&self.draft, fs::Permissions::from_mode(0o755)).expect("executable");
        fs::rename(&self.draft, &self.prefix).expect("moved");
    }

    fn open(&self) {
        self.hold("#!/bin/sh\nINSIDE=the-box exec \"$@\"\n");
    }

    fn remove(&self) {
        fs::remove_file(&self.prefix).expect("removed");
    }

    async fn add(&self, client: &mut Client) {
        let environment = json!({"type": "command", "argv": [self.prefix], "cwd": "/"});
        client.ask("environment/add", json!({"environmentId": "box", "environment": environment})).await;
    }
}

async fn status(client: &mut Client, id: &str) -> (Value, Value) {
    let answer = client.ask("environment/status", json!({"environmentId": id})).await;
    (answer["status"].clone(), answer["error"].clone())
}

/// Asks until the answer is this one. Each answer is that of a probe, or of two seconds of patience with it.
async fn becomes(client: &mut Client, id: &str, expected: (Value, Value)) {
    let mut last = Default::default();
    for _ in 0..30 {
        last = status(client, id).await;
        if last == expected {
            return;
        }
    }
    panic!("{id} is {last:?} and not {expected:?}");
}

async fn attaches(client: &mut Client, id: &str) {
    becomes(client, id, (json!("attached"), Value::Null)).await;
}

/// Whether all the tools that need a place are there, or none of them.
fn has_tools(asked: &Asked) -> bool {
    let tools = asked.tools();
    let there = PLACED.iter().filter(|name| tools.iter().any(|tool| tool == *name)).count();
    assert!(there == 0 || there == PLACED.len(), "{tools:?}");
    there > 0
}

fn open_sandbox(environments: &Value) -> Value {
    json!({"environments": environments, "approvalPolicy": "never", "sandbox": "danger-full-access"})
}

fn shell(cmd: &str) -> Value {
    json!({"cmd": cmd})
}

#[tokio::test]
async fn a_request_keeps_one_environment_for_context_tools_and_writes() {
    let (stage, model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let a = add_folder(&stage, &mut client, "a").await;
    let b = add_folder(&stage, &mut client, "b").await;
    let thread = client.start_thread(open_sandbox(&json!([a]))).await;
    let turn_id = client.start_turn(&thread, "where am I?").await;

    let mut first = model.next().await;
    let told = first.context().concat();
    assert!(told.contains(&format!("<cwd>{}</cwd>", path(&stage, "a"))), "{told}");
    assert!(
        told.contains("<environment id=\"a\" status=\"attached\">") && !told.contains("id=\"b\""),
        "{told}"
    );
    assert!(has_tools(&first));
    first.begin("let me see").await;
    client.next_of("item/agentMessage/delta").await;
    // While the answer comes in, the thread moves on to B.
    let moved = turn_plus(&thread, "work in b from now on", "environments", json!([b]));
    assert_eq!(client.ask("turn/start", moved).await["turn"]["id"], json!(turn_id), "it joins the turn");
    let seen = first.context();
    first.call("c1", "exec_command", &shell("pwd > here.txt")).await;

    let second = model.next().await;
    let here = |name: &str| fs::read_to_string(stage.cwd().join(name).join("here.txt"));
    assert_eq!(here("a").expect("written in A").trim(), path(&stage, "a"));
    assert!(here("b").is_err(), "nothing happens in B for a request that was told of A");
    let told = second.told_after(&seen);
    assert!(told.contains(&format!("<cwd>{}</cwd>", path(&stage, "b"))), "{told}");
    assert!(
        told.contains("<environment id=\"b\" status=\"attached\">") && !told.contains("id=\"a\""),
        "{told}"
    );
    assert!(has_tools(&second));
    let seen = second.context();
    second.call("c2", "exec_command", &shell("pwd > here.txt")).await;
    let third = model.next().await;
    assert_eq!(here("b").expect("written in B").trim(), path(&stage, "b"));
    assert_eq!(third.told_after(&seen), "", "nothing changed, so nothing is told again");
    let seen = third.context();
    third.say("done").await;
    let ended = client.next_of("turn/completed").await;
    assert_eq!((&ended["turn"]["id"], &ended["turn"]["status"]), (&json!(turn_id), &json!("completed")));
    // The choice stays for later turns.
    client.start_turn(&thread, "and now?").await;
    let fourth = model.next().await;
    assert_eq!(fourth.told_after(&seen), "");
    fourth.say("still there").await;
    client.next_of("turn/completed").await;
    assert!(!client.rest().await.contains(&"thread/environment/connected".to_owned()));
}

#[tokio::test]
async fn a_starting_environment_is_told_but_offers_no_tools_until_it_attaches() {
    let (stage, model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let door = Door::new(&stage);
    door.add(&mut client).await;
    let tool = json!({"name": "wait_for_it", "description": "d", "inputSchema": {"type": "object"}});
    let mut params = open_sandbox(&json!([{"environmentId": "box", "cwd": "/"}]));
    params["dynamicTools"] = json!([tool]);
    let thread = client.start_thread(params).await;
    client.start_turn(&thread, "look around").await;

    let first = model.next().await;
    let told = first.context().concat();
    assert!(told.contains("<environment id=\"box\" status=\"starting\">/</environment>"), "{told}");
    assert!(told.contains("<cwd>/</cwd>") && told.contains("<shell>sh</shell>"), "{told}");
    assert!(!has_tools(&first), "{:?}", first.tools());
    assert!(first.tools().contains(&"wait_for_it".to_owned()), "what needs no place is there");
    let reason = json!("the probe ended with code 1: still booting");
    becomes(&mut client, "box", (json!("starting"), reason)).await;
    let seen = first.context();
    first.call("c1", "wait_for_it", &json!({})).await;
    let question = client.next_of("item/tool/call").await;
    door.open();
    let told = client.next_of("thread/environment/connected").await;
    assert_eq!(told, json!({"threadId": thread, "environmentId": "box"}));
    client
        .answer(&question, json!({"contentItems": [{"type": "inputText", "text": "ok"}], "success": true}))
        .await;

    // Within the same turn.
    let second = model.next().await;
    let told = second.told_after(&seen);
    assert!(told.contains("<environment id=\"box\" status=\"attached\">/</environment>"), "{told}");
    assert!(has_tools(&second));
    let seen = second.context();
    second.call("c2", "exec_command", &shell("echo from $INSIDE")).await;
    let third = model.next().await;
    assert!(third.last_output().contains("from the-box"), "{}", third.last_output());

    // The call that cannot be made finds out that the place is gone; the next request knows.
    door.remove();
    third.call("c3", "exec_command", &shell("echo again")).await;
    let fourth = model.next().await;
    assert!(fourth.last_output().contains("`box` cannot be reached"), "{}", fourth.last_output());
    let told = fourth.told_after(&seen);
    assert!(told.contains("<environment id=\"box\" status=\"disconnected\">/</environment>"), "{told}");
    assert!(!has_tools(&fourth));
    fourth.say("it is gone").await;
    let told = client.next_of("thread/environment/disconnected").await;
    assert_eq!((&told["threadId"], &told["environmentId"]), (&json!(thread), &json!("box")));
    assert!(told["reason"].as_str().is_some_and(|reason| reason.ends_with("no such program")), "{told}");
    let (state, reason) = status(&mut client, "box").await;
    assert_eq!((state, &reason), (json!("disconnected"), &told["reason"]));
    client.next_of("turn/completed").await;

    door.open();
    attaches(&mut client, "box").await;
    client.next_of("thread/environment/connected").await;
}

#[tokio::test]
async fn an_environment_describes_itself_once_it_was_reached() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let door = Door::new(&stage);
    door.add(&mut client).await;
    let info = client.ask("environment/info", json!({"environmentId": "box"})).await;
    let spec = json!({"type": "command", "argv": [door.prefix], "cwd": "/"});
    assert_eq!(info, json!({"environmentId": "box", "environment": spec, "shell": null, "cwd": null}));
    door.open();
    attaches(&mut client, "box").await;
    let info = client.ask("environment/info", json!({"environmentId": "box"})).await;
    assert_eq!(info["cwd"], "/");
    assert!(info["shell"]["path"].as_str().is_some_and(|path| path.starts_with('/')), "{info}");
    let here = client.ask("environment/info", json!({"environmentId": "local"})).await;
    assert_eq!((&here["environment"]["type"], &here["cwd"]), (&json!("local"), &here["environment"]["cwd"]));
    assert_eq!(status(&mut client, "local").await.0, "attached");
    assert_eq!(status(&mut client, "elsewhere").await, (json!("unknown"), Value::Null));
}

#[tokio::test]
async fn a_bad_choice_or_description_is_refused_before_anything_starts() {
    let stage = Stage::new(json!([{"text": "hello"}])).await;
    let (_server, mut client) = stage.open().await;
    add_folder(&stage, &mut client, "a").await;
    let thread = client.start_thread(json!({})).await;
    client.rest().await;
    let cwd = stage.cwd();
    let one = |id: &str, cwd: &str| json!([{"environmentId": id, "cwd": cwd}]);
    let twice = json!([{"environmentId": "a", "cwd": cwd}, {"environmentId": "a", "cwd": cwd}]);
    let choices = [
        (
            one("b", "/w"),
            "environments[0].environmentId: no environment has the id `b`; known are `local`, `a`",
        ),
        (twice, "environments[1].environmentId: `a` is chosen twice"),
        (one("local", "w"), "environments[0].cwd must be an absolute path of this machine"),
    ];
    for (chosen, expected) in choices {
        assert_eq!(client.refused("thread/start", json!({"environments": chosen})).await, expected);
        let refused = client.refused("turn/start", turn_plus(&thread, "hi", "environments", chosen)).await;
        assert_eq!(refused, expected);
    }
    let here = json!({"type": "local", "cwd": "/"});
    let descriptions = [
        ("local", here.clone(), "environmentId: `local` is this machine and always there; choose another id"),
        ("x", json!({"type": "command", "argv": [], "cwd": "/"}), "environment.argv must name a program"),
        (
            "x",
            json!({"type": "command", "argv": ["ssh", "a\0b"], "cwd": "/"}),
            "environment.argv[1] must not contain a NUL byte",
        ),
    ];
    for (id, environment, expected) in descriptions {
        let params = json!({"environmentId": id, "environment": environment});
        assert_eq!(client.refused("environment/add", params).await, expected);
    }
    assert!(client.rest().await.is_empty(), "nothing began");
    // What a loaded thread works in is not replaced under its feet.
    let user = client.start_thread(json!({"environments": one("a", &cwd.to_string_lossy())})).await;
    let replacement = json!({"environmentId": "a", "environment": here});
    let refused = client.refused("environment/add", replacement.clone()).await;
    assert!(refused.starts_with("environmentId: `a` is used by a loaded thread"), "{refused}");
    client.ask("thread/unsubscribe", json!({"threadId": user})).await;
    client.ask("environment/add", replacement).await;
    client.turn(&thread, "hi").await;
    assert!(!stage.asked()[0]["input"].to_string().contains("<environments>"), "nothing was chosen");
}

#[tokio::test]
async fn an_empty_choice_takes_the_tools_away_and_another_brings_them_back() {
    let (stage, model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let a = add_folder(&stage, &mut client, "a").await;
    let thread = client.start_thread(json!({"environments": []})).await;
    client.start_turn(&thread, "hi").await;
    let first = model.next().await;
    assert!(first.context().concat().contains("<environments>none"), "{}", first.context().concat());
    assert!(!has_tools(&first));
    let seen = first.context();
    first.say("hello").await;
    client.next_of("turn/completed").await;
    client.ask("turn/start", turn_plus(&thread, "again", "environments", json!([a]))).await;
    let second = model.next().await;
    assert!(second.told_after(&seen).contains("id=\"a\""), "{}", second.told_after(&seen));
    assert!(has_tools(&second));
    second.say("hello").await;
    client.next_of("turn/completed").await;
}

#[tokio::test]
async fn project_instructions_are_those_of_the_environment() {
    let (stage, model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let a = add_folder(&stage, &mut client, "a").await;
    fs::write(stage.cwd().join("AGENTS.md"), "rules of the thread's folder").expect("written");
    fs::write(stage.cwd().join("a").join("AGENTS.md"), "rules of A").expect("written");
    fs::write(stage.home().join("AGENTS.md"), "rules of the user").expect("written");
    let door = Door::new(&stage);
    door.open();
    door.add(&mut client).await;
    attaches(&mut client, "box").await;
    let inside = json!({"environmentId": "box", "cwd": stage.cwd()});
    let cases = [
        (Value::Null, true, false, true),
        (json!([a]), false, true, true),
        // The folder is there too, and is not this machine's.
        (json!([inside]), false, false, true),
        (json!([inside, a]), false, false, true),
    ];
    for (chosen, of_thread, of_a, of_user) in cases {
        let mut params = json!({"cwd": stage.cwd()});
        params["environments"] = chosen.clone();
        let thread = client.start_thread(params).await;
        client.start_turn(&thread, "hi").await;
        let asked = model.next().await;
        let input = asked.body["input"].to_string();
        let has = |text: &str| input.contains(text);
        let found = (has("rules of the thread's folder"), has("rules of A"), has("rules of the user"));
        assert_eq!(found, (of_thread, of_a, of_user), "{chosen}");
        asked.say("hello").await;
        client.next_of("turn/completed").await;
    }
}

#[tokio::test]
async fn a_stored_thread_goes_on_in_its_environments_and_never_elsewhere() {
    let (stage, model) = paced().await;
    let (server, mut client) = stage.open().await;
    let door = Door::new(&stage);
    door.open();
    door.add(&mut client).await;
    attaches(&mut client, "box").await;
    let mut params = open_sandbox(&json!([{"environmentId": "box", "cwd": "/"}]));
    params["cwd"] = json!(stage.cwd());
    let thread = client.start_thread(params).await;
    client.start_turn(&thread, "hi").await;
    let first = model.next().await;
    let seen = first.context();
    assert!(has_tools(&first));
    first.say("hello").await;
    client.next_of("turn/completed").await;
    server.stop().await;

    // This process does not know the box yet: no tools, rather than tools on this machine.
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": thread})).await;
    assert_eq!(resumed["cwd"], json!(stage.cwd()), "its own folder is not that of the box");
    client.ask("turn/start", turn(&thread, "again")).await;
    let second = model.next().await;
    let told = second.told_after(&seen);
    assert!(told.contains("<environment id=\"box\" status=\"disconnected\">/</environment>"), "{told}");
    assert!(!has_tools(&second));
    let seen = second.context();
    second.say("hello").await;
    client.next_of("turn/completed").await;
    door.add(&mut client).await;
    client.next_of("thread/environment/connected").await;
    client.ask("turn/start", turn(&thread, "once more")).await;
    let third = model.next().await;
    assert!(third.told_after(&seen).contains("status=\"attached\""), "{}", third.told_after(&seen));
    assert!(has_tools(&third));
    third.say("hello").await;
    client.next_of("turn/completed").await;
}
