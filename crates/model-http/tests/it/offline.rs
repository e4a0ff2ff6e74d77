//! The offline model step by step, with tools that answer what the test says.

use std::sync::Arc;

use model::protocol::ResponseItem;
use model::{FailureClass, ModelTransport, OutputFormat, PreparedRequest, Purpose, StreamEvent, TextOptions};
use oarlock_model_http::{OfflineModel, OfflineRequest, OfflineResponder, Outcome};
use serde_json::{Value, json};

use crate::support::*;

fn function(name: &str, properties: Value) -> Value {
    json!({ "type": "function", "name": name, "parameters": { "type": "object", "properties": properties } })
}

fn tools(names: &[&str]) -> Vec<Value> {
    let tool = |name: &&str| match *name {
        "apply_patch" => json!({ "type": "custom", "name": "apply_patch" }),
        "apply_patch()" => function("apply_patch", json!({ "input": {} })),
        "list_dir" => function("list_dir", json!({ "dir_path": {} })),
        "read_file()" => function("read_file", json!({ "file_path": {} })),
        "read_file" => function("read_file", json!({ "path": {} })),
        "grep_files" => function("grep_files", json!({ "pattern": {}, "path": {} })),
        name => function(name, json!({})),
    };
    names.iter().map(tool).collect()
}

/// The model's answer in one response: a call as `name input`, or a message.
enum Said {
    Call(String, Value),
    Message(String),
}

async fn ask(request: PreparedRequest) -> Said {
    let found = events(&OfflineModel, request).await;
    assert!(matches!(found.last(), Some(Ok(StreamEvent::Completed { .. }))), "{found:?}");
    let items = Vec::from_iter(found.iter().filter_map(|event| match event {
        Ok(StreamEvent::ItemDone(item)) => Some(item.as_ref()),
        _ => None,
    }));
    let [item] = items.as_slice() else { panic!("one item per response: {items:?}") };
    let value = serde_json::to_value(item).unwrap();
    match item {
        ResponseItem::FunctionCall { name, arguments, .. } => {
            Said::Call(format!("{name} {arguments}"), value)
        }
        ResponseItem::CustomToolCall { name, input, .. } => Said::Call(format!("{name} {input}"), value),
        ResponseItem::Message { .. } => {
            Said::Message(value["content"][0]["text"].as_str().unwrap().to_owned())
        }
        other => panic!("{other:?}"),
    }
}

/// Plays the calls with their answers and returns the final message.
async fn play(prompt: &str, offered: &[&str], steps: &[(&str, &str)]) -> String {
    let environment = "<environment_context>\n  <cwd>/repo</cwd>\n</environment_context>";
    let mut input = vec![user_message(environment), user_message(prompt)];
    for (call, answer) in steps {
        let Said::Call(found, item) = ask(prepared(input.clone(), tools(offered))).await else {
            panic!("expected the call {call}");
        };
        assert_eq!(found, *call);
        let kind = format!("{}_output", item["type"].as_str().unwrap());
        input.push(item.clone());
        input.push(json!({ "type": kind, "call_id": item["call_id"], "output": answer }));
    }
    match ask(prepared(input, tools(offered))).await {
        Said::Message(text) => text,
        Said::Call(call, _) => panic!("unexpected call {call}"),
    }
}

async fn check(prompt: &str, offered: &[&str], steps: &[(&str, &str)], expected: &str) {
    assert_eq!(play(prompt, offered, steps).await, expected, "{prompt}");
}

const USUAL: &[&str] = &["exec_command", "write_stdin", "update_plan", "apply_patch"];

#[tokio::test]
async fn says_who_it_is() {
    check("say hello there", USUAL, &[], "Offline model: hello there").await;
    check("Please reply with \"one\\ntwo\"", USUAL, &[], "Offline model: one\ntwo").await;
    for unknown in
        ["Hello!", "What is the meaning of life?", "run the tests", "```\nrm -rf x\n```", "", "readme please"]
    {
        let text = play(unknown, USUAL, &[]).await;
        assert!(text.starts_with("Offline model: I am the small built-in model"), "{unknown}: {text}");
        assert!(text.contains("- list files\n"));
    }
}

#[tokio::test]
async fn lists_files() {
    let expected = "Offline model: 1 of 1 step done; this is what the tools answered.\n\n\
                    1. list the files in `.`\n\n    a.txt\n    src";
    let answer = "Command: x\nProcess exited with code 0\nOutput:\na.txt\nsrc\n";
    check("list files", USUAL, &[(r#"exec_command {"cmd":"ls -a ."}"#, answer)], expected).await;
    check(
        "List the files.",
        &["shell"],
        &[(r#"shell {"command":["bash","-lc","ls -a ."]}"#, answer)],
        expected,
    )
    .await;
    check("ls", &["shell_command"], &[(r#"shell_command {"command":"ls -a ."}"#, answer)], expected).await;
    check(
        "list files",
        &["list_dir", "shell"],
        &[(r#"list_dir {"dir_path":"/repo"}"#, "a.txt\nsrc")],
        expected,
    )
    .await;
    let text = play(
        "show me the files in src/deep",
        &["list_dir"],
        &[(r#"list_dir {"dir_path":"/repo/src/deep"}"#, "")],
    );
    assert!(text.await.ends_with("    (no output)"));
}

#[tokio::test]
async fn reads_a_file() {
    for prompt in
        ["read notes.txt", "Read the file `notes.txt`.", "cat notes.txt", "please show me notes.txt"]
    {
        let text =
            play(prompt, USUAL, &[(r#"exec_command {"cmd":"cat notes.txt"}"#, "Output:\nhello\n")]).await;
        assert!(text.ends_with("1. read `notes.txt`\n\n    hello"), "{text}");
    }
    let call = (r#"read_file {"path":"a b.txt"}"#, "1 x");
    assert!(play("read \"a b.txt\"", &["read_file", "shell"], &[call]).await.ends_with("    x"));
    let call = (r#"exec_command {"cmd":"cat 'it'\\''s.txt'"}"#, "x");
    play("read \"it's.txt\"", USUAL, &[call]).await;
}

#[tokio::test]
async fn searches_text() {
    let call =
        (r#"exec_command {"cmd":"grep -rnF --exclude-dir=.git -e TODO src"}"#, "Output:\nsrc/a.rs:1:TODO\n");
    assert!(play("search for TODO in src", USUAL, &[call]).await.ends_with("    src/a.rs:1:TODO"));
    let call = (r#"exec_command {"cmd":"grep -rnF --exclude-dir=.git -e 'a in b' ."}"#, "");
    play("search for \"a in b\"", USUAL, &[call]).await;
    play("grep for x", &["grep_files"], &[(r#"grep_files {"pattern":"x"}"#, "")]).await;
    play("find `x y` in lib", &["grep_files"], &[(r#"grep_files {"pattern":"x y","path":"lib"}"#, "")]).await;
}

#[tokio::test]
async fn runs_a_command() {
    let answer = "Process exited with code 3\nOutput:\nboom\n";
    let expected = "1. run `make test` (exit code 3)\n\n    boom";
    for prompt in [
        "run make test",
        "Execute: make test",
        "run the command `make test` please",
        "`make test`",
        "run:\n```\nmake test\n```",
    ] {
        let text = play(prompt, USUAL, &[(r#"exec_command {"cmd":"make test"}"#, answer)]).await;
        assert!(text.ends_with(expected), "{prompt}: {text}");
    }
    let json = r#"{"output":"boom\n","metadata":{"exit_code":3,"duration_seconds":0.1}}"#;
    let call = (r#"shell {"command":["bash","-lc","make test"]}"#, json);
    assert!(play("run make test", &["shell"], &[call]).await.ends_with(expected));
}

#[tokio::test]
async fn waits_for_a_long_command() {
    let running = "Process running with session ID 77\nOutput:\n";
    let start = (r#"exec_command {"cmd":"slow"}"#, "Process running with session ID 77\nOutput:\none\n");
    let poll = r#"write_stdin {"session_id":77,"chars":""}"#;
    let end = (poll, "Process exited with code 0\nOutput:\ntwo\n");
    let text = play("run slow", USUAL, &[start, (poll, running), end]).await;
    assert!(text.ends_with("1. run `slow` (exit code 0)\n\n    one\n    two"), "{text}");
    let steps = Vec::from_iter(std::iter::once(start).chain([(poll, running); 5]));
    assert!(play("run slow", USUAL, &steps).await.contains("run `slow` (still running as session 77)"));
    assert!(play("run slow", &["exec_command"], &[start]).await.contains("(still running as session 77)"));
}

#[tokio::test]
async fn creates_a_file() {
    let patch = "*** Begin Patch\n*** Add File: notes.txt\n+hello\n+you\n*** End Patch\n";
    let done = "Success. Updated the following files:\nA notes.txt";
    let call = format!("apply_patch {patch}");
    for prompt in [
        "create notes.txt with \"hello\\nyou\"",
        "Create a file named notes.txt containing the text:\n```\nhello\nyou\n```",
        "create notes.txt with hello\nyou",
        "write \"hello\\nyou\" to notes.txt",
    ] {
        let text = play(prompt, USUAL, &[(&call, done)]).await;
        assert!(
            text.ends_with("    Success. Updated the following files:\n    A notes.txt"),
            "{prompt}: {text}"
        );
    }
    let call = format!("apply_patch {}", json!({ "input": patch }));
    play("create notes.txt with \"hello\\nyou\"", &["apply_patch()"], &[(&call, done)]).await;
    let call = r#"shell_command {"command":"mkdir -p a && printf '%s\\n' 'it'\\''s' > a/b.txt"}"#;
    play("create a/b.txt with it's", &["shell_command"], &[(call, "")]).await;
    let deep = "apply_patch *** Begin Patch\n*** Add File: a.py\n+if x:\n+\n+    y\n*** End Patch\n";
    play("create a.py with if x:\n\n    y", USUAL, &[(deep, "")]).await;
    let empty = "apply_patch *** Begin Patch\n*** Add File: empty.txt\n+\n*** End Patch\n";
    play("create empty.txt.", USUAL, &[(empty, "")]).await;
}

#[tokio::test]
async fn changes_a_file() {
    let read = (r#"exec_command {"cmd":"cat a.rs"}"#, "Output:\nlet x = 1;\nlet y = 2;\nx + x\n");
    let patch = "apply_patch *** Begin Patch\n*** Update File: a.rs\n@@\n-let x = 1;\n+let z = 1;\n@@\n-x + x\n+z + z\n*** End Patch\n";
    for prompt in ["replace x with z in a.rs", "change `x` to `z` in the file a.rs."] {
        let text = play(prompt, USUAL, &[read, (patch, "Success.")]).await;
        assert!(text.ends_with("1. replace `x` with `z` in `a.rs`\n\n    Success."), "{text}");
    }
    let text = play("replace nope with z in a.rs", USUAL, &[read]).await;
    assert!(text.ends_with("0 of 1 step done; this is what the tools answered.\n\n1. I did not find `nope` in what I was shown of `a.rs`."), "{text}");
    let numbered = (r#"read_file {"path":"a.rs"}"#, "L1: let x = 1;\nL2: let y = 2;\nL3: x + x");
    play("replace x with z in a.rs", &["read_file", "apply_patch"], &[numbered, (patch, "")]).await;
    let sed = r#"exec_command {"cmd":"sed -i 's/a\\.b\\/c/x\\&y/g' f.txt"}"#;
    play("replace a.b/c with x&y in f.txt", &["exec_command"], &[(sed, "")]).await;
}

#[tokio::test]
async fn keeps_a_plan() {
    let call = r#"update_plan {"plan":[{"step":"look","status":"in_progress"},{"step":"read a.txt","status":"pending"},{"step":"run it","status":"pending"}]}"#;
    for prompt in ["plan: look; read a.txt; run it", "Make a plan: look, read a.txt, run it."] {
        let text = play(prompt, USUAL, &[(call, "Plan updated")]).await;
        assert!(text.ends_with("1. plan 3 steps\n\n    Plan updated"), "{text}");
    }
}

#[tokio::test]
async fn finishes_the_plan_it_made() {
    let plan = |first: &str, second: &str| {
        format!(
            r#"update_plan {{"plan":[{{"step":"a","status":"{first}"}},{{"step":"b","status":"{second}"}}]}}"#
        )
    };
    let steps =
        [(plan("in_progress", "pending"), "Plan updated"), (plan("completed", "completed"), "Plan updated")];
    let steps = steps.each_ref().map(|(call, answer)| (call.as_str(), *answer));
    let text = play("plan: a; b\nFinish the plan.", USUAL, &steps).await;
    assert!(text.ends_with("2. finish the plan\n\n    Plan updated"), "{text}");
    let text = play("finish the plan", USUAL, &[]).await;
    assert!(text.ends_with("1. I cannot finish a plan: there is none."), "{text}");
}

#[tokio::test]
async fn the_built_in_reading_tools_are_used_by_their_schemas() {
    let offered = &["exec_command", "apply_patch", "list_dir", "read_file()", "grep_files"];
    let listed = (r#"list_dir {"dir_path":"/repo/src"}"#, "Absolute path: /repo/src\na.rs\nsub/");
    let read = (r#"read_file {"file_path":"/repo/src/a.rs"}"#, "L1: let x = 1;\nL2: x + 1");
    let searched = (r#"grep_files {"pattern":"x \\+ 1\\.","path":"src"}"#, "/repo/src/a.rs");
    let patch = "apply_patch *** Begin Patch\n*** Update File: src/a.rs\n@@\n-let x = 1;\n+let x = 2;\n*** End Patch\n";
    let prompt = "list files in src\nread src/a.rs\nsearch for \"x + 1.\" in src\n\
                  replace \"= 1\" by \"= 2\" in src/a.rs\nsum up";
    let steps = [listed, read, searched, read, (patch, "Exit code: 0\nOutput:\nSuccess.\n")];
    let expected = "Offline model: 4 of 4 steps done.\n\n\
                    1. list the files in `src`: a.rs, sub/\n\
                    2. read `src/a.rs`: let x = 1;, x + 1\n\
                    3. search for `x + 1.`: src/a.rs\n\
                    4. replace `= 1` with `= 2` in `src/a.rs`: Success.";
    check(prompt, offered, &steps, expected).await;
}

#[tokio::test]
async fn looks_at_a_picture() {
    let call = (r#"view_image {"path":"shots/one.PNG"}"#, "(an image)");
    for prompt in ["look at shots/one.PNG", "Show me the picture shots/one.PNG.", "view `shots/one.PNG`"] {
        let text = play(prompt, &["view_image", "exec_command"], &[call]).await;
        assert!(text.ends_with("1. look at `shots/one.PNG`\n\n    (an image)"), "{prompt}: {text}");
    }
    let text = play("look at a.png", USUAL, &[]).await;
    assert!(
        text.ends_with("1. I cannot look at a picture: this request does not offer view_image."),
        "{text}"
    );
}

#[tokio::test]
async fn what_a_shell_could_not_do_is_not_done() {
    let failed = "Process exited with code 1\nOutput:\nbash: b.txt: Read-only file system\n";
    let call = r#"exec_command {"cmd":"printf '%s\\n' 'x' > b.txt"}"#;
    let text = play("create b.txt with x", &["exec_command"], &[(call, failed)]).await;
    assert!(text.starts_with("Offline model: 0 of 1 step done"), "{text}");
    assert!(text.contains("1. create `b.txt` (failed with exit code 1)"), "{text}");
    let call = r#"exec_command {"cmd":"grep -rnF --exclude-dir=.git -e x ."}"#;
    let text = play("search for x", USUAL, &[(call, "Process exited with code 1\nOutput:\n")]).await;
    assert!(text.ends_with("1. search for `x` (found nothing)\n\n    (no output)"), "{text}");
    // Lines that begin with numbers are the file's own where a shell shows them.
    let read = (r#"exec_command {"cmd":"cat n.txt"}"#, "Output:\n1 one\n2 two\n");
    let patch = "apply_patch *** Begin Patch\n*** Update File: n.txt\n@@\n-2 two\n+2 zwei\n*** End Patch\n";
    play("replace two with zwei in n.txt", USUAL, &[read, (patch, "Success.")]).await;
}

#[tokio::test]
async fn calls_a_tool_by_name() {
    let call = (r#"lookup {"id": "a then b", "n": 1}"#, "found");
    for prompt in [
        "call lookup with {\"id\": \"a then b\", \"n\": 1}",
        "Call the tool `lookup` {\"id\": \"a then b\", \"n\": 1}",
    ] {
        assert!(play(prompt, &["lookup"], &[call]).await.ends_with("1. call `lookup`\n\n    found"));
    }
    play("call lookup", &["lookup"], &[("lookup {}", "")]).await;
    play("call apply_patch with `raw text`", USUAL, &[("apply_patch raw text", "")]).await;
    let text = play("call nothing {}", &["lookup"], &[]).await;
    assert!(
        text.ends_with("I cannot call nothing: this request does not offer it. Offered: lookup."),
        "{text}"
    );
    let text = play("call lookup with [1]", &["lookup"], &[]).await;
    assert!(text.ends_with("I cannot call lookup: its arguments are not a JSON object."), "{text}");
}

#[tokio::test]
async fn works_through_several_steps() {
    let prompt = "Please do this:\n1. plan: list; create\n2. list files then create a.txt with hi\n3. read a.txt and then say done";
    let plan = r#"update_plan {"plan":[{"step":"list","status":"in_progress"},{"step":"create","status":"pending"}]}"#;
    let create = "apply_patch *** Begin Patch\n*** Add File: a.txt\n+hi\n*** End Patch\n";
    let steps = [
        (plan, "Plan updated"),
        (r#"exec_command {"cmd":"ls -a ."}"#, "Output:\nsrc\n"),
        (create, "patch rejected: by the user"),
        (
            r#"exec_command {"cmd":"cat a.txt"}"#,
            "Process exited with code 1\nOutput:\ncat: a.txt: No such file\n",
        ),
    ];
    let expected = "Offline model: 4 of 6 steps done; this is what the tools answered.\n\n\
                    1. I have no rule for \"Please do this:\".\n\n\
                    2. plan 2 steps\n\n    Plan updated\n\n\
                    3. list the files in `.`\n\n    src\n\n\
                    4. create `a.txt`\n\n    patch rejected: by the user\n\n\
                    5. read `a.txt` (failed with exit code 1)\n\n    cat: a.txt: No such file\n\n\
                    6. done";
    check(prompt, USUAL, &steps, expected).await;
}

#[tokio::test]
async fn says_so_when_no_tool_fits() {
    let neither = "this request offers neither";
    let shells = "exec_command, shell or shell_command.";
    for (prompt, why) in [
        ("list files", format!("I cannot list files: {neither} list_dir nor {shells}")),
        ("read a.txt", format!("I cannot read a file: {neither} read_file nor {shells}")),
        ("search for x", format!("I cannot search text: {neither} grep_files nor {shells}")),
        ("run x", format!("I cannot run a command: {neither} {shells}")),
        ("create a.txt with x", format!("I cannot create a file: {neither} apply_patch nor {shells}")),
        ("replace x with y in a.txt", format!("I cannot change a file: {neither} apply_patch nor {shells}")),
        ("plan: a; b", "I cannot keep a plan: this request does not offer update_plan.".to_owned()),
    ] {
        let text = play(prompt, &["view_image"], &[]).await;
        assert!(text.ends_with(&why), "{text}");
    }
    // The other steps are still done.
    let steps = [(r#"exec_command {"cmd":"x"}"#, "ok")];
    assert!(
        play("plan: a; b then run x", &["exec_command"], &steps)
            .await
            .starts_with("Offline model: 1 of 2 steps done")
    );
}

#[tokio::test]
async fn only_the_last_real_words_of_the_user_count() {
    let input = vec![
        user_message("run old"),
        json!({ "type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c1" }),
        json!({ "type": "function_call_output", "call_id": "c1", "output": "old answer" }),
        user_message("run new"),
        user_message("<environment_context><cwd>/x</cwd></environment_context>"),
        user_message("<external_note>run nothing</external_note>"),
        user_message("Warning: something"),
    ];
    let Said::Call(call, _) = ask(prepared(input, tools(USUAL))).await else { panic!("no call") };
    assert_eq!(call, r#"exec_command {"cmd":"new"}"#);
}

#[tokio::test]
async fn the_same_request_has_the_same_bytes() {
    let answer = |request: &PreparedRequest| {
        OfflineModel.respond(OfflineRequest { body: &request.body, purpose: Purpose::Turn }).outcome
    };
    let request = prepared(vec![user_message("run ls")], tools(USUAL));
    assert_eq!(answer(&request), answer(&request.clone()));
    let other = with_body(request.clone(), |body| body.prompt_cache_key = "thread-2".into());
    assert_ne!(answer(&request), answer(&other));
    let Outcome::Events { events, stays_open: false } = answer(&request) else { panic!("no events") };
    let types: Vec<Value> =
        events.iter().map(|event| serde_json::from_str::<Value>(event).unwrap()["type"].take()).collect();
    assert_eq!(
        types,
        [
            "response.created",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
}

#[tokio::test]
async fn a_message_comes_in_deltas_with_usage() {
    let found = events(&OfflineModel, request("say one two three four five six seven")).await;
    let shown = lines(&found);
    assert!(shown[1].starts_with("ItemAdded(Message"), "{shown:?}");
    assert_eq!(&shown[2..5], ["delta Offline model: one ", "delta two three four ", "delta five six seven"]);
    let Some(Ok(StreamEvent::Completed { usage: Some(usage), .. })) = found.last() else {
        panic!("{shown:?}")
    };
    assert_eq!(usage.output_tokens, 12);
    assert!(usage.input_tokens > 50 && usage.total_tokens == usage.input_tokens + 12, "{usage:?}");
}

#[tokio::test]
async fn the_final_message_has_the_shape_that_is_asked_for() {
    let schema = json!({
        "type": "object",
        "properties": { "title": { "type": "string" }, "tags": { "type": "array", "items": { "type": "string" }, "minItems": 1 } },
        "required": ["title", "tags"],
        "additionalProperties": false,
    });
    let format = OutputFormat::JsonSchema { strict: true, schema, name: "codex_output_schema".into() };
    let shaped = |input| {
        with_body(prepared(input, tools(USUAL)), |body| {
            body.text = Some(TextOptions { verbosity: None, format: Some(format.clone()) });
        })
    };
    let Said::Message(text) = ask(shaped(vec![user_message("say x")])).await else { panic!("no message") };
    assert_eq!(text, r#"{"title":"offline","tags":["offline"]}"#);
    // Tools come first.
    let Said::Call(..) = ask(shaped(vec![user_message("run x")])).await else { panic!("no call") };
}

#[tokio::test]
async fn a_conversation_is_summed_up() {
    let input = || {
        vec![
            user_message("list files"),
            json!({ "type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c1" }),
            json!({ "type": "function_call_output", "call_id": "c1", "output": "a.txt" }),
            json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Done\nall" }] }),
            user_message("Create a handoff summary of this conversation."),
        ]
    };
    let expected = "Offline model: summary of the conversation so far.\nThe user made 1 requests:\n- list files\n\
                    Tools called (1 calls): exec_command.\nThe last answer began: Done all";
    let Said::Message(text) = ask(prepared(input(), Vec::new())).await else { panic!("no message") };
    assert_eq!(text, expected);
    let mut marked = prepared(input(), tools(USUAL));
    marked.metadata.purpose = Purpose::Compaction;
    let Said::Message(text) = ask(marked).await else { panic!("no message") };
    assert_eq!(text, expected);
    // Once its summary stands for the work, it does not begin again.
    let after =
        prepared(vec![user_message("run x"), user_message(&format!("Summary:\n{expected}"))], tools(USUAL));
    let Said::Message(text) = ask(after).await else { panic!("no message") };
    assert!(text.starts_with("Offline model: the conversation was compacted"), "{text}");
}

#[tokio::test]
async fn a_review_is_declined_honestly() {
    let mut review = request("Review the changes.");
    review.metadata.purpose = Purpose::Review;
    let Said::Message(text) = ask(review).await else { panic!("no message") };
    assert!(text.contains("this is no review"), "{text}");
}

#[tokio::test]
async fn it_refuses_a_request_that_says_so() {
    let input = vec![user_message("fail with \"the key has no credit left\"")];
    let found = events(&OfflineModel, prepared(input, tools(USUAL))).await;
    let refused = found[0].as_ref().unwrap_err();
    assert_eq!(refused.class, FailureClass::InvalidRequest);
    assert!(refused.message.contains("the key has no credit left"), "{refused}");
    // Commands before it in the prompt run first.
    let steps = [("exec_command {\"cmd\":\"ls\"}", "a")];
    let mut input = vec![user_message("run ls then fail with no")];
    let Said::Call(call, item) = ask(prepared(input.clone(), tools(USUAL))).await else { panic!("a call") };
    assert_eq!(call, steps[0].0);
    input.push(item.clone());
    input.push(json!({ "type": "function_call_output", "call_id": item["call_id"], "output": steps[0].1 }));
    let found = events(&OfflineModel, prepared(input, tools(USUAL))).await;
    assert_eq!(found[0].as_ref().unwrap_err().class, FailureClass::InvalidRequest);
}

#[test]
fn no_words_break_it() {
    const WORDS: &[&str] = &[
        "list files",
        "read",
        "search for",
        "run",
        "create",
        "replace",
        "plan:",
        "say",
        "call",
        "with",
        "in",
        "to",
        " then ",
        "\n",
        "`",
        "```",
        "\"",
        "'",
        "{",
        "}",
        "\\",
        "a.txt",
        "é",
        "漢字",
        "🦀",
        ";",
        ":",
        ".",
        "1. ",
        "- ",
        " ",
        "",
    ];
    let mut state = 0x5EED_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % below
    };
    for _ in 0..1_000 {
        let text: String =
            (0..random(14)).map(|_| WORDS[random(WORDS.len())].to_owned() + [" ", ""][random(2)]).collect();
        let request = prepared(vec![user_message(&text)], tools(USUAL));
        let reply = OfflineModel.respond(OfflineRequest { body: &request.body, purpose: Purpose::Turn });
        let Outcome::Events { events, .. } = reply.outcome else { panic!("{text}") };
        assert!(events.last().unwrap().contains("response.completed"), "{text}");
    }
}

#[test]
fn it_can_be_shared() {
    let shared: Arc<dyn ModelTransport> = Arc::new(OfflineModel);
    assert_eq!(format!("{shared:?}"), "ModelTransport");
}
