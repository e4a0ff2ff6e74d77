//! The few things every measure does with a server, each checked.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::client::Client;
use crate::command::ServerCommand;
use crate::home::Home;
use crate::mock::Mock;
use crate::sse::Reply;
use crate::workload::Workload;

/// What lives as long as the run.
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
    workspace: String,
    /// From just before the process was started to the answer.
    pub(crate) initialize: Duration,
    pub(crate) user_agent: String,
}

/// The times of one completed turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TurnTimes {
    pub(crate) wall: Duration,
    pub(crate) inside_the_model: Duration,
}

impl Bench<'_> {
    pub(crate) fn home(&self) -> Result<Home> {
        Home::create(self.work, self.mock.port())
    }

    pub(crate) fn start(&self, command: &ServerCommand, home: &Home) -> Result<Session> {
        let begun = Instant::now();
        let mut client = Client::spawn(command, home, self.timeout)?;
        let params = json!({
            "clientInfo": {"name": "oarlock_bench", "title": "Oarlock bench", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": true}
        });
        let answer = client.call("initialize", &params)?;
        let initialize = answer.at - begun;
        client.notify("initialized")?;
        let user_agent =
            answer.result["userAgent"].as_str().context("initialize gave no userAgent")?.to_owned();
        let workspace = home.workspace().to_string_lossy().into_owned();
        Ok(Session { client, workspace, initialize, user_agent })
    }

    /// A turn that asks the model once and ends with the reply's text.
    pub(crate) fn turn(
        &self,
        session: &mut Session,
        thread: &str,
        text: &str,
        reply: &Arc<Reply>,
    ) -> Result<TurnTimes> {
        self.mock.serve(Arc::clone(reply));
        let before = self.mock.served();
        let begun = Instant::now();
        let request = session.begin_turn(thread, text)?;
        let end = session.end_turn(thread, request, reply)?;
        let inside_the_model = self.mock.served_since(before, 1)?;
        Ok(TurnTimes { wall: end - begun, inside_the_model })
    }
}

impl Session {
    /// Starts a thread; gives its id and how long that took.
    pub(crate) fn start_thread(&mut self) -> Result<(String, Duration)> {
        let begun = Instant::now();
        let answer = self.client.call("thread/start", &json!({"cwd": self.workspace}))?;
        let id = answer.result["thread"]["id"].as_str().context("thread/start gave no thread id")?;
        Ok((id.to_owned(), answer.at - begun))
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

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
