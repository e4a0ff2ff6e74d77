//! One server process and the JSON-RPC conversation with it over its pipes.

mod as_host;
mod reader;

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use self::reader::{Line, read_log, read_output};
use crate::command::ServerCommand;
use crate::flood::Flood;
use crate::home::Home;
use crate::host::Host;

/// How long a server may take to end after its input has.
const GRACE: Duration = Duration::from_secs(2);

/// An answer, and when it arrived.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) at: Instant,
    pub(crate) result: Value,
}

/// How a turn ended.
#[derive(Debug)]
pub(crate) struct TurnEnd {
    pub(crate) at: Instant,
    pub(crate) status: String,
    pub(crate) error: Value,
}

/// A running server; ended with everything it started when dropped.
#[derive(Debug)]
pub(crate) struct Client {
    process: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Line>,
    readers: Vec<JoinHandle<()>>,
    flood: Arc<Mutex<Option<Flood>>>,
    /// Whoever holds it leaves the server's output unread.
    reading: Arc<Mutex<()>>,
    log: Arc<Mutex<VecDeque<String>>>,
    timeout: Duration,
    next_id: u64,
    /// Serves the server's requests, if the client is a host.
    host: Option<Host>,
    answers: HashMap<u64, (Instant, Result<Value, Value>)>,
    turn_ends: HashMap<String, TurnEnd>,
    agent_texts: HashMap<String, String>,
}

impl Client {
    pub(crate) fn spawn(command: &ServerCommand, home: &Home, timeout: Duration) -> Result<Self> {
        let mut process = Command::new(&command.program)
            .args(&command.arguments)
            .current_dir(home.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.user_home())
            .env("CODEX_HOME", home.codex_home())
            .envs([("SHELL", "/bin/bash"), ("LANG", "C.UTF-8"), ("USER", "bench"), ("TZ", "Etc/UTC")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("{} cannot be started", command.program))?;
        let (input, output) = (process.stdin.take(), process.stdout.take());
        let errors = process.stderr.take();
        let (sender, lines) = channel();
        let (flood, reading, log) = (Arc::default(), Arc::default(), Arc::default());
        let mut readers = Vec::new();
        if let (Some(output), Some(errors)) = (output, errors) {
            let (for_output, gate) = (Arc::clone(&flood), Arc::clone(&reading));
            let for_errors = Arc::clone(&log);
            readers.push(thread::spawn(move || read_output(output, &sender, &for_output, &gate)));
            readers.push(thread::spawn(move || read_log(errors, &for_errors)));
        }
        Ok(Self {
            process,
            input,
            lines,
            readers,
            flood,
            reading,
            log,
            timeout,
            next_id: 1,
            host: None,
            answers: HashMap::new(),
            turn_ends: HashMap::new(),
            agent_texts: HashMap::new(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a request and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        let id = self.take_id();
        self.write(&json!({"id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    pub(crate) fn notify(&mut self, method: &str) -> Result<()> {
        self.write(&json!({"method": method}))
    }

    /// Sends a request and waits for its result.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Answer> {
        let id = self.send(method, params)?;
        self.answer(id).with_context(|| format!("{method} failed"))
    }

    /// An id for a request that is written by hand.
    pub(crate) fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    pub(crate) fn answer(&mut self, id: u64) -> Result<Answer> {
        let (at, result) = self.wait_until(|client| client.answers.remove(&id))?;
        match result {
            Ok(result) => Ok(Answer { at, result }),
            Err(error) => bail!("the server answered with the error {error}"),
        }
    }

    /// The end of the turn that this request started on this thread. Each end is given out once.
    pub(crate) fn turn_end(&mut self, thread: &str, request: u64) -> Result<TurnEnd> {
        self.wait_until(|client| {
            // A refused turn never ends, so the refusal is as good as an end.
            if let Some((_, Err(error))) = client.answers.get(&request) {
                return Some(Err(anyhow!("turn/start was refused: {error}")));
            }
            let end = client.turn_ends.remove(thread)?;
            client.answers.remove(&request);
            Some(Ok(end))
        })
        .context("the turn did not end")?
    }

    /// The last whole message of the model on this thread. It is given out once.
    pub(crate) fn take_agent_text(&mut self, thread: &str) -> Option<String> {
        self.agent_texts.remove(thread)
    }

    /// From now on deltas are checked by this and go no further.
    pub(crate) fn watch(&mut self, flood: Flood) {
        *self.flood.lock() = Some(flood);
    }

    /// Ends the watch. All that was sent before a turn's end has been seen when that end has.
    pub(crate) fn take_flood(&mut self) -> Result<Flood> {
        self.flood.lock().take().context("no flood is watched")
    }

    /// Waits until the server has been silent for so long: it is at rest.
    pub(crate) fn settle(&mut self, quiet: Duration) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        while Instant::now() < deadline {
            match self.lines.recv_timeout(quiet) {
                Ok(line) => self.accept(&line)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
        bail!("the server does not come to rest")
    }

    /// Ends the server the polite way, by the end of its input, and whatever is left of it the other way.
    pub(crate) fn close(self) {
        drop(self);
    }

    /// Once; the number of a process that is gone may already be another's.
    fn stop(&mut self) {
        if self.readers.is_empty() {
            return;
        }
        self.input = None;
        let deadline = Instant::now() + GRACE;
        while !self.has_exited() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
        // The group outlives its leader while a child of it runs.
        if let Some(group) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }

    fn has_exited(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        self.write_lines(&format!("{message}\n"))
    }

    pub(crate) fn write_lines(&mut self, line: &str) -> Result<()> {
        let written = self.input.as_mut().map(|input| input.write_all(line.as_bytes()));
        if matches!(written, Some(Ok(()))) { Ok(()) } else { Err(self.ended()) }
    }

    fn wait_until<T>(&mut self, mut found: impl FnMut(&mut Self) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + self.timeout;
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.accept(&line)?,
                Err(RecvTimeoutError::Timeout) => bail!("no answer within {} s", self.timeout.as_secs()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// Sorts one message in; what nobody waits for is dropped.
    fn accept(&mut self, line: &Line) -> Result<()> {
        let mut message: Value = serde_json::from_slice(&line.bytes)
            .with_context(|| format!("not JSON: {}", String::from_utf8_lossy(&line.bytes)))?;
        let id = message["id"].clone();
        match (message["method"].as_str(), id.is_null()) {
            (Some("turn/completed"), true) => self.accept_turn_end(line.at, &mut message["params"]),
            (Some("item/completed"), true) => self.accept_item(&mut message["params"]),
            (Some(_), true) => {}
            (Some(_), false) => self.serve(line.at, &message)?,
            (None, _) => {
                if let Some(id) = id.as_u64() {
                    let result = match message["error"].take() {
                        Value::Null => Ok(message["result"].take()),
                        error => Err(error),
                    };
                    self.accept_answer(id, line.at, result)?;
                }
            }
        }
        Ok(())
    }

    fn accept_turn_end(&mut self, at: Instant, params: &mut Value) {
        let (thread, turn) = (string(&params["threadId"]), &mut params["turn"]);
        let end = TurnEnd { at, status: string(&turn["status"]), error: turn["error"].take() };
        self.turn_ends.insert(thread, end);
    }

    fn accept_item(&mut self, params: &mut Value) {
        if params["item"]["type"] == "agentMessage" {
            self.agent_texts.insert(string(&params["threadId"]), string(&params["item"]["text"]));
        }
    }

    /// Stops what is left, so that the log is complete.
    fn ended(&mut self) -> anyhow::Error {
        self.stop();
        let log: Vec<String> = self.log.lock().iter().cloned().collect();
        anyhow!("the server ended; its log ends with: {}", log.join(" | "))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop();
    }
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
