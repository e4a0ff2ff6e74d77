//! The history as requests send it: every call has an output, every output a call, for each kind of item.

use oarlock_engine::{History, is_user_turn};
use protocol::ResponseItem;
use serde_json::{Value, json};

fn items(values: &[Value]) -> Vec<ResponseItem> {
    values.iter().map(|value| serde_json::from_value(value.clone()).expect("an item")).collect()
}

/// The items as the history sends them.
#[track_caller]
fn check(given: &[Value], sent: &[Value]) {
    let prompt = History::new(items(given)).prompt();
    let prompt: Vec<ResponseItem> = prompt.iter().map(|item| (**item).clone()).collect();
    assert_eq!(prompt, items(sent));
}

fn function_output(id: &str, output: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": output })
}

fn custom(id: &str) -> Value {
    json!({ "type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": "x" })
}

fn shell(id: &str) -> Value {
    let action = json!({ "type": "exec", "command": ["ls"], "timeout_ms": null, "working_directory": null,
        "env": null, "user": null });
    json!({ "type": "local_shell_call", "call_id": id, "status": "completed", "action": action })
}

fn search(id: &str) -> Value {
    json!({ "type": "tool_search_call", "call_id": id, "execution": "client", "arguments": {} })
}

#[test]
fn a_call_without_an_output_gets_one_of_its_own_kind() {
    let custom_output = json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "aborted" });
    check(&[custom("c")], &[custom("c"), custom_output]);
    check(&[shell("s")], &[shell("s"), function_output("s", "aborted")]);
    let search_output = json!({ "type": "tool_search_output", "call_id": "t", "status": "completed",
        "execution": "client", "tools": [] });
    check(&[search("t")], &[search("t"), search_output]);
}

#[test]
fn a_call_with_an_output_is_left_alone() {
    let custom_output = json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "ok" });
    check(&[custom("c"), custom_output.clone()], &[custom("c"), custom_output]);
    check(&[shell("s"), function_output("s", "ok")], &[shell("s"), function_output("s", "ok")]);
    let found = json!({ "type": "tool_search_output", "call_id": "t", "status": "completed",
        "execution": "client", "tools": [{ "name": "x" }] });
    check(&[search("t"), found.clone()], &[search("t"), found]);
}

#[test]
fn an_output_without_a_call_before_it_is_left_out() {
    let custom_output = json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "ok" });
    let found = json!({ "type": "tool_search_output", "call_id": "t", "status": "completed",
        "execution": "client", "tools": [] });
    check(&[custom_output, found, function_output("f", "ok")], &[]);
    // The output came before its call, which then has none.
    let (late, missing) = (function_output("s", "early"), shell("s"));
    check(&[late, missing.clone()], &[missing]);
}

#[test]
fn fields_only_for_the_record_are_not_sent() {
    let ghost = json!({ "type": "ghost_snapshot", "ghost_commit": { "id": "a", "parent": null,
        "preexisting_untracked_files": [], "preexisting_untracked_dirs": [] } });
    check(&[ghost], &[]);
    let user = |id: Option<&str>| {
        let mut message = json!({ "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "hi" }] });
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        message
    };
    check(&[user(Some("i1"))], &[user(None)]);
}

#[test]
fn provider_ids_are_removed_and_user_message_ids_kept() {
    let with_id = |mut item: Value| {
        item["id"] = json!("p1");
        item
    };
    let plain = [
        custom("c"),
        shell("s"),
        search("t"),
        json!({ "type": "reasoning", "summary": [] }),
        json!({ "type": "web_search_call", "status": "completed" }),
        json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "f" }),
        json!({ "type": "message", "role": "assistant", "content": [] }),
    ];
    for item in plain {
        let kept = History::new(items(&[with_id(item.clone())]));
        let kept = serde_json::to_value(&**kept.items().first().expect("kept")).expect("serialises");
        assert!(kept.get("id").is_none_or(Value::is_null), "{item}");
    }
    let said = json!({ "type": "message", "role": "user", "id": "i1", "content": [] });
    let kept = History::new(items(&[said]));
    assert!(matches!(&**kept.items().first().expect("kept"), ResponseItem::Message { id: Some(_), .. }));
}

#[test]
fn a_message_with_the_words_of_a_fragment_is_a_turn_only_when_a_person_said_it() {
    let message = |role: &str, id: Value| {
        let content = json!([{ "type": "input_text", "text": "<turn_aborted>\nx\n</turn_aborted>" }]);
        items(&[json!({ "type": "message", "role": role, "id": id, "content": content })]).remove(0)
    };
    assert!(is_user_turn(&message("user", json!("i1"))));
    assert!(!is_user_turn(&message("user", Value::Null)));
    assert!(!is_user_turn(&message("developer", json!("i1"))));
    assert!(!is_user_turn(&items(&[function_output("f", "x")]).remove(0)));
}
