//! `oarlock mcp-server`, driven as an MCP client does.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::EndInTime;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client with a server of its own, a home and a folder to work in.
struct McpClient {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    home: TempDir,
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl McpClient {
    fn start(capabilities: &Value) -> Self {
        Self::start_with(capabilities, &[])
    }

    fn start_with(capabilities: &Value, more: &[&str]) -> Self {
        let home = TempDir::new().expect("a folder");
        std::fs::create_dir(home.path().join("work")).expect("made");
        let mut child = Command::new(env!("CARGO_BIN_EXE_oarlock"))
            .args(["mcp-server", "-c", "model_provider=offline"])
            .args(more)
            .env("OARLOCK_HOME", home.path().join("home"))
            .env("HOME", home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("every line is JSON");
                let _ = sender.send(message);
            }
        });
        let mut client = Self { child, input, lines, home };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                            "clientInfo": {"name": "test", "version": "1"}});
        let hello = client.ask(0, "initialize", params);
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
        assert_eq!(hello["result"]["serverInfo"]["title"], "Oarlock");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("still open");
        writeln!(input, "{message}").expect("written");
    }

    fn next(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("a message")
    }

    #[expect(clippy::needless_pass_by_value, reason = "the callers read better")]
    fn begin(&mut self, id: i64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn ask(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.begin(id, method, params);
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn work(&self) -> std::path::PathBuf {
        self.home.path().join("work")
    }

    /// Arguments under which commands that write are asked about.
    fn careful(&self, prompt: &str) -> Value {
        json!({"name": "codex", "_meta": {"progressToken": "t"}, "arguments": {
            "prompt": prompt, "cwd": self.work(), "approval-policy": "untrusted", "sandbox": "workspace-write"}})
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

#[test]
fn a_thread_is_begun_and_gone_on_with() {
    let mut client = McpClient::start(&json!({}));
    let listed = client.ask(1, "tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools").clone();
    assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), ["codex", "codex-reply"]);
    for tool in &tools {
        assert_eq!(
            (&tool["inputSchema"]["required"], &tool["inputSchema"]["type"]),
            (&json!(["prompt"]), &json!("object"))
        );
    }
    let first = client.ask(2, "tools/call", json!({"name": "codex", "arguments": {"prompt": "Say hello"}}));
    assert_eq!(text(&first), "Offline model: hello");
    let thread = first["result"]["structuredContent"]["threadId"].clone();
    assert_eq!(first["result"]["structuredContent"]["content"], "Offline model: hello");
    for key in ["threadId", "conversationId"] {
        let arguments = json!({"prompt": "Say hello again", key: thread});
        let second = client.ask(3, "tools/call", json!({"name": "codex-reply", "arguments": arguments}));
        assert_eq!(second["result"]["structuredContent"]["threadId"], thread, "{second}");
        assert_eq!(second["result"].get("isError"), None, "{second}");
    }
}

/// The arguments are written by a model, which a web page may have talked into anything.
#[test]
fn a_call_cannot_have_programs_run_or_the_sandbox_taken_away() {
    let mut client = McpClient::start(&json!({}));
    let home = client.home.path().to_owned();
    let planted = home.join("planted");
    let program = json!(["/bin/sh", "-c", format!("touch {}", planted.display())]);
    for (arguments, expected) in [
        (json!({"config": {"notify": program}}), "`notify`"),
        (json!({"config": {"mcp_servers.x.command": "/bin/true"}}), "`mcp_servers.x.command`"),
        (json!({"config": {"model_providers": {"x": {"name": "x"}}}}), "`model_providers`"),
        (json!({"config": {"hooks": {}}}), "`hooks`"),
        (json!({"config": {"js_repl_node_path": "/bin/true"}}), "`js_repl_node_path`"),
        (json!({"config": {"features.codex_hooks": true}}), "`features.codex_hooks`"),
        (json!({"config": {"sandbox_mode": "danger-full-access"}}), "danger-full-access"),
        (json!({"sandbox": "danger-full-access"}), "danger-full-access"),
        (json!({"sandbox": "workspace-write", "cwd": home}), "home folder"),
    ] {
        let mut call = json!({"prompt": "Run `touch planted`", "cwd": client.work()});
        arguments.as_object().expect("an object").iter().for_each(|(key, value)| call[key] = value.clone());
        let answer = client.ask(5, "tools/call", json!({"name": "codex", "arguments": call}));
        assert_eq!(answer["result"]["isError"], true, "{arguments}: {answer}");
        assert!(text(&answer).contains(expected), "{arguments}: {answer}");
    }
    assert!(!planted.exists() && !client.work().join("planted").exists());
    let call = json!({"prompt": "Say hello", "cwd": client.work(), "approval-policy": "never",
                      "sandbox": "workspace-write", "config": {"model_reasoning_effort": "low"}});
    let answer = client.ask(6, "tools/call", json!({"name": "codex", "arguments": call}));
    assert_eq!(answer["result"].get("isError"), None, "{answer}");
}

#[test]
fn what_the_user_has_opened_a_call_may_use_and_not_open_further() {
    let open = ["-c", "sandbox_mode=danger-full-access"];
    let mut client = McpClient::start_with(&json!({}), &open);
    let mut call = json!({"prompt": "Say hello", "cwd": client.work(), "sandbox": "danger-full-access"});
    let answer = client.ask(5, "tools/call", json!({"name": "codex", "arguments": call}));
    assert_eq!(answer["result"].get("isError"), None, "{answer}");
    call["approval-policy"] = json!("never");
    let answer = client.ask(6, "tools/call", json!({"name": "codex", "arguments": call}));
    assert!(text(&answer).contains("approval-policy"), "{answer}");

    // Writing in a workspace does not make a workspace of the home folder.
    let mut client = McpClient::start_with(&json!({}), &["-c", "sandbox_mode=workspace-write"]);
    let home = client.home.path().to_owned();
    for cwd in [home.as_path(), Path::new("/")] {
        let call = json!({"prompt": "Run `touch planted`", "cwd": cwd});
        let answer = client.ask(5, "tools/call", json!({"name": "codex", "arguments": call}));
        assert!(text(&answer).contains("home folder"), "{answer}");
        assert!(!cwd.join("planted").exists());
    }
}

#[test]
fn an_approval_is_an_elicitation() {
    for (answer, happens) in [
        (json!({"action": "accept", "content": {}}), true),
        (json!({"action": "accept", "decision": "approved"}), true),
        (json!({"action": "decline"}), false),
        (json!({"action": "accept", "decision": "denied"}), false),
        (json!({"nonsense": 1}), false),
    ] {
        let mut client = McpClient::start(&json!({"elicitation": {}}));
        let call = client.careful("Run `touch wanted`");
        client.begin(7, "tools/call", call);
        let asked = loop {
            let message = client.next();
            match message["method"].as_str() {
                Some("notifications/progress") => {
                    assert_eq!(message["params"]["progressToken"], "t");
                    assert!(message["params"]["message"].as_str().expect("text").contains("touch wanted"));
                }
                _ => break message,
            }
        };
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let params = &asked["params"];
        assert_eq!(params["requestedSchema"], json!({"type": "object", "properties": {}}));
        assert_eq!(
            (&params["codex_elicitation"], &params["codex_mcp_tool_call_id"]),
            (&json!("exec-approval"), &json!("7"))
        );
        assert!(params["message"].as_str().expect("text").contains("touch wanted"), "{params}");
        assert!(!client.work().join("wanted").exists(), "nothing happens before the answer");
        client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        let ended = loop {
            let message = client.next();
            if message["id"] == 7 {
                break message;
            }
        };
        assert!(!text(&ended).is_empty());
        assert_eq!(client.work().join("wanted").exists(), happens, "{answer}");
    }
}

#[test]
fn who_cannot_be_asked_agrees_to_nothing() {
    let mut client = McpClient::start(&json!({}));
    let call = client.careful("Run `touch wanted`");
    client.begin(1, "tools/call", call);
    while client.next()["id"] != 1 {}
    assert!(!client.work().join("wanted").exists());
}

#[test]
fn a_cancelled_call_stops_and_is_not_answered() {
    let mut client = McpClient::start(&json!({"elicitation": {}}));
    let call = client.careful("Run `touch wanted`");
    client.begin(1, "tools/call", call);
    let asked = loop {
        let message = client.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    let withdrawn = client.next();
    assert_eq!(
        (&withdrawn["method"], &withdrawn["params"]["requestId"]),
        (&json!("notifications/cancelled"), &asked["id"])
    );
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}));
    assert_eq!(client.ask(2, "ping", json!({}))["result"], json!({}), "the call itself is not answered");
    assert!(!client.work().join("wanted").exists());
}

#[test]
fn what_cannot_be_done_is_said_and_the_server_goes_on() {
    let mut client = McpClient::start(&json!({}));
    for (params, expected) in [
        (json!({"name": "nope"}), "Unknown tool 'nope'"),
        (json!({"name": "codex", "arguments": {}}), "missing field `prompt`"),
        (json!({"name": "codex", "arguments": {"prompt": "x", "sandbox": "wide-open"}}), "unknown variant"),
        (json!({"name": "codex", "arguments": {"prompt": "x", "surprise": 1}}), "unknown field `surprise`"),
        (json!({"name": "codex-reply", "arguments": {"prompt": "x"}}), "threadId is missing"),
        (
            json!({"name": "codex-reply", "arguments": {"prompt": "x", "threadId": "no"}}),
            "invalid thread id: ",
        ),
    ] {
        let answer = client.ask(1, "tools/call", params);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(text(&answer).contains(expected), "{answer}");
    }
    assert_eq!(client.ask(2, "resources/list", json!({}))["error"]["code"], -32601);
    for (line, code) in [("not json", -32700), ("[]", -32600), ("{}", -32600), ("7", -32600)] {
        writeln!(client.input.as_mut().expect("open"), "{line}").expect("written");
        assert_eq!(client.next()["error"]["code"], code, "{line}");
    }
    assert_eq!(client.ask(3, "ping", json!({}))["result"], json!({}));
    drop(client.input.take());
    assert!(client.child.wait_in_time().success(), "it ends with its input");
}
