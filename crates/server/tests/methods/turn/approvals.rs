//! Questions to a client before something runs, and the effect of its answers. Whether a command ran is seen on the disk.

use serde_json::{Value, json};
use testkit::{Stage, TestClient, kinds, until};

const ASKS: &str = "approval_policy = \"untrusted\"\nsandbox_mode = \"danger-full-access\"";
const COMMAND: &str = "item/commandExecution/requestApproval";

fn command(id: &str, cmd: &str) -> Value {
    json!({"name": "exec_command", "callId": id, "arguments": {"cmd": cmd}})
}

fn touching() -> Value {
    json!([{"call": command("call-1", "touch ran")}, {"text": "done"}])
}

/// A turn that waits for an answer; gives its thread and the question.
async fn asked(stage: &Stage, client: &mut TestClient) -> (String, Value) {
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    let question = client.next_of(COMMAND).await;
    (id, question)
}

fn ran(stage: &Stage) -> bool {
    stage.cwd().join("ran").exists()
}

/// The output of the call as the model read it.
fn output(stage: &Stage) -> String {
    let asked = stage.asked();
    let inputs = asked.last().expect("a request")["input"].as_array().expect("input").clone();
    let output = inputs.iter().rfind(|item| item["type"] == "function_call_output").expect("an output");
    output["output"].as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn a_client_sees_what_will_run_says_yes_and_it_runs() {
    let stage = Stage::configured(touching(), ASKS).await;
    let (_server, mut client) = stage.open().await;
    let (id, question) = asked(&stage, &mut client).await;
    let params = &question["params"];
    assert!(params["command"].as_str().expect("a line").ends_with("-lc 'touch ran'"), "{params}");
    assert_eq!(params["cwd"], json!(stage.cwd()));
    assert_eq!(params["availableDecisions"][0], "accept");
    assert_eq!(params["proposedExecpolicyAmendment"], json!(["touch", "ran"]));
    let begun = client.wait_for("item/started", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!((&begun["item"]["id"], &begun["item"]["status"]), (&json!("call-1"), &json!("inProgress")));
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    assert_eq!(read["thread"]["status"]["activeFlags"], json!(["waitingOnApproval"]));
    assert!(!ran(&stage));
    client.answer(&question, json!({"decision": "accept"})).await;
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!((&done["item"]["status"], &done["item"]["exitCode"]), (&json!("completed"), &json!(0)));
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(ran(&stage));
    assert!(output(&stage).contains("Process exited with code 0"));
}

#[tokio::test]
async fn whatever_is_no_yes_runs_nothing_and_the_turn_goes_on() {
    for answer in [
        json!({"decision": "decline"}),
        json!({"decision": "perhaps"}),
        json!({"decision": 1}),
        json!({}),
        json!("accept"),
        json!({"decision": {"acceptWithCommandOverride": {"command": []}}}),
    ] {
        let stage = Stage::configured(touching(), ASKS).await;
        let (_server, mut client) = stage.open().await;
        let (_, question) = asked(&stage, &mut client).await;
        client.answer(&question, answer.clone()).await;
        let done =
            client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
        assert_eq!(done["item"]["status"], "declined", "{answer}");
        // A second answer comes too late.
        client.answer(&question, json!({"decision": "accept"})).await;
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed", "{answer}");
        assert!(!ran(&stage), "{answer}");
        assert!(output(&stage).contains("rejected"), "{}", output(&stage));
    }
}

#[tokio::test]
async fn another_command_runs_instead_and_the_item_shows_it() {
    let stage = Stage::configured(touching(), ASKS).await;
    let (_server, mut client) = stage.open().await;
    let (_, question) = asked(&stage, &mut client).await;
    let instead = json!({"acceptWithCommandOverride": {"command": ["touch", "instead"]}});
    client.answer(&question, json!({"decision": instead})).await;
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!(
        (&done["item"]["status"], &done["item"]["command"]),
        (&json!("completed"), &json!("touch instead"))
    );
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(!ran(&stage) && stage.cwd().join("instead").exists());
}

#[tokio::test]
async fn a_replacement_that_policy_forbids_does_not_run() {
    let stage = Stage::configured(touching(), ASKS).await;
    let rules = stage.home().join("rules");
    std::fs::create_dir_all(&rules).expect("made");
    let rule = "prefix_rule(pattern = [\"touch\", \"instead\"], decision = \"forbidden\")\n";
    std::fs::write(rules.join("default.rules"), rule).expect("written");
    let (_server, mut client) = stage.open().await;
    let (_, question) = asked(&stage, &mut client).await;
    let instead = json!({"acceptWithCommandOverride": {"command": ["touch", "instead"]}});
    client.answer(&question, json!({"decision": instead})).await;
    assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(!ran(&stage) && !stage.cwd().join("instead").exists());
}

#[tokio::test]
async fn an_error_is_a_no_and_a_wrong_id_is_no_answer() {
    let stage = Stage::configured(touching(), ASKS).await;
    let (_server, mut client) = stage.open().await;
    let (_, question) = asked(&stage, &mut client).await;
    let id = &question["id"];
    let accept = json!({"decision": "accept"});
    client.send_line(&json!({"id": id.to_string(), "result": accept}).to_string()).await;
    client.send_line(&json!({"id": 987_654, "result": accept}).to_string()).await;
    client.send_line(&json!({"id": id, "error": {"code": -32000, "message": "no"}}).to_string()).await;
    let done = client.wait_for("item/completed", |params| params["item"]["type"] == "commandExecution").await;
    assert_eq!(done["item"]["status"], "failed");
    client.next_of("turn/completed").await;
    assert!(!ran(&stage));
}

#[tokio::test]
async fn cancel_ends_the_turn_and_so_does_an_interrupt() {
    for cancels in [true, false] {
        let stage = Stage::configured(touching(), ASKS).await;
        let (_server, mut client) = stage.open().await;
        let (id, question) = asked(&stage, &mut client).await;
        if cancels {
            client.answer(&question, json!({"decision": "cancel"})).await;
        } else {
            client.ask("turn/interrupt", json!({"threadId": id, "turnId": ""})).await;
            client.answer(&question, json!({"decision": "accept"})).await;
        }
        assert_eq!(client.next_of("turn/completed").await["turn"]["status"], "interrupted");
        let resolved = client.next_of("serverRequest/resolved").await;
        assert_eq!(resolved["requestId"], question["id"]);
        client.rest().await;
        assert!(!ran(&stage));
        let read = client.ask("thread/read", json!({"threadId": id, "includeTurns": true})).await;
        assert_eq!(kinds(&read["thread"]["turns"][0]), ["userMessage", "commandExecution"]);
        assert_eq!(read["thread"]["turns"][0]["items"][1]["status"], "declined");
    }
}

#[tokio::test]
async fn who_joins_is_asked_too_and_a_stranger_is_not_heard() {
    let stage = Stage::configured(touching(), ASKS).await;
    let server = stage.listen();
    let mut first = server.connect().await;
    let (id, question) = asked(&stage, &mut first).await;
    let mut stranger = server.connect().await;
    stranger.answer(&question, json!({"decision": "accept"})).await;
    stranger.ask("thread/loaded/list", json!({})).await;
    assert!(!ran(&stage));
    drop(first);
    // The question waits for whoever comes back.
    stranger.ask("thread/resume", json!({"threadId": id})).await;
    let again = stranger.next_of(COMMAND).await;
    assert_eq!(again["params"]["itemId"], question["params"]["itemId"]);
    stranger.answer(&again, json!({"decision": "accept"})).await;
    assert_eq!(stranger.next_of("turn/completed").await["turn"]["status"], "completed");
    assert!(ran(&stage));
}

#[tokio::test]
async fn a_yes_for_the_session_holds_for_the_same_command_in_the_same_place_only() {
    let script = json!([
        {"call": command("call-1", "touch ran")},
        {"call": command("call-2", "touch ran")},
        {"call": {"name": "exec_command", "callId": "call-3", "arguments": {"cmd": "touch ran", "workdir": "sub"}}},
        {"text": "done"},
    ]);
    let stage = Stage::configured(script, ASKS).await;
    std::fs::create_dir(stage.cwd().join("sub")).expect("a folder");
    let (_server, mut client) = stage.open().await;
    let (_, question) = asked(&stage, &mut client).await;
    client.answer(&question, json!({"decision": "acceptForSession"})).await;
    let question = client.next_of(COMMAND).await;
    assert_eq!(
        question["params"]["itemId"], "call-3",
        "the second was not asked about, the third is elsewhere"
    );
    client.answer(&question, json!({"decision": "decline"})).await;
    client.next_of("turn/completed").await;
    assert!(ran(&stage) && !stage.cwd().join("sub/ran").exists());
}

#[tokio::test]
async fn an_amendment_is_kept_for_good() {
    let script = json!([
        {"call": command("call-1", "touch ran")}, {"text": "done"},
        {"call": command("call-2", "touch ran twice")}, {"text": "done"},
    ]);
    let stage = Stage::configured(script, ASKS).await;
    let (server, mut client) = stage.open().await;
    let (_, question) = asked(&stage, &mut client).await;
    let amendment = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "ran"]}});
    client.answer(&question, json!({"decision": amendment})).await;
    client.next_of("turn/completed").await;
    server.stop().await;
    let rules = std::fs::read_to_string(stage.home().join("rules/default.rules")).expect("the file");
    assert_eq!(rules, "prefix_rule(pattern=[\"touch\", \"ran\"], decision=\"allow\")\n");
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    assert_eq!(client.turn(&id, "go").await["status"], "completed");
    assert!(stage.cwd().join("twice").exists());
}

/// The process died between the decision and all that follows from it, and the turn is not resumed.
#[tokio::test]
async fn an_amendment_survives_a_kill_right_after_the_decision() {
    let script = json!([{"call": command("call-1", "touch ran")}, {"text": "done"}]);
    let stage = Stage::configured(script, ASKS).await;
    let (server, mut client) = stage.open().await;
    let (id, question) = asked(&stage, &mut client).await;
    let amendment = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", "ran"]}});
    client.answer(&question, json!({"decision": amendment})).await;
    client.next_of("turn/completed").await;
    let read = client.ask("thread/read", json!({"threadId": id})).await;
    server.stop().await;
    let path = std::path::PathBuf::from(read["thread"]["path"].as_str().expect("a path"));
    let text = std::fs::read_to_string(&path).expect("the record");
    let last = text.lines().position(|line| line.contains("\"decided\"")).expect("a decision");
    let kept: String = text.split_inclusive('\n').take(last + 1).collect();
    std::fs::write(&path, kept).expect("cut");
    let rules = stage.home().join("rules/default.rules");
    std::fs::remove_file(&rules).expect("removed");

    for _ in 0..2 {
        let (server, mut client) = stage.open().await;
        client.ask("thread/resume", json!({"threadId": id})).await;
        server.stop().await;
        let saved = std::fs::read_to_string(&rules).unwrap_or_default();
        assert_eq!(saved, "prefix_rule(pattern=[\"touch\", \"ran\"], decision=\"allow\")\n");
    }
    // It was withdrawn by then: from now on the rule is the user's own.
    std::fs::remove_file(&rules).expect("removed");
    let (_server, mut client) = stage.open().await;
    client.ask("thread/resume", json!({"threadId": id})).await;
    assert!(!rules.exists());
}

#[tokio::test]
async fn an_amendment_that_was_not_offered_is_a_yes_for_once() {
    for words in [json!(["touch"]), json!(["bash"]), json!(["touch", "ran", "x"]), json!([])] {
        let script = json!([{"call": command("call-1", "touch ran")}, {"text": "done"}]);
        let stage = Stage::configured(script, ASKS).await;
        let (_server, mut client) = stage.open().await;
        let (_, question) = asked(&stage, &mut client).await;
        let amendment = json!({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}});
        client.answer(&question, json!({"decision": amendment})).await;
        client.next_of("turn/completed").await;
        assert!(ran(&stage), "{words}");
        assert!(!stage.home().join("rules/default.rules").exists(), "{words}");
    }
}

#[tokio::test]
async fn a_patch_is_shown_and_asked_about() {
    let patch = "*** Begin Patch\n*** Add File: ran\n+it did\n*** End Patch";
    for (decision, status) in [("accept", "completed"), ("decline", "declined")] {
        let script = json!([
            {"call": {"name": "exec_command", "callId": "call-1",
                "arguments": {"cmd": format!("apply_patch <<'E'\n{patch}\nE\n")}}},
            {"text": "done"},
        ]);
        let stage = Stage::configured(script, ASKS).await;
        let (_server, mut client) = stage.open().await;
        let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
        client.start_turn(&id, "go").await;
        let question = client.next_of("item/fileChange/requestApproval").await;
        let is_change = |params: &Value| params["item"]["type"] == "fileChange";
        let begun = client.wait_for("item/started", is_change).await;
        assert_eq!(begun["item"]["changes"][0]["diff"], "it did\n");
        client.answer(&question, json!({"decision": decision})).await;
        let done = client.wait_for("item/completed", is_change).await;
        assert_eq!(done["item"]["status"], status);
        client.next_of("turn/completed").await;
        assert_eq!(ran(&stage), decision == "accept");
    }
}

#[tokio::test]
async fn a_command_that_began_before_a_kill_has_an_unknown_outcome_and_is_not_run_again() {
    let script = json!([
        {"call": command("call-1", "echo once >> ran; sleep 600")},
        {"text": "so nobody knows"},
    ]);
    let keys = "approval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"";
    let stage = Stage::configured(script, keys).await;
    let (server, mut client) = stage.open().await;
    let id = client.start_thread(json!({"cwd": stage.cwd()})).await;
    client.start_turn(&id, "go").await;
    client.wait_for("item/started", |params| params["item"]["type"] == "commandExecution").await;
    until("the command runs", || ran(&stage)).await;
    server.kill().await;
    let (_server, mut client) = stage.open().await;
    let resumed = client.ask("thread/resume", json!({"threadId": id})).await;
    assert_eq!(resumed["thread"]["turns"][0]["items"][1]["status"], "failed");
    client.turn(&id, "what happened?").await;
    assert!(output(&stage).contains("not known"), "{}", output(&stage));
    assert_eq!(std::fs::read_to_string(stage.cwd().join("ran")).expect("the trace"), "once\n");
}
