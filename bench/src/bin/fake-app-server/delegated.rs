//! Turns whose model requests the host carries.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::{Said, Server};

/// The window: how much a host may send before an acknowledgement.
const EVENTS: usize = 256;
const BYTES: usize = 1 << 20;

/// More than the longest stream that is measured; of a flood this is the beginning.
const REMEMBERED: usize = 4 << 20;

impl Server {
    /// Asks the host until it says something instead of calling for a command.
    pub(crate) fn converse_with_host(&mut self, thread: &str) -> Result<Said> {
        self.barrier(thread, "userInput")?;
        let mut input = Vec::new();
        let ended = loop {
            let said = self.ask_host(thread, &input)?;
            let Some((call_id, command)) = &said.call else { break said };
            self.barrier(thread, "operationStarted")?;
            input.push(self.output_of(call_id, command)?);
            self.barrier(thread, "operationFinished")?;
        };
        self.barrier(thread, "turnEnded")?;
        Ok(ended)
    }

    /// One request and its events. A host that never ends them is never answered anything else.
    fn ask_host(&mut self, thread: &str, input: &[Value]) -> Result<Said> {
        let window = json!({"events": EVENTS, "bytes": BYTES});
        let body = json!({"input": input});
        let params = json!({"threadId": thread, "modelRequestId": "request", "body": body, "window": window});
        let accepted = self.ask("model/request", &params)?;
        if accepted["disposition"] != "accepted" {
            bail!("the host carries no request: {accepted}");
        }
        // Where the host keeps the record, no more is taken than it would be told of at once.
        let is_recorded = self.delegated.get(thread).is_some_and(Option::is_some);
        let (mut said, mut next, mut taken, mut hoard) = (Said::default(), 0, 0, Vec::new());
        loop {
            let line = self.lines.next().context("the host is gone")??;
            let message: Value = serde_json::from_str(&line)?;
            let events = message["params"]["events"].as_array().context("no batch")?;
            let is_full = is_recorded && taken >= BYTES && !self.flaws.hoard_events;
            if message["params"]["seq"] != next || is_full {
                let data = json!({"code": "creditExceeded", "nextSeq": next});
                self.send(&json!({"id": message["id"], "error": {"code": -32602, "data": data}}))?;
                self.flush()?;
                continue;
            }
            (next, taken) = (next + events.len(), taken + line.len());
            let credit = json!({"events": EVENTS, "bytes": BYTES});
            self.send(&json!({"id": message["id"], "result": {"nextSeq": next, "credit": credit}}))?;
            self.flush()?;
            let is_last = events.last().is_some_and(|event| event["type"] == "response.completed");
            for event in events.iter().filter(|_| taken <= REMEMBERED) {
                said.hear(&event.to_string())?;
            }
            if self.flaws.hoard_events {
                hoard.push(line);
            }
            if is_last {
                drop(std::hint::black_box(hoard));
                return Ok(said);
            }
        }
    }

    /// A record that the host must have before anything else happens.
    fn barrier(&mut self, thread: &str, barrier: &str) -> Result<()> {
        let Some(Some(ordinal)) = self.delegated.get_mut(thread) else { return Ok(()) };
        let from = *ordinal + u64::from(self.flaws.lose_records);
        *ordinal = from + 1;
        let params = json!({"threadId": thread, "fromOrdinal": from, "items": [{}], "barrier": barrier});
        self.ask("rollout/append", &params)?;
        thread::sleep(Duration::from_millis(self.flaws.slow_barrier_ms));
        Ok(())
    }

    /// A request to the host. It must not send anything else before its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        self.send(&json!({"id": "ask", "method": method, "params": params}))?;
        self.flush()?;
        let line = self.lines.next().context("the host is gone")??;
        let mut answer: Value = serde_json::from_str(&line)?;
        if answer["id"] != "ask" {
            bail!("no answer to {method}: {answer}");
        }
        Ok(answer["result"].take())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(std::io::Write::flush(&mut self.out)?)
    }
}
