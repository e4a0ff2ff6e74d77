//! The choice of environments in `thread/start` and `turn/start`, and what a model gets to see of it.

use std::fs;

use serde_json::{Value, json};
use testkit::{turn, turn_plus};

use super::{Door, add_folder, attaches, has_tools, open_sandbox, paced, path, shell};

#[tokio::test]
async fn a_request_keeps_one_environment_for_context_tools_and_writes() {
    let (stage, mut model) = paced().await;
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
async fn a_script_that_goes_on_stays_in_the_environment_it_began_in() {
    let (stage, mut model) = paced().await;
    let (_server, mut client) = stage.open().await;
    let a = add_folder(&stage, &mut client, "a").await;
    let b = add_folder(&stage, &mut client, "b").await;
    let mut params = open_sandbox(&json!([a]));
    params["config"] = json!({"features.code_mode": true});
    let thread = client.start_thread(params).await;
    client.start_turn(&thread, "begin").await;
    let code = "// @exec: {\"yield_time_ms\": 60000}\n\
        yield_control(); await tools.exec_command({cmd: 'pwd > here.txt'})";
    model.next().await.call("c1", "exec", &json!({"input": code})).await;
    model.next().await.say("it goes on").await;
    client.next_of("turn/completed").await;

    client.ask("turn/start", turn_plus(&thread, "go on in b", "environments", json!([b]))).await;
    let asked = model.next().await;
    assert!(asked.context().concat().contains("<environment id=\"b\" status=\"attached\">"));
    asked.call("c2", "wait", &json!({"cell_id": "1"})).await;
    let asked = model.next().await;
    let here = |name: &str| fs::read_to_string(stage.cwd().join(name).join("here.txt"));
    assert_eq!(here("a").expect("written in A").trim(), path(&stage, "a"));
    assert!(here("b").is_err(), "the script was not started in B");
    asked.call("c3", "exec_command", &shell("pwd > here.txt")).await;
    model.next().await.say("done").await;
    client.next_of("turn/completed").await;
    assert_eq!(here("b").expect("written in B").trim(), path(&stage, "b"));
}

#[tokio::test]
async fn an_empty_choice_takes_the_tools_away_and_another_brings_them_back() {
    let (stage, mut model) = paced().await;
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
    let (stage, mut model) = paced().await;
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
    let (stage, mut model) = paced().await;
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
