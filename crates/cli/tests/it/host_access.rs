//! Who may do what at `oarlock host`, how much tasks may use, and what those see who watch it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::host::{HostClient, RunningHost, command, job, pending, runs, until};
use crate::support::Place;

/// A websocket client in its simplest form: text frames of any length, whole messages.
pub(crate) struct NetworkClient {
    stream: TcpStream,
    next_id: u64,
    pub(crate) heard: Vec<Value>,
}

fn connect(port: u16) -> TcpStream {
    let stream = until("the port", || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.set_read_timeout(Some(Duration::from_secs(90))).expect("a limit");
    stream
}

/// Status line and body of one page.
fn page(port: u16, path: &str, token: Option<&str>) -> (String, String) {
    let mut stream = connect(port);
    let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{token}\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("answered");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

impl NetworkClient {
    /// Its role is the one the host tells.
    pub(crate) fn open_as(port: u16, token: &str, role: &str) -> Self {
        let (client, answer) = Self::greeted(port, token, &json!({"versions": [1]}));
        assert_eq!(answer["capabilities"]["host"]["role"], role, "{answer}");
        client
    }

    pub(crate) fn open(port: u16, token: &str) -> Self {
        Self::greeted(port, token, &json!({"versions": [1]})).0
    }

    /// As a client of an app-server, which has never heard of hosts.
    fn open_plainly(port: u16, token: &str) -> Self {
        Self::greeted(port, token, &Value::Null).0
    }

    fn greeted(port: u16, token: &str, host: &Value) -> (Self, Value) {
        let mut stream = connect(port);
        let request = format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Authorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).expect("asked");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        let mut client = Self { stream, next_id: 0, heard: Vec::new() };
        let capabilities = json!({"experimentalApi": true, "host": host});
        let info = json!({"name": "network", "title": null, "version": "1"});
        let params = json!({"clientInfo": info, "capabilities": capabilities});
        let answer = client.try_ask("initialize", &params).expect("let in");
        (client, answer)
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let text = message.to_string().into_bytes();
        // A mask of zeros leaves the bytes as they are.
        let mut frame = vec![0x81, 0x80 | 127];
        frame.extend((text.len() as u64).to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text);
        self.stream.write_all(&frame).expect("sent");
    }

    pub(crate) fn read(&mut self) -> Value {
        let mut head = [0; 2];
        self.stream.read_exact(&mut head).expect("a frame in time");
        let length = match head[1] {
            126 => {
                let mut more = [0; 2];
                self.stream.read_exact(&mut more).expect("a length");
                usize::from(u16::from_be_bytes(more))
            }
            127 => {
                let mut more = [0; 8];
                self.stream.read_exact(&mut more).expect("a length");
                usize::try_from(u64::from_be_bytes(more)).expect("a length")
            }
            short => usize::from(short),
        };
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("a body");
        serde_json::from_slice(&body).expect("JSON")
    }

    pub(crate) fn try_ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"id": id, "method": method, "params": params}));
        loop {
            let mut message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                };
            }
            self.heard.push(message);
        }
    }

    #[track_caller]
    pub(crate) fn forbidden(&mut self, method: &str, params: &Value) {
        let refused = self.try_ask(method, params).expect_err(method);
        assert_eq!(refused["data"]["code"], "forbidden", "{method}: {refused}");
    }
}

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Tokens are `NAME-token`; hashes come from a tool that every machine has.
pub(crate) fn tokens(place: &Place) -> String {
    let mut lines = "# who may connect\n".to_owned();
    for (name, role) in [("vic", "viewer"), ("ana", "viewer,approver"), ("olga", "operator")] {
        let file = place.file("token", format!("{name}-token"));
        let hashed = Command::new("sha256sum").arg(&file).output().expect("sha256sum");
        let text = String::from_utf8(hashed.stdout).expect("text");
        let hash = text.split_whitespace().next().expect("a hash").to_owned();
        lines.push_str(&format!("{name} {role} sha256:{hash}\n"));
    }
    place.file("tokens", lines)
}

#[test]
fn a_token_gives_a_name_and_a_role_and_nothing_beyond_it() {
    let place = Place::new();
    job(&place, "");
    let port = free_port();
    let (listen, tokens) = (format!("ws://127.0.0.1:{port}"), tokens(&place));
    let _host = RunningHost::start(&place, &["--listen", &listen, "--tokens", &tokens]);
    let mut operator = NetworkClient::open_as(port, "olga-token", "operator");
    let start =
        json!({"cwd": place.folder(), "approvalPolicy": "untrusted", "sandbox": "danger-full-access"});
    let mut reaching = start.clone();
    for (key, value) in [
        ("mcp_servers.x.command", json!("sh")),
        ("notify", json!(["sh", "-c", "true"])),
        ("model_instructions_file", json!("/etc/passwd")),
        ("profiles", json!({})),
    ] {
        reaching["config"] = json!({ key: value });
        operator.forbidden("thread/start", &reaching);
    }
    let local = |manifest: Value| json!({"backend": "local", "manifest": manifest});
    for reaching in [
        json!("docker:debian:12"),
        json!({"backend": "local", "workspace": "/etc"}),
        local(json!({"entries": {"a": {"type": "localFile", "path": "/etc/passwd"}}})),
        local(json!({"entries": {"a": {"type": "git", "url": "https://example.com/a"}}})),
        local(json!({"env": {"A": {"secret": "OPENAI_API_KEY"}}})),
    ] {
        let mut placed = start.clone();
        placed["placement"] = reaching;
        operator.forbidden("thread/start", &placed);
    }
    operator.forbidden(
        "config/value/write",
        &json!({"keyPath": "model", "value": "x", "mergeStrategy": "replace"}),
    );
    let started = operator.try_ask("thread/start", &start).expect("started");
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();

    let mut viewer = NetworkClient::open(port, "vic-token");
    viewer.forbidden("thread/start", &start);
    viewer.try_ask("placement/list", &json!({})).expect("listed");
    viewer.forbidden("placement/gc", &json!({}));
    viewer.forbidden("thread/resume", &json!({"threadId": thread, "model": "other"}));
    viewer.try_ask("thread/resume", &json!({"threadId": thread})).expect("followed");
    let input = json!([{"type": "text", "text": "run sh job.sh"}]);
    let turn = json!({"threadId": thread, "input": input});
    viewer.forbidden("turn/start", &turn);
    operator.try_ask("turn/start", &turn).expect("begun");
    let waiting = until("the question", || pending(&place).pop());
    let decision = json!({
        "operationId": waiting["operationId"], "argumentsDigest": waiting["argumentsDigest"],
        "decision": {"type": "approve"}, "onBehalfOf": "bob",
    });
    viewer.forbidden("operation/decide", &decision);
    let mut approver = NetworkClient::open(port, "ana-token");
    approver.forbidden("turn/interrupt", &json!({"threadId": thread, "turnId": "x"}));
    approver.forbidden("thread/suspend", &json!({"threadId": thread}));
    approver.forbidden("audit/list", &json!({}));
    let decided = approver.try_ask("operation/decide", &decision).expect("decided");
    let by = &decided["operation"]["decision"];
    assert_eq!((&by["by"], &by["onBehalfOf"]), (&json!("ana"), &json!("bob")), "{decided}");
    until("the command", || (runs(&place) == 1).then_some(()));
    viewer.try_ask("task/list", &json!({})).expect("listed");
    let asked = |message: &&Value| message.get("id").is_some() && message.get("method").is_some();
    assert_eq!(viewer.heard.iter().find(asked), None, "a viewer is not asked");

    for path in ["/healthz", "/readyz"] {
        assert_eq!(page(port, path, None).0, "HTTP/1.1 200 OK", "{path}");
    }
    assert_eq!(page(port, "/metrics", None).0, "HTTP/1.1 401 Unauthorized");
    let (status, text) = page(port, "/metrics", Some("vic-token"));
    assert_eq!(status, "HTTP/1.1 200 OK");
    for name in ["oarlock_tasks{state=", "oarlock_model_requests_total{", "oarlock_append_seconds_bucket"] {
        assert!(text.contains(name), "{name} in\n{text}");
    }
    lint(&text);
}

/// Becoming a client by hook or by crook: with a token of its own, or over a port or a socket.
#[test]
fn no_command_of_a_task_becomes_a_client_of_the_host() {
    let place = Place::new();
    fs::rename(tokens(&place), place.folder().join("tokens")).expect("moved");
    let port = free_port();
    let listen = format!("ws://127.0.0.1:{port}");
    // Named as seen from the folder that the host was started in.
    let _host = RunningHost::start(&place, &["--listen", &listen, "--tokens", "tokens"]);
    let reached = attacked(
        &place,
        &format!(
            "echo evil admin sha256:{} >> tokens && echo wrote >> reached\n\
             grep -q viewer tokens && echo read >> reached\n\
             mv tokens moved && echo moved >> reached\n\
             rm -f tokens && echo removed >> reached\n\
             exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected >> reached\n",
            "ab".repeat(32)
        ),
    );
    assert_eq!(reached, "");
    NetworkClient::open_as(port, "olga-token", "operator");
}

#[test]
fn no_command_of_a_task_takes_the_place_of_a_socket_of_the_host() {
    let place = Place::new();
    let socket = place.folder().join("more.sock");
    let _host = RunningHost::start(&place, &["--listen", &format!("unix://{}", socket.display())]);
    until("the other socket", || std::os::unix::net::UnixStream::connect(&socket).ok());
    let attempts = "mv more.sock moved && echo moved >> reached\nrm more.sock && echo removed >> reached\n\
                    python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"more.sock\")' \
                    && echo connected >> reached\n";
    assert_eq!(attacked(&place, attempts), "");
    HostClient::at(&socket);
}

#[test]
fn a_revoked_token_ends_its_connections_and_opens_no_more() {
    let place = Place::new();
    let port = free_port();
    let (listen, tokens) = (format!("ws://127.0.0.1:{port}"), tokens(&place));
    let _host = RunningHost::start(&place, &["--listen", &listen, "--tokens", &tokens]);
    let mut operator = NetworkClient::open_as(port, "olga-token", "operator");
    let mut viewer = NetworkClient::open_as(port, "vic-token", "viewer");
    let text = fs::read_to_string(&tokens).expect("tokens");
    let kept: String =
        text.lines().filter(|line| !line.starts_with("olga")).map(|line| format!("{line}\n")).collect();
    fs::write(&tokens, kept).expect("written");
    assert_eq!(operator.stream.read(&mut [0]).unwrap_or(0), 0, "it is ended");
    viewer.try_ask("task/list", &json!({})).expect("others stay");
    assert_eq!(page(port, "/metrics", Some("olga-token")).0, "HTTP/1.1 401 Unauthorized");
}

/// The host's own programs run without a sandbox.
#[test]
fn no_program_of_the_host_comes_from_a_folder_that_tasks_write() {
    let place = Place::new();
    job(&place, "");
    let bin = place.folder().join("bin");
    fs::create_dir(&bin).expect("made");
    for name in ["docker", "tellme"] {
        let planted = bin.join(name);
        fs::write(&planted, format!("#!/bin/sh\ntouch {}\n", place.root().join("planted").display()))
            .expect("written");
        fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    }
    let log = place.root().join("log");
    let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
    let notify = "host.notify=[\"tellme\"]";
    let arguments =
        ["host", "--provider", "offline", "--store", &store, "-c", notify, "-c", "host.notify_after=0"];
    let mut command = place.command(&arguments);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path")));
    let _host = RunningHost::of(&place, command.stderr(fs::File::create(&log).expect("a log")));
    let mut client = HostClient::connect(&place);
    let placed = json!({"cwd": place.folder(), "placement": "docker:oarlock.invalid/none:0"});
    let refused = client.try_ask("thread/start", &placed).map(|_| ());
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let planted = place.root().join("planted");
    until("the message", || {
        let said = fs::read_to_string(&log).expect("a log");
        (said.contains("host.notify: tellme") || planted.exists()).then_some(())
    });
    assert!(!planted.exists(), "a planted program ran; docker: {refused:?}");
}

/// Has a command of a task run a script, with network and without questions, and gives what it wrote into `reached`.
fn attacked(place: &Place, script: &str) -> String {
    fs::write(place.folder().join("attack.sh"), format!("{script}echo tried > tried\n")).expect("written");
    let mut client = HostClient::connect(place);
    let config = json!({"sandbox_workspace_write.network_access": true});
    let params = json!({
        "cwd": place.folder(), "approvalPolicy": "never", "sandbox": "workspace-write", "config": config,
    });
    let started = client.ask("thread/start", &params);
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    client.turn(&thread, "Run `bash attack.sh`", "i1");
    let completed = ended(&mut client);
    assert_eq!(completed["status"], "completed", "{completed}");
    assert!(place.folder().join("tried").exists(), "the command ran: {completed}");
    fs::read_to_string(place.folder().join("reached")).unwrap_or_default()
}

/// By Prometheus' own tool, where there is one.
fn lint(text: &str) {
    let tool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut tool) = tool else { return };
    tool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let checked = tool.wait_with_output().expect("an end");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

fn ended(client: &mut HostClient) -> Value {
    let mut completed = client.wait_for("turn/completed");
    completed["params"]["turn"].take()
}

#[test]
fn a_task_that_has_used_its_budget_is_refused_and_usage_is_summed_up() {
    let place = Place::new();
    let prices = "prices.offline={input = 1000000.0, output = 1000000.0}";
    let _host = RunningHost::start(&place, &["-c", "host.budget.task.tokens=100000000", "-c", prices]);
    let mut client = HostClient::connect(&place);
    let params = json!({"cwd": place.folder(), "approvalPolicy": "never", "budget": {"tokens": 1}});
    let thread = client.ask("thread/start", &params)["thread"]["id"].as_str().expect("an id").to_owned();
    client.turn(&thread, "say hello", "i1");
    assert_eq!(ended(&mut client)["status"], "completed");
    client.turn(&thread, "say hello again", "i2");
    let refused = ended(&mut client);
    assert_eq!(refused["status"], "failed", "{refused}");
    assert!(refused["error"].to_string().contains("tokens of 1"), "{refused}");
    let sums = client.ask("usage/list", &json!({"threadId": thread, "groupBy": "task"}));
    assert_eq!(
        (&sums["data"][0]["key"], &sums["data"][0]["requests"]),
        (&json!(thread), &json!(1)),
        "{sums}"
    );
    let shown = command(&place, &["usage", "--by", "model"]).good().out;
    assert!(shown.contains("offline") && shown.contains("COST"), "{shown}");
    let listed = command(&place, &["usage", "--json"]).good().document();
    assert!(listed[0]["costMicros"].as_i64().is_some_and(|cost| cost > 0), "{listed}");
}

#[test]
fn a_model_that_is_not_allowed_is_refused_and_people_are_told_what_waits() {
    let place = Place::new();
    job(&place, "");
    let told = place.root().join("told");
    let notify =
        format!("host.notify=[\"sh\", \"-c\", \"cat >> {}; echo >> {}\"]", told.display(), told.display());
    let flags = ["-c", &notify, "-c", "host.notify_after=0"];
    let host = RunningHost::start(&place, &flags);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for("item/commandExecution/requestApproval");
    let text = until("the message", || fs::read_to_string(&told).ok().filter(|text| text.ends_with('\n')));
    let message: Value = serde_json::from_str(text.trim()).expect("one message");
    assert_eq!(message["operation"]["operationId"], pending(&place)[0]["operationId"], "{message}");
    host.kill();
    let _host = RunningHost::start(&place, &["-c", "host.models=[\"gpt-5*\"]"]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "say hello", "i1");
    let refused = ended(&mut client);
    assert!(refused["error"].to_string().contains("does not allow the model"), "{refused}");
}

#[test]
fn a_client_that_comes_back_reads_what_changed_since() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    let first = client.turn(&thread, "say hello", "i1");
    let seen = client.wait_for("turn/completed")["params"]["ordinal"].as_u64().expect("an ordinal");
    let second = client.turn(&thread, "say goodbye", "i2");
    let last = client.wait_for("turn/completed")["params"]["ordinal"].as_u64().expect("an ordinal");
    assert!(seen < last, "{seen} {last}");
    let mut other = HostClient::connect(&place);
    let whole = other.ask("thread/resume", &json!({"threadId": thread}));
    let ids = |answer: &Value| -> Vec<Value> {
        answer["thread"]["turns"].as_array().into_iter().flatten().map(|turn| turn["id"].clone()).collect()
    };
    assert_eq!(ids(&whole), [first["id"].clone(), second["id"].clone()]);
    let next = whole["rolloutOrdinal"].as_u64().expect("an ordinal");
    assert!(next > last, "{next} {last}");
    let changed = other.ask("thread/resume", &json!({"threadId": thread, "after": seen}));
    assert_eq!(ids(&changed), [second["id"].clone()], "{changed}");
    let nothing = other.ask("thread/resume", &json!({"threadId": thread, "after": next - 1}));
    assert_eq!(ids(&nothing), Vec::<Value>::new(), "{nothing}");
}

#[test]
fn whoever_only_looks_on_does_no_part_of_the_work() {
    let place = Place::new();
    let port = free_port();
    let (listen, tokens) = (format!("ws://127.0.0.1:{port}"), tokens(&place));
    let _host = RunningHost::start(&place, &["--listen", &listen, "--tokens", &tokens]);
    let mut operator = NetworkClient::open(port, "olga-token");
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tool = json!({"name": "refund", "description": "Gives money back.", "inputSchema": schema});
    let start = json!({"cwd": place.folder(), "approvalPolicy": "never", "dynamicTools": [tool]});
    let started = operator.try_ask("thread/start", &start).expect("started");
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    let by_id = json!({ "threadId": thread });
    let task = |client: &mut NetworkClient| {
        client.try_ask("task/read", &json!({"threadId": thread})).expect("read")["task"].clone()
    };

    // The only client that follows the thread when the model calls the tool may not give its result.
    let mut viewer = NetworkClient::open_plainly(port, "vic-token");
    viewer.try_ask("thread/resume", &by_id).expect("followed");
    operator.try_ask("thread/unsubscribe", &by_id).expect("left");
    let input = json!([{"type": "text", "text": "call refund {\"a\": \"b\"}"}]);
    operator.try_ask("turn/start", &json!({"threadId": thread, "input": input})).expect("begun");
    until("the call", || {
        let listed = operator.try_ask("operation/list", &by_id).expect("listed");
        listed["data"].as_array().is_some_and(|data| !data.is_empty()).then_some(())
    });
    // Who may give the result is asked before the call is shown to all.
    until("the viewer sees the call", || {
        viewer.try_ask("thread/loaded/list", &json!({})).expect("listed");
        let is_call = |told: &Value| {
            told["method"] == "item/started" && told["params"]["item"]["type"] == "dynamicToolCall"
        };
        viewer.heard.iter().any(is_call).then_some(())
    });
    viewer.try_ask("thread/loaded/list", &json!({})).expect("listed");
    let asked = |message: &&Value| message.get("id").is_some() && message.get("method").is_some();
    assert_eq!(viewer.heard.iter().find(asked), None, "a viewer runs no tools");

    let prompt = operator.try_ask("thread/prompt/read", &by_id).expect("its runtime knows it");
    let call = prompt["pieces"]["history"]
        .as_array()
        .and_then(|pieces| pieces.iter().find(|piece| piece["name"] == "call refund"));
    assert_eq!(call.map(|piece| &piece["text"]), Some(&json!("{\"a\": \"b\"}")), "{prompt}");

    // Nor does looking start a runtime, or change the task.
    operator.try_ask("task/suspend", &by_id).expect("suspended");
    until("no runtime", || (task(&mut operator)["hasRuntime"] == false).then_some(()));
    let before = task(&mut operator);
    viewer.forbidden("thread/goal/get", &by_id);
    viewer.forbidden("thread/prompt/read", &by_id);
    viewer.forbidden("thread/records/list", &by_id);
    let records = operator.try_ask("thread/records/list", &by_id).expect("the store has them");
    assert_eq!(records["data"][0]["kind"], "operation", "{records}");
    viewer.try_ask("thread/turns/list", &by_id).expect("pages are read from the record");
    viewer.try_ask("thread/resume", &by_id).expect("followed again");
    viewer.forbidden("thread/resume", &json!({"threadId": thread, "serviceTier": "fast"}));
    let after = task(&mut operator);
    assert_eq!(
        (&after["hasRuntime"], &after["updatedAtMs"]),
        (&json!(false), &before["updatedAtMs"]),
        "{after}"
    );

    let long = json!({"threadId": thread, "name": "n".repeat(1_001)});
    let refused = operator.try_ask("thread/name/set", &long).expect_err("too long");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("1000")), "{refused}");
    operator.try_ask("thread/archive", &by_id).expect("archived");
    let mut again = start;
    again["threadId"] = json!(thread);
    operator.try_ask("thread/start", &again).expect_err("it is archived");
}

/// The host died while the place of the thread was being made: nobody has seen the thread yet.
#[test]
fn labels_and_the_digest_of_an_agent_are_kept_and_tasks_are_found_by_them() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let mut start = |more: Value| {
        let mut params =
            json!({"cwd": place.folder(), "approvalPolicy": "never", "sandbox": "danger-full-access"});
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        client.try_ask("thread/start", &params).map(|started| started["thread"]["id"].clone())
    };
    let given = json!({"labels": {"team": "blue"}, "agentDigest": "sha256:1", "threadSource": "refunds"});
    let thread = start(given).expect("started");
    start(json!({"labels": {"team": "red"}})).expect("started");
    let long = start(json!({"labels": {"": "x"}})).expect_err("no name");
    assert!(long["message"].as_str().is_some_and(|text| text.starts_with("labels: ")), "{long}");
    host.kill();

    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let found = client.ask("task/list", &json!({"labels": {"team": "blue"}}));
    assert_eq!(found["data"].as_array().map(Vec::len), Some(1), "{found}");
    let task = &found["data"][0];
    assert_eq!((&task["id"], &task["labels"]), (&thread, &json!({"team": "blue"})));
    assert_eq!((&task["agent"], &task["agentDigest"]), (&json!("refunds"), &json!("sha256:1")));
    // Whoever opens the task next says by which definition it goes on.
    client.ask("thread/resume", &json!({"threadId": thread, "agentDigest": "sha256:2"}));
    let read = client.ask("task/read", &json!({"threadId": thread}));
    assert_eq!(read["task"]["agentDigest"], "sha256:2", "{read}");
    assert_eq!(read["task"]["labels"], json!({"team": "blue"}), "they stay as they were");
}

#[test]
fn a_task_that_no_runtime_has_opened_is_opened_by_whoever_resumes_it() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let begun = place.root().join("begun");
    let setup = format!("test -e {0} || {{ touch {0}; exec sleep 61; }}", begun.display());
    let placement = json!({"backend": "local", "manifest": {"setup": [["sh", "-c", setup]]}});
    let mut client = HostClient::connect(&place);
    client.write(&json!({"id": 99, "method": "thread/start", "params": {"placement": placement}}));
    until("the setup", || begun.exists().then_some(()));
    host.kill();

    let port = free_port();
    let (listen, tokens) = (format!("ws://127.0.0.1:{port}"), tokens(&place));
    let _host = RunningHost::start(&place, &["--listen", &listen, "--tokens", &tokens]);
    let mut client = HostClient::connect(&place);
    let listed = client.ask("task/list", &json!({}));
    let thread = listed["data"][0]["id"].as_str().expect("the task that was begun").to_owned();
    let by_id = json!({"threadId": thread});
    let refused = client.try_ask("thread/read", &by_id).expect_err("nothing is known of it");
    assert_eq!(refused, json!({"code": -32600, "message": format!("thread not loaded: {thread}")}));
    let mut viewer = NetworkClient::open(port, "vic-token");
    let refused = viewer.try_ask("thread/resume", &by_id).expect_err("a viewer opens nothing");
    assert_eq!(
        refused,
        json!({"code": -32600, "message": format!("no rollout found for thread id {thread}")})
    );
    let resumed = client.ask("thread/resume", &by_id);
    assert_eq!(
        (&resumed["thread"]["id"], &resumed["thread"]["turns"], &resumed["thread"]["status"]["type"]),
        (&json!(thread), &json!([]), &json!("idle")),
        "{resumed}"
    );
    assert!(resumed["model"].is_string() && resumed["sandbox"].is_object(), "{resumed}");
    viewer.try_ask("thread/resume", &by_id).expect("now it is there");
    client.turn(&thread, "say hello", "i1");
    assert_eq!(ended(&mut client)["status"], "completed");
}
