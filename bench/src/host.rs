//! The host's half of delegation: carries model requests with prepared replies and keeps records. Does everything
//! right and takes no time of its own for it, so that what is measured is the server's.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::outgoing::Outgoing;
use crate::sse::Reply;

/// Counts of what the host has done so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carried {
    /// Model requests.
    pub(crate) requests: usize,
    /// From each of them read to what there is credit for written, summed up.
    pub(crate) inside: Duration,
    /// Appends that something waited for.
    pub(crate) barriers: usize,
}

/// Whether appends to the record are acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    AtOnce,
    Never,
}

/// One for each connection, whichever threads it is the host of.
#[derive(Debug)]
pub(crate) struct Host {
    /// The last one stays.
    replies: VecDeque<Arc<Reply>>,
    stream: Option<Outgoing>,
    /// The next ordinal in the record of each thread.
    ordinals: HashMap<String, u64>,
    pub(crate) keeping: Keeping,
    /// The body of the newest model request.
    pub(crate) last_body: Value,
    pub(crate) carried: Carried,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self {
            replies: VecDeque::from([Arc::new(Reply::message("ok"))]),
            stream: None,
            ordinals: HashMap::new(),
            keeping: Keeping::AtOnce,
            last_body: Value::Null,
            carried: Carried::default(),
        }
    }

    /// Answers with each of these once, and with the last of them from then on.
    pub(crate) fn serve_in_turn(&mut self, replies: &[Arc<Reply>]) {
        self.replies = replies.iter().cloned().collect();
    }

    /// Thread and id of the newest model request.
    pub(crate) fn newest(&self) -> Option<(String, String)> {
        self.stream.as_ref().map(|stream| (stream.thread().to_owned(), stream.request().to_owned()))
    }

    /// The lines that a request of the server leads to; nothing if it is no duty of a host.
    pub(crate) fn serve(&mut self, request: &Value, next_id: &mut u64) -> Result<Option<String>> {
        let params = &request["params"];
        let result = match request["method"].as_str() {
            Some("model/request") => {
                let reply = match self.replies.len() {
                    0 | 1 => self.replies.front().cloned(),
                    _ => self.replies.pop_front(),
                };
                self.carried.requests += 1;
                let mut stream = Outgoing::new(params, reply.context("no reply is prepared")?)?;
                let accepted = json!({"disposition": "accepted", "provider": "bench", "model": "mock-model"});
                let lines = format!("{}{}", answer(request, &accepted), stream.lines(next_id));
                self.stream = Some(stream);
                self.last_body = params["body"].clone();
                return Ok(Some(lines));
            }
            Some("model/cancel") => json!({"disposition": "alreadyTerminal"}),
            Some("rollout/append") => {
                let next = self.append(params)?;
                if self.keeping == Keeping::Never {
                    return Ok(Some(String::new()));
                }
                json!({"nextOrdinal": next})
            }
            _ => return Ok(None),
        };
        Ok(Some(answer(request, &result)))
    }

    /// Checks that the records continue those before, and returns the next ordinal.
    fn append(&mut self, params: &Value) -> Result<u64> {
        let thread = params["threadId"].as_str().context("an append without threadId")?;
        let items = params["items"].as_array().context("an append without items")?;
        let next = self.ordinals.entry(thread.to_owned()).or_default();
        ensure!(
            params["fromOrdinal"] == *next,
            "the record goes on at {} and not at {next}",
            params["fromOrdinal"]
        );
        *next += items.len() as u64;
        self.carried.barriers += usize::from(!params["barrier"].is_null());
        Ok(*next)
    }

    /// The lines that an answer of the server leads to; nothing if it answers no batch.
    pub(crate) fn answered(
        &mut self,
        id: u64,
        answer: &Result<Value, Value>,
        next_id: &mut u64,
    ) -> Result<Option<String>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        Ok(if stream.answered(id, answer)? { Some(stream.lines(next_id)) } else { None })
    }
}

fn answer(request: &Value, result: &Value) -> String {
    format!("{}\n", json!({"id": request["id"], "result": result}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(from: u64, count: usize, barrier: Option<&str>) -> Value {
        let items = vec![json!({}); count];
        let params = json!({"threadId": "t", "fromOrdinal": from, "items": items, "barrier": barrier});
        json!({"id": 3, "method": "rollout/append", "params": params})
    }

    #[test]
    fn a_record_has_no_gaps_and_its_barriers_are_counted() {
        let (mut host, mut id) = (Host::new(), 1);
        let mut told = |request: &Value| host.serve(request, &mut id).map_err(|error| error.to_string());
        let next =
            |ordinal: u64| Ok(Some(format!("{{\"id\":3,\"result\":{{\"nextOrdinal\":{ordinal}}}}}\n")));
        assert_eq!(told(&append(0, 2, Some("userInput"))), next(2));
        assert_eq!(told(&append(2, 1, None)), next(3));
        assert_eq!(told(&append(4, 1, None)), Err("the record goes on at 4 and not at 3".to_owned()));
        assert_eq!(host.carried.barriers, 1);
        host.keeping = Keeping::Never;
        assert_eq!(host.serve(&append(3, 1, None), &mut id).expect("sound"), Some(String::new()));
    }

    #[test]
    fn a_request_is_accepted_before_its_events_and_other_questions_are_not_served() {
        let (mut host, mut id) = (Host::new(), 8);
        let window = json!({"events": 256, "bytes": 1 << 20});
        let params = json!({"threadId": "t", "modelRequestId": "r", "window": window});
        let asked = json!({"id": 5, "method": "model/request", "params": params});
        let lines = host.serve(&asked, &mut id).expect("sound").expect("a duty");
        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((&lines[0]["id"], &lines[0]["result"]["disposition"]), (&json!(5), &json!("accepted")));
        assert_eq!((&lines[1]["id"], &lines[1]["method"]), (&json!(8), &json!("model/streamEvent")));
        assert_eq!((lines.len(), id, host.carried.requests), (2, 9, 1));
        assert_eq!(host.newest(), Some(("t".to_owned(), "r".to_owned())));
        let other = json!({"id": 6, "method": "item/tool/call", "params": {}});
        assert_eq!(host.serve(&other, &mut id).expect("sound"), None);
    }
}
