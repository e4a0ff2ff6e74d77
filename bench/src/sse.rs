//! Builds the replies of the mock model once, as the bytes that go on the wire.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::{Value, json};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One answer of the model.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Status line, headers and the chunked body.
    pub(crate) http: Vec<u8>,
    /// What is in the body, for a host that hands it over itself: each the JSON of one event.
    pub(crate) events: Vec<String>,
    /// The text of its last message.
    pub(crate) text: Arc<str>,
    /// Text deltas in it.
    pub(crate) deltas: usize,
}

impl Reply {
    /// One message that arrives whole.
    pub(crate) fn message(text: &str) -> Self {
        Self::messages(&[text.to_owned()])
    }

    /// Messages that each arrive whole.
    pub(crate) fn messages(texts: &[String]) -> Self {
        let done = texts.iter().enumerate().map(|(index, text)| item_done(&format!("msg_{index}"), text));
        let text = texts.last().map_or("", String::as_str).into();
        Self { text, ..Self::of(done, None) }
    }

    /// A request that is accepted, and then nothing.
    pub(crate) fn nothing() -> Self {
        Self { http: Vec::new(), events: Vec::new(), text: "".into(), deltas: 0 }
    }

    /// One call of a tool. Nothing is said yet.
    pub(crate) fn call(call_id: &str, tool: &str, arguments: &Value) -> Self {
        let arguments = arguments.to_string();
        let call = json!({"type": "function_call", "call_id": call_id, "name": tool, "arguments": arguments});
        Self::of([json!({"type": "response.output_item.done", "item": call})], None)
    }

    /// One message in so many deltas, framed in HTTP chunks of so many bytes or in one. No two deltas are alike, so
    /// a lost, doubled or swapped one changes the text.
    pub(crate) fn stream(deltas: usize, chunk: Option<NonZeroUsize>) -> Self {
        let pieces: Vec<String> = (0..deltas).map(|index| format!("{index:x} ")).collect();
        let text = pieces.concat();
        let events =
            [item_added("msg_0")].into_iter().chain(pieces.iter().map(|piece| delta("msg_0", piece)));
        let reply = Self::of(events.chain([item_done("msg_0", &text)]), chunk);
        Self { text: text.into(), deltas, ..reply }
    }

    /// These events between the first and the last one of every reply.
    fn of(events: impl IntoIterator<Item = Value>, chunk: Option<NonZeroUsize>) -> Self {
        let created = json!({"type": "response.created", "response": {"id": "resp_1"}});
        let (mut body, mut texts) = (String::new(), Vec::new());
        for event in [created].into_iter().chain(events).chain([completed()]) {
            let (kind, text) = (event["type"].as_str().unwrap_or_default(), event.to_string());
            // Writing to a String cannot fail.
            let _ = write!(body, "event: {kind}\ndata: {text}\n\n");
            texts.push(text);
        }
        Self { http: event_stream(body.as_bytes(), chunk), events: texts, text: "".into(), deltas: 0 }
    }
}

fn message(id: &str, content: &Value) -> Value {
    json!({"type": "message", "role": "assistant", "id": id, "content": content})
}

/// A message begins.
pub(crate) fn item_added(id: &str) -> Value {
    json!({"type": "response.output_item.added", "item": message(id, &json!([]))})
}

/// A piece of a message's text.
pub(crate) fn delta(item: &str, piece: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": item, "output_index": 0, "delta": piece})
}

/// A whole message.
pub(crate) fn item_done(id: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text}]);
    json!({"type": "response.output_item.done", "item": message(id, &content)})
}

fn completed() -> Value {
    let usage = json!({
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 20, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120
    });
    json!({"type": "response.completed", "response": {"id": "resp_1", "usage": usage}})
}

fn event_stream(body: &[u8], chunk: Option<NonZeroUsize>) -> Vec<u8> {
    let mut http = HEAD.as_bytes().to_vec();
    for chunk in body.chunks(chunk.map_or(body.len(), NonZeroUsize::get)) {
        http.extend(format!("{:x}\r\n", chunk.len()).bytes());
        http.extend(chunk);
        http.extend(b"\r\n");
    }
    http.extend(b"0\r\n\r\n");
    http
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Undoes the framing by hand, so that an error in it cannot hide.
    fn events(reply: &Reply) -> Vec<Value> {
        let http = std::str::from_utf8(&reply.http).expect("ASCII");
        let mut rest = http.strip_prefix(HEAD).expect("starts with the head");
        let mut body = String::new();
        loop {
            let (size, after) = rest.split_once("\r\n").expect("a chunk size");
            let size = usize::from_str_radix(size, 16).expect("a hexadecimal size");
            if size == 0 {
                assert_eq!(after, "\r\n");
                break;
            }
            body.push_str(&after[..size]);
            rest = after[size..].strip_prefix("\r\n").expect("the end of the chunk");
        }
        let event = |block: &str| {
            let (kind, data) = block.split_once('\n').expect("two lines");
            let event: Value =
                serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
            assert_eq!(kind.strip_prefix("event: "), event["type"].as_str());
            event
        };
        let blocks = body.strip_suffix("\n\n").expect("ends with a blank line").split("\n\n");
        let events: Vec<Value> = blocks.map(event).collect();
        let same = reply.events.iter().map(|event| serde_json::from_str(event).expect("JSON"));
        assert!(events.iter().cloned().eq(same.collect::<Vec<Value>>()), "a host would say something else");
        events
    }

    #[test]
    fn a_stream_spells_its_text_in_as_many_deltas_as_asked() {
        let chunk = NonZeroUsize::new(1_000);
        let (reply, whole) = (Reply::stream(3_000, chunk), Reply::stream(3_000, None));
        assert_eq!(self::events(&whole), self::events(&reply), "the framing changes nothing else");
        assert!(reply.http.len() > whole.http.len());
        let events = events(&reply);
        let deltas: Vec<&str> = events
            .iter()
            .filter(|event| event["type"] == "response.output_text.delta")
            .filter_map(|event| event["delta"].as_str())
            .collect();
        assert_eq!((deltas.len(), reply.deltas), (3_000, 3_000));
        assert_eq!(deltas.concat(), *reply.text);
        let done = &events[events.len() - 2]["item"]["content"][0]["text"];
        assert_eq!(done.as_str(), Some(&*reply.text));
        assert_eq!(events[events.len() - 1]["type"], "response.completed");
    }

    #[test]
    fn whole_messages_come_without_deltas() {
        let reply = Reply::messages(&["first".to_owned(), "second".to_owned()]);
        let kinds: Vec<Value> = events(&reply).iter().map(|event| event["type"].clone()).collect();
        let item = "response.output_item.done";
        assert_eq!(kinds, ["response.created", item, item, "response.completed"]);
        assert_eq!((&*reply.text, reply.deltas), ("second", 0));
    }

    #[test]
    fn a_call_carries_its_arguments_as_text() {
        let arguments = json!({"cmd": "echo \"a b\""});
        let events = events(&Reply::call("call_1", "exec_command", &arguments));
        let call = &events[1]["item"];
        assert_eq!((&call["type"], &call["call_id"]), (&json!("function_call"), &json!("call_1")));
        assert_eq!(call["arguments"].as_str(), Some(&*arguments.to_string()));
    }
}
