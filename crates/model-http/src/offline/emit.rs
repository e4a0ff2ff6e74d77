//! Writes the events of one response, in the order and shape of the Responses API.

use std::io;

use model::RequestBody;
use serde_json::{Value, json};

/// Collects the events of a response as its parts are said.
pub(super) struct Emitter<'a> {
    request: &'a RequestBody,
    fingerprint: Fingerprint,
    events: Vec<String>,
    output: Vec<Value>,
    output_characters: usize,
}

/// The token usage of a response. Plausible rather than exact: four characters are about one token.
#[derive(Debug, Clone, Copy)]
pub(super) struct EmittedUsage {
    pub(super) input: u64,
    pub(super) output: u64,
}

const WORDS_PER_DELTA: usize = 3;
const CHARACTERS_PER_TOKEN: usize = 4;

impl<'a> Emitter<'a> {
    /// Ids come from the request alone: the same request has the same answer, to the byte.
    pub(super) fn new(request: &'a RequestBody) -> Self {
        let fingerprint = Fingerprint::of(request);
        let mut emitter =
            Self { request, fingerprint, events: Vec::new(), output: Vec::new(), output_characters: 0 };
        let response = emitter.response("in_progress", None);
        emitter.emit("response.created", json!({ "response": response }));
        emitter
    }

    pub(super) fn message(&mut self, text: &str) {
        let (id, index) = (self.id("msg"), self.output.len());
        let item = |status: &str, content: Value| {
            json!({
                "type": "message", "id": id, "role": "assistant",
                "status": status, "content": content,
            })
        };
        let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
        let place =
            |more: Value| with(json!({ "item_id": id, "output_index": index, "content_index": 0 }), more);
        self.emit(
            "response.output_item.added",
            json!({ "output_index": index, "item": item("in_progress", json!([])) }),
        );
        self.emit("response.content_part.added", place(json!({ "part": part("") })));
        for delta in deltas(text) {
            self.emit("response.output_text.delta", place(json!({ "delta": delta })));
        }
        self.emit("response.output_text.done", place(json!({ "text": text })));
        self.emit("response.content_part.done", place(json!({ "part": part(text) })));
        self.done(item("completed", json!([part(text)])), text.chars().count());
    }

    /// A call of a function, with its arguments as JSON text. Without a call id it gets one of its own.
    pub(super) fn function_call(
        &mut self,
        (namespace, name): (Option<&str>, &str),
        arguments: &str,
        call_id: Option<&str>,
    ) {
        let (id, index) = (self.id("fc"), self.output.len());
        let call_id = call_id.map_or_else(|| self.id("call"), str::to_owned);
        let item = |status: &str, arguments: &str| {
            let item = json!({
                "type": "function_call", "id": id, "call_id": call_id,
                "name": name, "arguments": arguments, "status": status,
            });
            namespace.map_or(item.clone(), |namespace| with(item, json!({ "namespace": namespace })))
        };
        let place = |more: Value| with(json!({ "item_id": id, "output_index": index }), more);
        self.emit(
            "response.output_item.added",
            json!({ "output_index": index, "item": item("in_progress", "") }),
        );
        self.emit("response.function_call_arguments.delta", place(json!({ "delta": arguments })));
        self.emit("response.function_call_arguments.done", place(json!({ "arguments": arguments })));
        self.done(item("completed", arguments), name.len() + arguments.len());
    }

    /// A call of a tool that takes text as it is.
    pub(super) fn custom_call(&mut self, name: &str, input: &str, call_id: Option<&str>) {
        let (id, index) = (self.id("ctc"), self.output.len());
        let call_id = call_id.map_or_else(|| self.id("call"), str::to_owned);
        let item = |status: &str, input: &str| {
            json!({
                "type": "custom_tool_call", "id": id, "call_id": call_id,
                "name": name, "input": input, "status": status,
            })
        };
        let place = |more: Value| with(json!({ "item_id": id, "output_index": index }), more);
        self.emit(
            "response.output_item.added",
            json!({ "output_index": index, "item": item("in_progress", "") }),
        );
        self.emit("response.custom_tool_call_input.delta", place(json!({ "delta": input })));
        self.emit("response.custom_tool_call_input.done", place(json!({ "input": input })));
        self.done(item("completed", input), name.len() + input.len());
    }

    /// All events so far, without an end.
    pub(super) fn unfinished(self) -> Vec<String> {
        self.events
    }

    /// All events, with the end of the response.
    pub(super) fn completed(mut self, usage: Option<EmittedUsage>) -> Vec<String> {
        let usage = usage.unwrap_or_else(|| self.estimate());
        let response = self.response("completed", Some(usage));
        self.emit("response.completed", json!({ "response": response }));
        self.events
    }

    fn estimate(&self) -> EmittedUsage {
        let tokens = |characters: usize| characters.div_ceil(CHARACTERS_PER_TOKEN) as u64;
        EmittedUsage { input: tokens(self.fingerprint.length), output: tokens(self.output_characters) }
    }

    fn done(&mut self, item: Value, characters: usize) {
        let index = self.output.len();
        self.emit("response.output_item.done", json!({ "output_index": index, "item": item }));
        self.output.push(item);
        self.output_characters += characters;
    }

    fn emit(&mut self, kind: &str, fields: Value) {
        let head = json!({ "type": kind, "sequence_number": self.events.len() });
        self.events.push(with(head, fields).to_string());
    }

    fn response(&self, status: &str, usage: Option<EmittedUsage>) -> Value {
        let usage = usage.map(|EmittedUsage { input, output }| {
            json!({
                "input_tokens": input,
                "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": output,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": input + output,
            })
        });
        json!({
            "id": format!("resp_{}", self.fingerprint),
            "object": "response",
            "status": status,
            "model": self.request.model,
            "output": self.output,
            "usage": usage,
        })
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.fingerprint, self.output.len())
    }
}

/// The text in pieces of a few words, which join to exactly the text.
fn deltas(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut words = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        if in_word && character.is_whitespace() {
            words += 1;
        } else if !in_word && !character.is_whitespace() && words == WORDS_PER_DELTA {
            pieces.push(&text[start..at]);
            (start, words) = (at, 0);
        }
        in_word = !character.is_whitespace();
    }
    if start < text.len() {
        pieces.push(&text[start..]);
    }
    pieces
}

/// One object with the fields of both.
fn with(mut first: Value, second: Value) -> Value {
    if let (Value::Object(first), Value::Object(second)) = (&mut first, second) {
        first.extend(second);
    }
    first
}

/// FNV-1a over the JSON of a request, and how long that JSON is.
#[derive(Debug, Clone, Copy)]
struct Fingerprint {
    hash: u64,
    length: usize,
}

impl Fingerprint {
    fn of(request: &RequestBody) -> Self {
        let mut fingerprint = Self { hash: 0xCBF2_9CE4_8422_2325, length: 0 };
        // Writing into a hash cannot fail; a body that is no JSON would have the hash of its readable part.
        let _ = serde_json::to_writer(&mut fingerprint, request);
        fingerprint
    }
}

impl io::Write for Fingerprint {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        self.length += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_are_a_few_words_and_join_to_the_text() {
        assert_eq!(deltas("one two three four five"), ["one two three ", "four five"]);
        assert_eq!(deltas(""), [""; 0]);
        for text in ["x", "  a  b\n\nc\td e é f\n", "\n", "a b c ", "漢字 🦀 x y z"] {
            assert_eq!(deltas(text).concat(), text);
        }
    }
}
