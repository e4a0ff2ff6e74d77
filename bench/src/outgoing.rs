//! One delegated stream on its way to the server: what was sent, what was acknowledged, what may be sent.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::sse::Reply;

/// Limits of a batch; a larger event goes alone.
const BATCH_EVENTS: usize = 64;
const BATCH_BYTES: usize = 32 * 1024;

/// Sends batches ahead of their acknowledgements, as far as there is credit.
#[derive(Debug)]
pub(crate) struct Outgoing {
    thread: String,
    request: String,
    reply: Arc<Reply>,
    /// Bytes of all events before each, and of all.
    bytes_before: Vec<usize>,
    sent: usize,
    acknowledged: usize,
    /// There is credit for the events before this one, and for so many bytes from the first.
    event_limit: usize,
    byte_limit: usize,
    unanswered: HashSet<u64>,
}

impl Outgoing {
    /// For a `model/request` with these params.
    pub(crate) fn new(params: &Value, reply: Arc<Reply>) -> Result<Self> {
        let mut total = 0;
        let lengths = reply.events.iter().map(String::len);
        let bytes_before = [0].into_iter().chain(lengths.map(|length| (total += length, total).1)).collect();
        Ok(Self {
            thread: text(params, "threadId")?,
            request: text(params, "modelRequestId")?,
            reply,
            bytes_before,
            sent: 0,
            acknowledged: 0,
            event_limit: number(&params["window"], "events")?,
            byte_limit: number(&params["window"], "bytes")?,
            unanswered: HashSet::new(),
        })
    }

    pub(crate) fn thread(&self) -> &str {
        &self.thread
    }

    pub(crate) fn request(&self) -> &str {
        &self.request
    }

    /// The lines that may go out now.
    pub(crate) fn lines(&mut self, next_id: &mut u64) -> String {
        let mut lines = String::new();
        loop {
            let (from, to) = (self.sent, self.batch_end());
            if to == from {
                return lines;
            }
            batch(&mut lines, *next_id, (&self.thread, &self.request), from, &self.reply.events[from..to]);
            self.unanswered.insert(*next_id);
            *next_id += 1;
            self.sent = to;
        }
    }

    /// How far the next batch goes.
    fn batch_end(&self) -> usize {
        let most = self.reply.events.len().min(self.event_limit).min(self.sent + BATCH_EVENTS);
        if most <= self.sent {
            return self.sent;
        }
        let start = self.bytes_before[self.sent];
        let limit = self.byte_limit.min(start + BATCH_BYTES);
        let fitting = self.bytes_before[self.sent + 1..=most].partition_point(|bytes| *bytes <= limit);
        // An event larger than the whole window is sent when nothing else is under way.
        let alone = self.bytes_before[self.sent + 1] <= self.byte_limit || self.acknowledged == self.sent;
        self.sent + fitting.max(usize::from(alone))
    }

    /// Takes the answer to one of its batches; false if the id is none of theirs. A host that keeps to its credit is
    /// refused nothing.
    pub(crate) fn answered(&mut self, id: u64, answer: &Result<Value, Value>) -> Result<bool> {
        if !self.unanswered.remove(&id) {
            return Ok(false);
        }
        let acknowledged = match answer {
            Ok(acknowledged) => acknowledged,
            Err(error) => bail!("a batch was refused: {error}"),
        };
        let next = number(acknowledged, "nextSeq")?;
        ensure!((self.acknowledged..=self.sent).contains(&next), "nextSeq {next} after {} events", self.sent);
        self.acknowledged = next;
        self.event_limit = next + number(&acknowledged["credit"], "events")?;
        self.byte_limit = self.bytes_before[next] + number(&acknowledged["credit"], "bytes")?;
        Ok(true)
    }
}

/// Adds the line of a batch. Texts of events go in as they are.
pub(crate) fn batch(line: &mut String, id: u64, of: (&str, &str), seq: usize, events: &[String]) {
    let (thread, request) = of;
    // Writing to a String cannot fail, and the server's own ids need no escapes.
    let _ = write!(
        line,
        r#"{{"id":{id},"method":"model/streamEvent","params":{{"threadId":"{thread}","modelRequestId":"{request}","seq":{seq},"events":["#
    );
    for (index, event) in events.iter().enumerate() {
        line.push_str(if index == 0 { "" } else { "," });
        line.push_str(event);
    }
    line.push_str("]}}\n");
}

fn text(value: &Value, field: &str) -> Result<String> {
    Ok(value[field].as_str().with_context(|| format!("no {field} in {value}"))?.to_owned())
}

fn number(value: &Value, field: &str) -> Result<usize> {
    let number = value[field].as_u64().with_context(|| format!("no {field} in {value}"))?;
    Ok(usize::try_from(number)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(deltas: usize, events: usize, bytes: usize) -> Outgoing {
        let window = json!({"events": events, "bytes": bytes});
        let params = json!({"threadId": "t", "modelRequestId": "r", "window": window});
        Outgoing::new(&params, Arc::new(Reply::stream(deltas, None))).expect("params")
    }

    /// First and last event of every batch.
    fn batches(lines: &str) -> Vec<(u64, u64)> {
        let batch = |line: &str| {
            let message: Value = serde_json::from_str(line).expect("JSON");
            let (seq, events) = (&message["params"]["seq"], &message["params"]["events"]);
            let seq = seq.as_u64().expect("a number");
            (seq, seq + events.as_array().expect("events").len() as u64 - 1)
        };
        lines.lines().map(batch).collect()
    }

    fn acknowledge(stream: &mut Outgoing, id: u64, next: usize, events: usize, bytes: usize) {
        let answer = json!({"nextSeq": next, "credit": {"events": events, "bytes": bytes}});
        assert!(stream.answered(id, &Ok(answer)).expect("sound"));
    }

    #[test]
    fn batches_go_ahead_as_far_as_there_is_credit() {
        let (mut stream, mut id) = (open(1_000, 100, 1 << 20), 7);
        assert_eq!(batches(&stream.lines(&mut id)), [(0, 63), (64, 99)]);
        assert_eq!(batches(&stream.lines(&mut id)), []);
        acknowledge(&mut stream, 7, 64, 36, 1 << 20);
        assert_eq!(batches(&stream.lines(&mut id)), [], "those are under way");
        acknowledge(&mut stream, 8, 100, 50, 1 << 20);
        assert_eq!(batches(&stream.lines(&mut id)), [(100, 149)]);
        assert!(!stream.answered(8, &Ok(Value::Null)).expect("not its own"), "each is answered once");
    }

    #[test]
    fn bytes_count_too_and_what_is_too_large_goes_alone() {
        // The last but one holds all of the text.
        let (mut stream, mut id) = (open(300, 10_000, 1_000), 1);
        let (mut sent, mut answered) = (0, 1);
        while let Some((from, to)) = batches(&stream.lines(&mut id)).first().copied() {
            assert_eq!(from, sent);
            let bytes: usize = stream.reply.events[from as usize..=to as usize].iter().map(String::len).sum();
            assert!(bytes <= 1_000 || from == to, "{from}..={to}");
            sent = to + 1;
            acknowledge(&mut stream, answered, sent as usize, 10_000, 1_000);
            answered += 1;
        }
        assert_eq!(sent as usize, stream.reply.events.len());
    }

    #[test]
    fn a_refusal_and_a_wrong_count_are_noticed() {
        let (mut stream, mut id) = (open(10, 100, 1 << 20), 1);
        stream.lines(&mut id);
        let refused = stream.answered(1, &Err(json!({"data": {"code": "badEvent"}}))).expect_err("refused");
        assert!(refused.to_string().contains("badEvent"), "{refused}");
        let mut stream = open(10, 100, 1 << 20);
        stream.lines(&mut id);
        let answer = json!({"nextSeq": 1_000, "credit": {"events": 1, "bytes": 1}});
        assert!(stream.answered(2, &Ok(answer)).is_err());
    }
}
