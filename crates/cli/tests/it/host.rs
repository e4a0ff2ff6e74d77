//! `oarlock host` as real processes: killed at bad moments, and nothing lost, nothing run twice.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Place;

mod carrier;

pub(crate) const LIMIT: Duration = Duration::from_secs(90);
pub(crate) const APPROVAL: &str = "item/commandExecution/requestApproval";

/// Waits for something that other processes do.
#[track_caller]
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

pub(crate) struct RunningHost {
    child: Child,
}

impl RunningHost {
    pub(crate) fn start(place: &Place, more: &[&str]) -> Self {
        Self::with_provider(place, "offline", more)
    }

    pub(crate) fn with_provider(place: &Place, provider: &str, more: &[&str]) -> Self {
        let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
        let arguments = [&["host", "--provider", provider, "--store", &store], more].concat();
        Self::of(place, place.command(&arguments).stderr(Stdio::inherit()))
    }

    /// With its store where [`socket`] says.
    pub(crate) fn of(place: &Place, command: &mut Command) -> Self {
        let host = Self { child: command.spawn().expect("the host starts") };
        until("the socket of the host", || UnixStream::connect(socket(place)).ok());
        host
    }

    pub(crate) fn runtimes(&self) -> Vec<String> {
        runtimes_of(&self.child)
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }
}

/// The runtimes that a host has started, by their process ids.
pub(crate) fn runtimes_of(host: &Child) -> Vec<String> {
    let parent = host.id().to_string();
    let is_ours = |entry: &fs::DirEntry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let after_name = stat.rsplit(')').next().unwrap_or_default();
        let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        after_name.split_whitespace().nth(1) == Some(parent.as_str()) && line.contains("app-server")
    };
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    entries.filter(is_ours).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

impl Drop for RunningHost {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kill_9(process: &str) {
    let killed = Command::new("kill").args(["-9", process]).status().expect("kill runs");
    assert!(killed.success());
}

pub(crate) fn socket(place: &Place) -> PathBuf {
    place.root().join("tasks.sqlite.sock")
}

pub(crate) struct HostClient {
    input: BufReader<UnixStream>,
    output: UnixStream,
    /// Messages that nobody has waited for yet.
    pub(crate) heard: VecDeque<Value>,
    /// All messages, in their order.
    pub(crate) log: Vec<Value>,
    next_id: u64,
    /// The trace context that requests carry.
    pub(crate) trace: Option<Value>,
}

impl HostClient {
    pub(crate) fn connect(place: &Place) -> Self {
        Self::at(&socket(place))
    }

    /// A client that knows nothing of hosts.
    fn stock(place: &Place) -> Self {
        Self::stock_at(&socket(place), true)
    }

    pub(crate) fn stock_at(socket: &Path, is_experimental: bool) -> Self {
        let mut client = Self::over(socket);
        let info = json!({"name": "stock", "title": null, "version": "1"});
        let capabilities = json!({"experimentalApi": is_experimental});
        client.ask("initialize", &json!({"clientInfo": info, "capabilities": capabilities}));
        client
    }

    fn over(socket: &Path) -> Self {
        let output = UnixStream::connect(socket).expect("a host");
        output.set_read_timeout(Some(LIMIT)).expect("a limit");
        let input = BufReader::new(output.try_clone().expect("a copy"));
        Self { input, output, heard: VecDeque::new(), log: Vec::new(), next_id: 0, trace: None }
    }

    pub(crate) fn at(socket: &Path) -> Self {
        let (client, agreed) = Self::open(socket);
        assert_eq!(agreed["capabilities"]["host"]["version"], 1, "{agreed}");
        client
    }

    /// A client of a host or an app-server, and the answer to its `initialize`.
    pub(crate) fn open(socket: &Path) -> (Self, Value) {
        let mut client = Self::over(socket);
        let capabilities = json!({"experimentalApi": true, "host": {"versions": [1], "allTasks": true}});
        let info = json!({"name": "tests", "title": null, "version": "1"});
        let agreed = client.ask("initialize", &json!({"clientInfo": info, "capabilities": capabilities}));
        (client, agreed)
    }

    pub(crate) fn write(&mut self, message: &Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).expect("written");
    }

    pub(crate) fn read(&mut self) -> Value {
        self.read_while_there().expect("the host hung up")
    }

    fn read_while_there(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(0) => return None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            read => read.expect("a line in time"),
        };
        let message: Value = serde_json::from_str(&line).expect("JSON");
        self.log.push(message.clone());
        Some(message)
    }

    pub(crate) fn try_ask(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.ask_while_there(method, params).expect("the host hung up")
    }

    /// The answer; none when the server ends before it gives one.
    pub(crate) fn ask_while_there(&mut self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        self.next_id += 1;
        let id = self.next_id;
        let mut request = json!({"id": id, "method": method, "params": params});
        if let Some(trace) = &self.trace {
            request["trace"] = trace.clone();
        }
        self.output.write_all(format!("{request}\n").as_bytes()).ok()?;
        loop {
            let mut message = self.read_while_there()?;
            if message["id"] == id && message.get("method").is_none() {
                return Some(match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].take()),
                });
            }
            self.heard.push_back(message);
        }
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.try_ask(method, params).unwrap_or_else(|error| panic!("{method} was refused: {error}"))
    }

    /// The next message of this method.
    pub(crate) fn wait_for(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(at).expect("it is there");
        }
        loop {
            let message = self.read();
            if message["method"] == method {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    pub(crate) fn start_thread(&mut self, place: &Place, policy: &str) -> String {
        let params =
            json!({"cwd": place.folder(), "approvalPolicy": policy, "sandbox": "danger-full-access"});
        let started = self.ask("thread/start", &params);
        started["thread"]["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn turn(&mut self, thread: &str, text: &str, input_id: &str) -> Value {
        let input = json!([{"type": "text", "text": text}]);
        self.ask("turn/start", &json!({"threadId": thread, "input": input, "inputId": input_id}))["turn"]
            .take()
    }
}

/// A command whose runs are counted in a file.
pub(crate) fn job(place: &Place, more: &str) {
    fs::write(place.folder().join("job.sh"), format!("echo x >> runs\n{more}\n")).expect("written");
}

pub(crate) fn runs(place: &Place) -> usize {
    fs::read_to_string(place.folder().join("runs")).map_or(0, |text| text.lines().count())
}

pub(crate) fn command(place: &Place, arguments: &[&str]) -> crate::support::Ran {
    let url = format!("unix://{}", socket(place).display());
    let (name, rest) = arguments.split_first().expect("a command");
    place.run(&[&[*name, "--host", &url], rest].concat())
}

pub(crate) fn pending(place: &Place) -> Vec<Value> {
    let listed = command(place, &["pending", "--json"]).good();
    listed.document().as_array().cloned().expect("a list")
}

/// The first word of `oarlock pending`.
pub(crate) fn code(place: &Place) -> String {
    let shown = command(place, &["pending"]).good().out;
    shown.split_whitespace().next().expect("a code").to_owned()
}

pub(crate) fn state(place: &Place) -> String {
    let listed = command(place, &["tasks", "--json"]).good().document();
    listed[0]["state"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_turn_through_the_host_is_a_turn_of_an_app_server() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    assert_eq!(client.wait_for("thread/started")["params"]["thread"]["id"], thread.as_str());
    let turn = client.turn(&thread, "say hello", "i1");
    assert_eq!(turn["status"], "inProgress");
    assert_eq!(client.wait_for("turn/started")["params"]["turn"]["id"], turn["id"]);
    let completed = client.wait_for("turn/completed");
    assert_eq!(completed["params"]["turn"]["status"], "completed", "{completed}");
    let items: Vec<&str> = client
        .heard
        .iter()
        .filter(|message| message["method"] == "item/completed")
        .filter_map(|message| message["params"]["item"]["type"].as_str())
        .collect();
    assert_eq!(items.first(), Some(&"userMessage"), "{items:?}");
    assert!(items.contains(&"agentMessage"), "{items:?}");
    // Input that is known gets its first answer again.
    assert_eq!(client.turn(&thread, "say hello", "i1")["id"], turn["id"]);

    client.ask("thread/name/set", &json!({"threadId": thread, "name": "Greeting"}));
    let listed = client.ask("thread/list", &json!({}));
    assert_eq!((&listed["data"][0]["id"], &listed["data"][0]["name"]), (&json!(thread), &json!("Greeting")));
    assert_eq!(listed["data"][0]["modelProvider"], "offline", "{listed}");
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    let turns = read["thread"]["turns"].as_array().expect("turns");
    assert_eq!((turns.len(), &turns[0]["status"]), (1, &json!("completed")), "{read}");
    assert_eq!(turns[0]["items"][0]["id"], "i1", "the input's id is the message's");
    assert_eq!(client.ask("thread/loaded/list", &json!({}))["data"], json!([thread]));
    // Clients take a thread without a path for one that is not kept, and may name it by its path.
    let path = read["thread"]["path"].as_str().expect("a path").to_owned();
    assert!(path.ends_with(&format!("/{thread}.jsonl")) && !Path::new(&path).exists(), "{path}");
    let by_path = client.ask("thread/resume", &json!({"threadId": "", "path": path}));
    assert_eq!((&by_path["thread"]["id"], &by_path["thread"]["path"]), (&json!(thread), &json!(path)));
    let elsewhere = client.try_ask("thread/resume", &json!({"threadId": thread, "path": "/etc/passwd"}));
    assert!(elsewhere.expect_err("no thread")["message"].to_string().contains("path: "));

    let fork = client.ask("thread/fork", &json!({"threadId": "", "path": path}));
    assert_eq!(fork["thread"]["forkedFromId"], thread.as_str());
    assert_eq!(fork["thread"]["turns"].as_array().map(Vec::len), Some(1), "{fork}");
    let fork = fork["thread"]["id"].as_str().expect("an id").to_owned();
    client.turn(&fork, "say goodbye", "i1");
    client.wait_for("turn/completed");

    client.ask("thread/archive", &json!({"threadId": thread}));
    let refused = client.try_ask("thread/resume", &json!({"threadId": thread})).expect_err("archived");
    assert_eq!(refused["message"], format!("no rollout found for thread id {thread}"));
    client.ask("thread/unarchive", &json!({"threadId": thread}));
    let resumed = client.ask("thread/resume", &json!({"threadId": thread}));
    assert_eq!(resumed["thread"]["status"]["type"], "notLoaded", "no runtime is needed to look");
    let missing =
        client.try_ask("thread/start", &json!({"modelProvider": "elsewhere"})).expect_err("refused");
    assert!(missing["message"].as_str().is_some_and(|text| text.contains("modelProvider")), "{missing}");
}

#[test]
fn no_command_reaches_the_store_that_lies_in_its_folder() {
    let place = Place::new();
    let store = format!("sqlite:{}", place.folder().join("store.sqlite").display());
    let socket = place.folder().join("store.sqlite.sock");
    let arguments = ["host", "--provider", "offline", "--store", &store];
    let child = place.command(&arguments).stderr(Stdio::inherit()).spawn().expect("the host starts");
    let _host = RunningHost { child };
    until("the socket of the host", || UnixStream::connect(&socket).ok());
    let mut client = HostClient::at(&socket);
    let params = json!({"cwd": place.folder(), "approvalPolicy": "never", "sandbox": "workspace-write"});
    let started = client.ask("thread/start", &params);
    let thread = started["thread"]["id"].as_str().expect("an id").to_owned();
    let attempts = "for f in store.sqlite store.sqlite-wal store.sqlite-shm store.sqlite.lock; do \
                    head -c 4 $f > got-$f && test -s got-$f && echo read $f >> reached; \
                    (echo x >> $f) && echo wrote $f >> reached; mv $f moved && echo moved $f >> reached; done; \
                    echo x > store.sqlite-journal; echo tried > tried";
    fs::write(place.folder().join("attack.sh"), attempts).expect("written");
    client.turn(&thread, "Run `sh attack.sh`", "i1");
    let completed = client.wait_for("turn/completed");
    assert_eq!(completed["params"]["turn"]["status"], "completed", "{completed}");
    assert!(place.folder().join("tried").exists(), "the command ran: {completed}");
    assert_eq!(fs::read_to_string(place.folder().join("reached")).unwrap_or_default(), "");
    let planted = fs::read(place.folder().join("store.sqlite-journal")).unwrap_or_default();
    assert_eq!(planted, b"", "the store would be rolled back by it");
}

#[test]
fn what_waits_survives_a_kill_of_host_and_runtime_and_goes_on_by_a_decision() {
    let place = Place::new();
    job(&place, "");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    let operation = asked["params"]["operationId"].clone();
    assert!(operation.is_string(), "{asked}");
    // Not by this client and not now.
    client.write(&json!({"id": asked["id"], "result": {"decision": "defer"}}));
    until("the task to wait", || (state(&place) == "waiting").then_some(()));
    host.kill();
    drop(client);

    let host = RunningHost::start(&place, &[]);
    let waiting = pending(&place);
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!((&waiting[0]["operationId"], &waiting[0]["state"]), (&operation, &json!("proposed")));
    assert_eq!(host.runtimes(), Vec::<String>::new(), "it waits without a process");
    let shown = command(&place, &["pending"]).good().out;
    assert!(shown.contains("sh job.sh") && shown.contains("oarlock approve"), "{shown}");
    assert_eq!((state(&place).as_str(), runs(&place)), ("waiting", 0));

    let mut client = HostClient::connect(&place);
    let mut decision = json!({
        "operationId": operation, "argumentsDigest": "sha256:other", "decision": {"type": "approve"},
    });
    let refused = client.try_ask("operation/decide", &decision).expect_err("another digest");
    assert_eq!(refused["data"]["code"], "digestMismatch", "{refused}");
    decision["argumentsDigest"] = waiting[0]["argumentsDigest"].clone();
    decision["decision"] = json!({"type": "retry"});
    let refused = client.try_ask("operation/decide", &decision).expect_err("not offered");
    assert_eq!(refused["data"]["code"], "decisionNotAvailable", "{refused}");
    for unclear in ["1", &code(&place)[..3]] {
        let refused = command(&place, &["approve", unclear]).bad();
        assert!(refused.err.contains("oarlock pending"), "{refused:?}");
    }
    command(&place, &["approve", &code(&place)]).good();
    decision["decision"] = json!({"type": "reject"});
    let refused = client.try_ask("operation/decide", &decision).expect_err("decided");
    assert_eq!(refused["data"]["code"], "alreadyDecided", "{refused}");
    assert_eq!(refused["data"]["by"], "client:oarlock_cli");

    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!((runs(&place), pending(&place).len()), (1, 0));
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"][0]["status"], "completed", "{read}");
}

#[test]
fn a_command_that_was_lost_with_its_runtime_is_unknown_and_not_run_again() {
    let place = Place::new();
    job(&place, "sleep 300");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "run sh job.sh", "i1");
    until("the command", || (runs(&place) == 1).then_some(()));
    for runtime in host.runtimes() {
        kill_9(&runtime);
    }
    let lost = until("the loss", || pending(&place).pop());
    assert_eq!(lost["state"], "unknown", "{lost}");
    assert_eq!(lost["availableDecisions"], json!(["retry", "respond", "reject"]));
    // Also across the end of the host.
    host.kill();
    let _host = RunningHost::start(&place, &[]);
    assert_eq!(pending(&place)[0]["state"], "unknown");
    assert_eq!(runs(&place), 1);
    // The script is another one now, and nobody approved that.
    job(&place, "echo more >> runs");
    command(&place, &["respond", &code(&place), "it had been done"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!((runs(&place), pending(&place).len()), (1, 0));
    let mut client = HostClient::connect(&place);
    let read = client.ask("thread/read", &json!({"threadId": thread, "includeTurns": true}));
    assert_eq!(read["thread"]["turns"][0]["status"], "completed", "{read}");
}

#[test]
fn a_host_that_adopts_nothing_leaves_a_turn_to_whoever_opens_it() {
    let place = Place::new();
    job(&place, "sleep 300");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "run sh job.sh", "i1");
    until("the command", || (runs(&place) == 1).then_some(()));
    host.kill();
    drop(client);
    let host = RunningHost::start(&place, &["--no-adopt"]);
    let mut client = HostClient::connect(&place);
    // By now another host would have started its runtime, and said what became of the command.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!((host.runtimes(), pending(&place)), (vec![], vec![]));
    client.ask("thread/resume", &json!({"threadId": thread}));
    let lost = until("the loss", || pending(&place).pop());
    assert_eq!((&lost["state"], runs(&place)), (&json!("unknown"), 1), "{lost}");
}

#[test]
fn a_runtime_that_dies_while_somebody_is_asked_is_brought_back_and_the_answer_counts() {
    let place = Place::new();
    job(&place, "");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let asked = client.wait_for(APPROVAL);
    let first = host.runtimes();
    kill_9(&first[0]);
    until("another runtime", || host.runtimes().first().filter(|next| **next != first[0]).cloned());
    client.write(&json!({"id": asked["id"], "result": {"decision": "accept"}}));
    assert_eq!(client.wait_for("turn/completed")["params"]["turn"]["status"], "completed");
    assert_eq!(runs(&place), 1);
}

#[test]
fn idle_runtimes_end_and_a_turn_that_waits_is_suspended() {
    let place = Place::new();
    job(&place, "");
    let host = RunningHost::start(&place, &["--idle-after", "0", "-c", "host.suspend_after=0"]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    until("the end of the idle runtime", || host.runtimes().is_empty().then_some(()));
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    until("the end of the suspended runtime", || host.runtimes().is_empty().then_some(()));
    assert_eq!(state(&place), "suspended");
    command(&place, &["reject", &code(&place), "--message", "not today"]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(&place), 0);
}

#[test]
fn a_suspended_task_gets_its_runtime_back_when_that_is_asked_for() {
    let place = Place::new();
    job(&place, "");
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    client.wait_for(APPROVAL);
    let by_id = json!({"threadId": thread});
    let suspended = client.ask("task/suspend", &by_id);
    assert_eq!(suspended["task"]["hasRuntime"], false, "{suspended}");
    assert_eq!((host.runtimes(), state(&place).as_str()), (vec![], "suspended"));
    let resumed = client.ask("task/resume", &by_id);
    assert_eq!(resumed["task"]["id"], json!(thread), "{resumed}");
    until("a runtime", || host.runtimes().first().cloned());
    until("the task", || {
        client.ask("task/read", &by_id)["task"]["hasRuntime"].as_bool().filter(|has_one| *has_one)
    });
    assert_eq!((pending(&place).len(), runs(&place)), (1, 0), "the question is the same one");
    command(&place, &["approve", &code(&place)]).good();
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(&place), 1);
    let nobody = client.try_ask("task/resume", &json!({"threadId": "0199b2f4-6c1e-7d30-9a41-5e0c8f2b7d16"}));
    assert_eq!(nobody.expect_err("no such task")["code"], -32600);
}

#[test]
fn the_hosts_of_a_store_are_listed_with_their_tasks() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let listed = client.ask("replica/list", &json!({}));
    let [replica] = listed["data"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
    assert_eq!((&replica["isThis"], &replica["isAlive"]), (&json!(true), &json!(true)), "{replica}");
    assert_eq!(replica["tasks"], 0);
    client.start_thread(&place, "never");
    let listed = client.ask("replica/list", &json!({}));
    assert_eq!(
        (&listed["data"][0]["id"], &listed["data"][0]["tasks"]),
        (&replica["id"], &json!(1)),
        "{listed}"
    );
}

#[test]
fn a_task_goes_by_its_name_and_another_command_may_run_in_its_place() {
    let place = Place::new();
    job(&place, "");
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.ask("thread/name/set", &json!({"threadId": thread, "name": "Nightly"}));
    client.turn(&thread, "run sh other.sh", "i1");
    client.wait_for(APPROVAL);
    let shown = command(&place, &["task", "show", "Nightly"]).good().out;
    assert!(shown.contains(&thread) && shown.contains("state      waiting\n"), "{shown}");
    assert!(shown.contains("| sh other.sh") && shown.contains("--command"), "{shown}");
    let by_beginning = command(&place, &["task", "show", &thread[..13], "--json"]).good().document();
    assert_eq!(by_beginning["task"]["id"], thread.as_str());
    let missed = command(&place, &["task", "show", "Nightyl"]).bad();
    assert!(missed.err.contains("did you mean `Nightly`?"), "{missed:?}");

    let url = format!("unix://{}", socket(&place).display());
    let words = |line: &[&str]| place.run(&[&["complete", "--"], line].concat()).good().out;
    assert_eq!(words(&["task", "--host", &url, "show", "Nig"]), "Nightly\n");
    let code = code(&place);
    assert_eq!(words(&["approve", "--host", &url, &code[..2]]), format!("{code}\n"));
    assert_eq!(words(&["approve", ""]), "", "no host answers");

    let told = command(&place, &["approve", &code, "--command", "sh job.sh"]).good().out;
    assert_eq!(told, "replace: sh job.sh\n");
    // It passes the policy again, which asks about everything here.
    if let Some(again) = until("the end, or a question", || match state(&place).as_str() {
        "idle" => Some(None),
        "waiting" => pending(&place).first().map(|_| Some(crate::host::code(&place))),
        _ => None,
    }) {
        command(&place, &["approve", &again]).good();
    }
    until("the end of the turn", || (state(&place) == "idle").then_some(()));
    assert_eq!(runs(&place), 1);
}

#[test]
fn a_second_host_finds_the_first_by_its_socket() {
    let place = Place::new();
    let _host = RunningHost::start(&place, &[]);
    let store = format!("sqlite:{}", place.root().join("tasks.sqlite").display());
    let second = place.run(&["host", "--provider", "offline", "--store", &store]).bad();
    assert!(second.err.contains("tasks.sqlite.sock"), "{second:?}");
    let by_store = place.run(&["tasks", "--store", &store]).good();
    assert_eq!(by_store.out, "no tasks yet\n");
    let nobody = place.run(&["pending"]).bad();
    assert!(nobody.err.contains("oarlock host"), "{nobody:?}");
}

/// Each command of the pages exists, with the words it is shown with.
#[test]
fn the_commands_of_the_pages_exist() {
    let pages =
        [include_str!("../../../../docs/host.md"), include_str!("../../../../docs/operating.md")].concat();
    let mut seen = 0;
    for line in pages.lines().filter_map(|line| line.strip_prefix("    oarlock ")) {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| *word != "&").collect();
        let place = Place::new();
        let name: Vec<&str> = match words.as_slice() {
            ["task", verb, ..] => vec!["task", verb],
            ["host", "audit", ..] => vec!["host", "audit"],
            [name, ..] => vec![name],
            [] => continue,
        };
        let help = place.run(&[name.as_slice(), &["--help"]].concat()).good().out;
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(flag), "{line}: no {flag} in\n{help}");
        }
        seen += 1;
    }
    assert!(seen >= 15, "{seen}");
}

/// A turn with one command; whether somebody was asked about it.
fn is_asked(client: &mut HostClient, thread: &str, text: &str, input_id: &str, decision: &str) -> bool {
    client.heard.clear();
    client.turn(thread, text, input_id);
    let mut asked = false;
    loop {
        let message = client.heard.pop_front().unwrap_or_else(|| client.read());
        if message["method"] == APPROVAL {
            asked = true;
            client.write(&json!({"id": message["id"], "result": {"decision": decision}}));
        }
        if message["method"] == "turn/completed" {
            assert_eq!(message["params"]["turn"]["status"], "completed", "{message}");
            return asked;
        }
    }
}

#[test]
fn what_was_approved_for_the_session_is_known_to_the_next_runtime_and_to_no_copy() {
    let place = Place::new();
    let host = RunningHost::start(&place, &["--idle-after", "0"]);
    let mut client = HostClient::connect(&place);
    let no_runtime = || until("no runtime", || host.runtimes().is_empty().then_some(()));
    let thread = client.start_thread(&place, "untrusted");
    assert!(is_asked(&mut client, &thread, "run touch once", "i1", "accept"));
    assert!(is_asked(&mut client, &thread, "run touch made", "i2", "acceptForSession"));
    no_runtime();
    assert!(!is_asked(&mut client, &thread, "run touch made", "i3", "decline"), "the next runtime knows");
    assert!(is_asked(&mut client, &thread, "run touch once", "i4", "accept"), "only what was approved");
    no_runtime();
    let fork = client.ask("thread/fork", &json!({"threadId": thread}));
    let fork = fork["thread"]["id"].as_str().expect("an id").to_owned();
    assert!(is_asked(&mut client, &fork, "run touch made", "i5", "accept"), "a copy has its own approvals");
}

#[test]
fn what_was_approved_for_the_session_while_nothing_ran_is_known_ever_after() {
    let place = Place::new();
    let host = RunningHost::start(&place, &["--idle-after", "0", "--suspend-after", "0"]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run touch made", "i1");
    until("the task to wait alone", || {
        (pending(&place).len() == 1 && host.runtimes().is_empty()).then_some(())
    });
    let waiting = pending(&place).remove(0);
    let decision = json!({"type": "approve", "scope": "session"});
    let params = json!({
        "operationId": waiting["operationId"], "argumentsDigest": waiting["argumentsDigest"], "decision": decision,
    });
    client.ask("operation/decide", &params);
    until("the end of the turn", || (state(&place) == "idle" && host.runtimes().is_empty()).then_some(()));
    assert!(!is_asked(&mut client, &thread, "run touch made", "i2", "decline"));
}

#[test]
fn an_error_of_a_client_is_a_no_unless_it_knows_how_to_say_no() {
    let place = Place::new();
    job(&place, "");
    let _host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "untrusted");
    client.turn(&thread, "run sh job.sh", "i1");
    let refuse = |client: &mut HostClient| {
        let asked = client.wait_for(APPROVAL);
        client.write(&json!({"id": asked["id"], "error": {"code": -32000, "message": "broken"}}));
        // Messages of a connection are taken in order.
        client.ask("thread/loaded/list", &json!({}));
    };
    refuse(&mut client);
    assert_eq!(pending(&place).len(), 1, "the operation waits for a decision");
    let mut stock = HostClient::stock(&place);
    let resumed = stock.ask("thread/resume", &json!({"threadId": thread}));
    assert_eq!(resumed.get("rolloutOrdinal"), None, "{resumed}");
    refuse(&mut stock);
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["turn"]["status"], "completed", "{ended}");
    let is_command = |message: &&Value| {
        message["method"] == "item/completed" && message["params"]["item"]["type"] == "commandExecution"
    };
    let command = client.heard.iter().find(is_command).expect("the item ended");
    assert_eq!(command["params"]["item"]["status"], "failed", "{command}");
    assert_eq!((runs(&place), pending(&place).len()), (0, 0));
}

#[test]
fn a_client_that_knows_no_hosts_resumes_into_a_loaded_thread() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "say hello", "i1");
    client.wait_for("turn/completed");
    host.kill();
    let host = RunningHost::start(&place, &[]);
    let by_id = json!({"threadId": thread});
    let mut client = HostClient::connect(&place);
    let status = |resumed: Value| resumed["thread"]["status"]["type"].clone();
    assert_eq!(status(client.ask("thread/resume", &by_id)), "notLoaded");
    assert!(host.runtimes().is_empty(), "nothing is started for whoever knows that there is nothing");
    let mut stock = HostClient::stock(&place);
    assert_eq!(status(stock.ask("thread/resume", &by_id)), "idle");
    assert_eq!(host.runtimes().len(), 1);
    assert_eq!(stock.ask("config/mcpServer/reload", &Value::Null), json!({}), "by the runtime that is up");
}

#[test]
fn a_detached_review_is_a_task_of_its_own() {
    let place = Place::new();
    let host = RunningHost::start(&place, &[]);
    let mut client = HostClient::connect(&place);
    let thread = client.start_thread(&place, "never");
    client.turn(&thread, "say hello", "i1");
    client.wait_for("turn/completed");
    let review = |instructions: &str| {
        let target = json!({"type": "custom", "instructions": instructions});
        json!({"threadId": thread, "target": target, "delivery": "detached"})
    };
    let refused = client.try_ask("review/start", &review(" ")).expect_err("nothing to review");
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("instructions")), "{refused}");
    assert_eq!(client.ask("task/list", &json!({}))["data"].as_array().map(Vec::len), Some(1));
    client.heard.clear();
    let begun = client.ask("review/start", &review("say fine"));
    let reviewed = begun["reviewThreadId"].as_str().expect("an id").to_owned();
    assert_ne!(reviewed, thread);
    assert_eq!(client.wait_for("thread/started")["params"]["thread"]["id"], reviewed.as_str());
    let ended = client.wait_for("turn/completed");
    assert_eq!(ended["params"]["threadId"], reviewed.as_str(), "{ended}");
    let listed = client.ask("thread/list", &json!({}))["data"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    host.kill();
}
