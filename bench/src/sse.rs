//! Builds the replies of the mock model once, as the bytes that go on the wire.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::sync::Arc;

use serde_json::{Value, json};

/// The language in which the mock model is asked and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MockWire {
    Responses,
    Chat,
    Messages,
}

impl MockWire {
    pub(crate) const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Messages];

    /// As `wire_api` spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Messages => "messages",
        }
    }

    /// The end of the path that requests go to.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Responses => "/responses",
            Self::Chat => "/chat/completions",
            Self::Messages => "/messages",
        }
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One answer of the model.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) wire: MockWire,
    /// Status line, headers and the chunked body.
    pub(crate) http: Vec<u8>,
    /// The events of the body, each as JSON, for a host that sends them itself.
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
        let (wire, text) = (MockWire::Responses, "".into());
        Self { wire, http: Vec::new(), events: Vec::new(), text, deltas: 0 }
    }

    /// One message in one piece, on any wire.
    pub(crate) fn said(wire: MockWire, text: &str) -> Self {
        match wire {
            MockWire::Responses => Self::message(text),
            _ => Self::spoken(wire, &[text.to_owned()], None),
        }
    }

    /// As [`Self::stream`], on any wire.
    pub(crate) fn streamed(wire: MockWire, deltas: usize, chunk: Option<NonZeroUsize>) -> Self {
        match wire {
            MockWire::Responses => Self::stream(deltas, chunk),
            _ => Self::spoken(wire, &pieces(deltas), chunk),
        }
    }

    /// One message in these pieces, in the shape in which the vendor of the wire sends it.
    fn spoken(wire: MockWire, pieces: &[String], chunk: Option<NonZeroUsize>) -> Self {
        let events = match wire {
            MockWire::Responses => Vec::new(),
            MockWire::Chat => chat_events(pieces),
            MockWire::Messages => messages_events(pieces),
        };
        let (mut body, mut texts) = (String::new(), Vec::new());
        for event in events {
            let text = event.to_string();
            // Writing to a String cannot fail.
            let _ = match event["type"].as_str() {
                Some(kind) => write!(body, "event: {kind}\ndata: {text}\n\n"),
                None => write!(body, "data: {text}\n\n"),
            };
            texts.push(text);
        }
        if wire == MockWire::Chat {
            body.push_str("data: [DONE]\n\n");
        }
        let (http, text) = (event_stream(body.as_bytes(), chunk), pieces.concat().into());
        Self { wire, http, events: texts, text, deltas: pieces.len() }
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
        let pieces = pieces(deltas);
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
        let (wire, http) = (MockWire::Responses, event_stream(body.as_bytes(), chunk));
        Self { wire, http, events: texts, text: "".into(), deltas: 0 }
    }
}

/// No two are alike, and none needs an escape in JSON.
fn pieces(deltas: usize) -> Vec<String> {
    (0..deltas).map(|index| format!("{index:x} ")).collect()
}

/// As OpenAI sends them: the role, the text, the reason of the end, the usage.
fn chat_events(pieces: &[String]) -> Vec<Value> {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1_700_000_000,
            "model": "mock-model", "choices": choices, "usage": usage})
    };
    let choice = |delta: Value, reason: Value| {
        chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]), Value::Null)
    };
    let mut events = vec![choice(json!({"role": "assistant", "content": ""}), Value::Null)];
    events.extend(pieces.iter().map(|piece| choice(json!({"content": piece}), Value::Null)));
    events.push(choice(json!({}), json!("stop")));
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120});
    events.push(chunk(json!([]), usage));
    events
}

/// As Anthropic sends them.
fn messages_events(pieces: &[String]) -> Vec<Value> {
    let usage = json!({"input_tokens": 100, "output_tokens": 1,
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "mock-model",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "ping"}),
    ];
    events.extend(pieces.iter().map(|piece| {
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    }));
    events.push(json!({"type": "content_block_stop", "index": 0}));
    let end = json!({"stop_reason": "end_turn", "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    events
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
            // Chat has no names of events.
            let (kind, data) = block.split_once('\n').unwrap_or(("", block));
            let event: Value =
                serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("JSON");
            assert_eq!(kind.strip_prefix("event: "), event["type"].as_str());
            event
        };
        let body = match reply.wire {
            MockWire::Chat => body.strip_suffix("data: [DONE]\n\n").expect("the end of a chat"),
            _ => &body,
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
    fn every_wire_spells_the_same_text() {
        let text = |wire: MockWire, event: &Value| {
            let piece = match wire {
                MockWire::Responses if event["type"] == "response.output_text.delta" => &event["delta"],
                MockWire::Responses => &Value::Null,
                MockWire::Chat => &event["choices"][0]["delta"]["content"],
                MockWire::Messages => &event["delta"]["text"],
            };
            piece.as_str().unwrap_or_default().to_owned()
        };
        for wire in MockWire::ALL {
            let reply = Reply::streamed(wire, 300, NonZeroUsize::new(100));
            let said: String = events(&reply).iter().map(|event| text(wire, event)).collect();
            assert_eq!((said.as_str(), reply.deltas, reply.wire), (&*reply.text, 300, wire));
            assert_eq!(&*Reply::said(wire, "ok").text, "ok");
        }
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
