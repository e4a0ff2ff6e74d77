//! The few things every measure does with a server, each checked.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::Client;
use crate::command::ServerCommand;
use crate::home::{Home, SandboxMode};
use crate::mock::Mock;
use crate::sse::{MockWire, Reply};
use crate::workload::Workload;

/// State that lives as long as the run.
#[derive(Debug)]
pub(crate) struct Bench<'run> {
    pub(crate) mock: &'run Mock,
    pub(crate) work: &'run Path,
    pub(crate) workload: Workload,
    /// Bytes of an HTTP chunk of a streamed reply; nothing for the whole reply in one.
    pub(crate) chunk: Option<NonZeroUsize>,
    /// A server that was silent for this long is at rest.
    pub(crate) quiet: Duration,
    /// How long one answer or one turn may take.
    pub(crate) timeout: Duration,
}

/// A started server that has answered `initialize`.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) workspace: String,
    /// From just before the process was started to the answer.
    pub(crate) initialize: Duration,
    pub(crate) user_agent: String,
    /// Whether it agreed to full delegation, if it was asked to.
    pub(crate) delegates: bool,
}

/// The times of one completed turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTimes {
    pub(crate) wall: Duration,
    pub(crate) inside_the_model: Duration,
}

impl Bench<'_> {
    pub(crate) fn home(&self) -> Result<Home> {
        self.home_with(SandboxMode::FullAccess)
    }

    pub(crate) fn home_with(&self, sandbox: SandboxMode) -> Result<Home> {
        Home::create(self.work, self.mock.port(), sandbox)
    }

    /// A home with a provider for each wire.
    pub(crate) fn home_with_wires(&self) -> Result<Home> {
        Home::create_with_wires(self.work, self.mock.port())
    }

    pub(crate) fn start(&self, command: &ServerCommand, home: &Home) -> Result<Session> {
        self.start_with(command, home, &json!({"experimentalApi": true}))
    }

    pub(crate) fn start_with(
        &self,
        command: &ServerCommand,
        home: &Home,
        capabilities: &Value,
    ) -> Result<Session> {
        let begun = Instant::now();
        let mut client = Client::spawn(command, home, self.timeout)?;
        let params = json!({
            "clientInfo": {"name": "oarlock_bench", "title": "Oarlock bench", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": capabilities
        });
        let answer = client.call("initialize", &params)?;
        let initialize = answer.at - begun;
        client.notify("initialized")?;
        let user_agent =
            answer.result["userAgent"].as_str().context("initialize gave no userAgent")?.to_owned();
        let workspace = home.workspace().to_string_lossy().into_owned();
        let delegates = answer.result["capabilities"]["hostDelegation"].is_object();
        Ok(Session { client, workspace, initialize, user_agent, delegates })
    }

    /// A turn that asks the model once and ends with the reply's text.
    pub(crate) fn turn(
        &self,
        session: &mut Session,
        thread: &str,
        text: &str,
        reply: &Arc<Reply>,
    ) -> Result<TurnTimes> {
        self.turn_of(session, thread, text, &[Arc::clone(reply)])
    }

    /// A turn that asks the model once for each of these replies and ends with the last one's text.
    fn turn_of(
        &self,
        session: &mut Session,
        thread: &str,
        text: &str,
        replies: &[Arc<Reply>],
    ) -> Result<TurnTimes> {
        let last = replies.last().context("a turn without replies")?;
        self.mock.serve_in_turn(replies);
        let before = self.mock.served();
        let begun = Instant::now();
        let request = session.begin_turn(thread, text)?;
        let end = session.end_turn(thread, request, last)?;
        let inside_the_model = self.mock.served_since(before, replies.len())?;
        Ok(TurnTimes { wall: end - begun, inside_the_model })
    }

    /// A turn in which the model has this command run and then says "ok". The number makes the call's id.
    pub(crate) fn command_turn(
        &self,
        session: &mut Session,
        thread: &str,
        number: usize,
        command: &str,
    ) -> Result<TurnTimes> {
        let (call_id, replies) = command_replies(number, command);
        let times = self.turn_of(session, thread, "run it", &replies)?;
        let request: Value =
            serde_json::from_slice(&self.mock.last_request()).context("the last request is not JSON")?;
        check_success(&request, &call_id)?;
        Ok(times)
    }
}

impl TurnTimes {
    /// The milliseconds that the server adds to those of the model.
    pub(crate) fn net(self) -> f64 {
        milliseconds(self.wall.saturating_sub(self.inside_the_model))
    }
}

impl Session {
    /// Starts a thread; gives its id and how long that took.
    pub(crate) fn start_thread(&mut self) -> Result<(String, Duration)> {
        self.start_thread_with(json!({}))
    }

    pub(crate) fn start_thread_with(&mut self, mut params: Value) -> Result<(String, Duration)> {
        params["cwd"] = self.workspace.as_str().into();
        let begun = Instant::now();
        let answer = self.client.call("thread/start", &params)?;
        let id = answer.result["thread"]["id"].as_str().context("thread/start gave no thread id")?;
        Ok((id.to_owned(), answer.at - begun))
    }

    /// Starts a thread whose model is asked by this wire. The home has to have a provider for it.
    pub(crate) fn start_thread_on(&mut self, wire: MockWire) -> Result<String> {
        Ok(self.start_thread_with(json!({"modelProvider": wire.name()}))?.0)
    }

    /// Asks for a turn without waiting for anything; gives the id of the request.
    pub(crate) fn begin_turn(&mut self, thread: &str, text: &str) -> Result<u64> {
        let params = json!({"threadId": thread, "input": [{"type": "text", "text": text}]});
        self.client.send("turn/start", &params)
    }

    /// When the turn completed. One that failed is fast, but it is not the same work.
    pub(crate) fn end_turn(&mut self, thread: &str, request: u64, reply: &Reply) -> Result<Instant> {
        let end = self.client.turn_end(thread, request)?;
        ensure!(end.status == "completed", "the turn ended as {:?}: {}", end.status, end.error);
        let text = self.client.take_agent_text(thread).context("the turn brought no message")?;
        ensure!(*text == *reply.text, "the message is not the model's: {} bytes", text.len());
        Ok(end.at)
    }

    /// Calls and gives the result with the milliseconds it took.
    pub(crate) fn timed_call(&mut self, method: &str, params: &Value) -> Result<(f64, Value)> {
        let begun = Instant::now();
        let answer = self.client.call(method, params)?;
        Ok((milliseconds(answer.at - begun), answer.result))
    }
}

/// The id of a call of this command, and what the model says: the call, and then "ok".
pub(crate) fn command_replies(number: usize, command: &str) -> (String, [Arc<Reply>; 2]) {
    let call_id = format!("call_{number}");
    // The longest wait there is: a command that has not ended by then is one that was not run.
    let arguments = json!({"cmd": command, "yield_time_ms": 30_000});
    let replies = [Reply::call(&call_id, "exec_command", &arguments), Reply::message("ok")];
    (call_id, replies.map(Arc::new))
}

/// Whether the model was told that the command of this call ended well.
pub(crate) fn check_success(request: &Value, call_id: &str) -> Result<()> {
    let items = request["input"].as_array().context("the last request has no input")?;
    let output = items
        .iter()
        .find(|item| item["type"] == "function_call_output" && item["call_id"] == call_id)
        .with_context(|| format!("the model was told nothing about {call_id}"))?["output"]
        .to_string();
    let beginning: String = output.chars().take(300).collect();
    ensure!(output.contains("Process exited with code 0"), "the command did not end well: {beginning}");
    Ok(())
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &Value, words: &str) {
        let item = json!({"type": "function_call_output", "call_id": "call_1", "output": output});
        let request = json!({"input": [{"type": "message"}, item]});
        let outcome = check_success(&request, "call_1").map_err(|error| error.to_string());
        assert!(outcome.as_ref().err().map_or("", String::as_str).starts_with(words), "{outcome:?}");
        assert_eq!(outcome.is_ok(), words.is_empty());
    }

    #[test]
    fn only_an_exit_with_zero_counts() {
        check(&json!("Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"), "");
        check(&json!("Process exited with code 1\n"), "the command did not end well");
        check(&json!("Process running with session ID 3\n"), "the command did not end well");
        check(&Value::Null, "the command did not end well");
        let other = check_success(&json!({"input": []}), "call_1").expect_err("nothing was told");
        assert_eq!(other.to_string(), "the model was told nothing about call_1");
    }
}
