//! The host side of a client, well-behaved or not.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::{Client, string};
use crate::host::Host;

impl Client {
    /// From now on this serves the server's requests.
    pub(crate) fn attach(&mut self, host: Host) {
        self.host = Some(host);
    }

    pub(crate) fn host(&mut self) -> Result<&mut Host> {
        self.host.as_mut().context("nobody is the host")
    }

    /// Thread and id of the model request that the server makes next.
    pub(crate) fn model_request(&mut self) -> Result<(String, String)> {
        let before = self.host()?.carried.requests;
        let asked = |client: &mut Self| {
            let host = client.host.as_ref()?;
            host.newest().filter(|_| host.carried.requests > before)
        };
        self.wait_until(asked).context("the server asks no model")
    }

    /// The answer to this request, good or bad, if it comes within so long.
    pub(crate) fn answer_within(
        &mut self,
        id: u64,
        within: Duration,
    ) -> Result<Option<Result<Value, Value>>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some((_, answer)) = self.answers.remove(&id) {
                return Ok(Some(answer));
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.accept(&line)?,
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            }
        }
    }

    /// While this lock is held, the server's output is not read, apart from a read that is already under way.
    pub(crate) fn reading(&self) -> Arc<Mutex<()>> {
        Arc::clone(&self.reading)
    }

    /// Makes writing return instead of waiting for a server that does not read; see [`Client::write_some`].
    pub(crate) fn stop_waiting(&mut self) -> Result<()> {
        let input = self.input.as_ref().context("the input is closed")?;
        let flags = rustix::fs::fcntl_getfl(input)?;
        Ok(rustix::fs::fcntl_setfl(input, flags | OFlags::NONBLOCK)?)
    }

    /// How many of these bytes were taken; none when there is no room.
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> Result<usize> {
        match self.input.as_mut().context("the input is closed")?.write(bytes) {
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(_) => Err(self.ended()),
        }
    }

    /// A request of the server, for the host if there is one. Whatever else is asked is refused: a turn that needs it
    /// ends instead of hanging.
    pub(super) fn serve(&mut self, at: Instant, request: &Value) -> Result<()> {
        let served = match &mut self.host {
            Some(host) => host.serve(request, &mut self.next_id)?,
            None => None,
        };
        let lines = served.unwrap_or_else(|| {
            let message = format!("{} is not served here", string(&request["method"]));
            format!("{}\n", json!({"id": request["id"], "error": {"code": -32601, "message": message}}))
        });
        self.write_lines(&lines)?;
        if let Some(host) = self.host.as_mut().filter(|_| request["method"] == "model/request") {
            host.carried.inside += at.elapsed();
        }
        Ok(())
    }

    pub(super) fn accept_answer(&mut self, id: u64, at: Instant, result: Result<Value, Value>) -> Result<()> {
        let more = match &mut self.host {
            Some(host) => host.answered(id, &result, &mut self.next_id)?,
            None => None,
        };
        match more {
            Some(lines) => self.write_lines(&lines)?,
            None => drop(self.answers.insert(id, (at, result))),
        }
        Ok(())
    }
}
