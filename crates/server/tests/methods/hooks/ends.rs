//! `Stop`.

use std::fs;

use serde_json::{Value, json};
use testkit::text;

use super::{asked, ended, run, stage, thread};

#[tokio::test]
async fn a_hook_makes_the_model_go_on_once() {
    let hook = "input=$(cat); echo \"$input\" >> stops; case $input in *'\"stop_hook_active\":true'*) ;; \
                *) echo run the tests first >&2; exit 2;; esac";
    let stage =
        stage(json!([{"text": "all done"}, {"text": "tests pass"}]), json!({"Stop": run(hook)})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "build it").await;
    assert_eq!(ended(&mut client).await["status"], "blocked");
    assert_eq!(ended(&mut client).await["status"], "completed");
    client.next_of("turn/completed").await;
    let file = stage.home().join("hooks.json");
    let prompt = format!(
        "<hook_prompt hook_run_id=\\\"stop:0:{}\\\">run the tests first</hook_prompt>",
        file.display()
    );
    let told = asked(&stage);
    assert!(told.contains(&prompt), "{told}");
    let stops = fs::read_to_string(stage.cwd().join("stops")).expect("a file");
    let said: Vec<Value> = stops.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(said.len(), 2);
    assert_eq!(
        (&said[0]["last_assistant_message"], &said[1]["last_assistant_message"]),
        (&json!("all done"), &json!("tests pass"))
    );
    // It shows in the history, and not as something the user said.
    let turns = stage.read(&id).await["turns"].clone();
    let items = turns[0]["items"].as_array().expect("items").clone();
    let kinds: Vec<String> = items.iter().map(|item| text(&item["type"])).collect();
    assert_eq!(kinds, ["userMessage", "agentMessage", "hookPrompt", "agentMessage"]);
    assert_eq!(items[2]["fragments"][0]["text"], "run the tests first");
}

#[tokio::test]
async fn a_hook_that_never_lets_go_is_let_go() {
    let steps: Vec<Value> = (0..21).map(|number| json!({"text": format!("answer {number}")})).collect();
    let stage = stage(json!(steps), json!({"Stop": run("echo more >&2; exit 2")})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    client.start_turn(&id, "work").await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert_eq!(stage.asked().len(), 21);
}

#[tokio::test]
async fn an_interrupt_ends_a_hook_and_waits_for_that() {
    let stage = stage(json!([{"text": "done"}]), json!({"Stop": run("echo $$ > pid; sleep 600")})).await;
    let (_server, mut client) = stage.open().await;
    let id = thread(&stage, &mut client).await;
    let turn_id = client.start_turn(&id, "work").await;
    client.next_of("hook/started").await;
    let pid = loop {
        match fs::read_to_string(stage.cwd().join("pid")).ok().filter(|text| text.ends_with('\n')) {
            Some(pid) => break pid,
            None => tokio::task::yield_now().await,
        }
    };
    client.ask("turn/interrupt", json!({"threadId": id, "turnId": turn_id})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
    let environment = fs::read(format!("/proc/{}/environ", pid.trim())).unwrap_or_default();
    let is_ours = String::from_utf8_lossy(&environment).contains(&format!("CODEX_THREAD_ID={id}"));
    assert!(!is_ours, "the hook runs on");
}
