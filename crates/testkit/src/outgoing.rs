//! One stream to the server: what was sent, what was acknowledged, and the credit.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::script::{Answer, Ending, Manners};

/// Go-back-N: after a refusal, sending continues from what the server expects.
#[derive(Debug)]
pub(crate) struct Outgoing {
    thread: String,
    request: String,
    answer: Answer,
    manners: Manners,
    sent: usize,
    acked: usize,
    /// The limit of the credit: in events, and in bytes from `acked` on.
    event_limit: usize,
    byte_credit: usize,
    /// Ids of unanswered batches, with whether the answer counts.
    under_way: VecDeque<(u64, bool)>,
    /// A batch was refused: waits for all pending answers before sending again. Sending again after every refusal would
    /// send more each time, until both sides only write.
    goes_back: bool,
    is_ended: bool,
}

impl Outgoing {
    pub(crate) fn new(params: &Value, answer: Answer, manners: Manners) -> Self {
        let text = |name: &str| params[name].as_str().expect("text").to_owned();
        let number =
            |name: &str| usize::try_from(params["window"][name].as_u64().expect("a number")).expect("small");
        Self {
            thread: text("threadId"),
            request: text("modelRequestId"),
            answer,
            manners,
            sent: 0,
            acked: 0,
            event_limit: number("events"),
            byte_credit: number("bytes"),
            under_way: VecDeque::new(),
            goes_back: false,
            is_ended: false,
        }
    }

    pub(crate) fn is(&self, request: &Value) -> bool {
        request.as_str() == Some(&self.request)
    }

    /// Nothing is left to send or wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.is_ended && self.under_way.is_empty()
    }

    /// The lines that may be sent now.
    pub(crate) fn lines(&mut self, next_id: &mut u64) -> Vec<String> {
        let mut lines = Vec::new();
        self.goes_back &= !self.under_way.is_empty();
        while !self.is_ended && !self.goes_back && self.sent < self.answer.events.len() {
            let end = self.batch_end();
            if end == self.sent {
                break;
            }
            if self.manners.leaves_gaps && end < self.answer.events.len() {
                lines.push(self.line(end, end + 1, next_id, false));
            }
            lines.push(self.line(self.sent, end, next_id, true));
            if self.manners.repeats {
                lines.push(self.line(self.sent, end, next_id, false));
            }
            self.sent = end;
        }
        let is_delivered = self.sent == self.answer.events.len() && self.under_way.is_empty();
        if is_delivered && !self.is_ended {
            self.is_ended = true;
            if let Ending::Abort { reason, replay_safe } = &self.answer.ending {
                let params = json!({
                    "threadId": self.thread, "modelRequestId": self.request, "seq": self.sent,
                    "reason": reason, "replaySafe": replay_safe,
                });
                *next_id += 1;
                let id = *next_id;
                lines.push(json!({"id": id, "method": "model/streamAborted", "params": params}).to_string());
            }
        }
        lines
    }

    /// The end of the next batch.
    fn batch_end(&self) -> usize {
        let events = &self.answer.events;
        let most = events.len().min(self.sent + self.manners.batch);
        if self.manners.notifies || self.manners.ignores_credit {
            return most;
        }
        let spent: usize = events[self.acked..self.sent].iter().map(String::len).sum();
        let mut left = self.byte_credit.saturating_sub(spent);
        let mut end = self.sent;
        while end < most.min(self.event_limit) {
            // An event larger than the window is sent alone.
            let is_alone = end == self.sent && self.acked == self.sent;
            if events[end].len() > left && !is_alone {
                break;
            }
            left = left.saturating_sub(events[end].len());
            end += 1;
        }
        end
    }

    fn line(&mut self, from: usize, to: usize, next_id: &mut u64, counts: bool) -> String {
        let id = if self.manners.notifies {
            String::new()
        } else {
            *next_id += 1;
            self.under_way.push_back((*next_id, counts));
            format!("\"id\":{next_id},")
        };
        format!(
            "{{{id}\"method\":\"model/streamEvent\",\"params\":{{\"threadId\":{:?},\"modelRequestId\":{:?},\"seq\":{from},\"events\":[{}]}}}}",
            self.thread,
            self.request,
            self.answer.events[from..to].join(",")
        )
    }

    /// Handles the answer to one of its batches. False if the id is not its own.
    pub(crate) fn answered(&mut self, id: u64, answer: &Value) -> bool {
        let Some(at) = self.under_way.iter().position(|(other, _)| *other == id) else { return false };
        let counts = self.under_way.remove(at).is_some_and(|(_, counts)| counts);
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or(0)).unwrap_or(0);
        match answer.get("error") {
            None => {
                let result = &answer["result"];
                self.acked = self.acked.max(number(&result["nextSeq"]));
                self.sent = self.sent.max(self.acked);
                self.event_limit = self.event_limit.max(self.acked + number(&result["credit"]["events"]));
                self.byte_credit = number(&result["credit"]["bytes"]);
            }
            Some(error) => match error["data"]["code"].as_str() {
                Some("sequenceGap") if counts => self.go_back(number(&error["data"]["expected"])),
                Some("creditExceeded") if counts => self.go_back(number(&error["data"]["nextSeq"])),
                Some("sequenceGap" | "creditExceeded") => {}
                _ => self.is_ended = true,
            },
        }
        true
    }

    fn go_back(&mut self, to: usize) {
        self.sent = to;
        self.goes_back = true;
    }

    pub(crate) fn cancel(&mut self) {
        self.is_ended = true;
    }
}
