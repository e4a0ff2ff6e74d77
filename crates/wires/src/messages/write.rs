//! The `messages` array as bytes that only grow.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::blob::Blob;
use crate::capabilities::CallIds;
use crate::digest::PrefixDigest;
use crate::piece::{ContentPart, HistoryPiece, arguments_object, in_tags};
use crate::shared_bytes::SharedBytes;
use crate::{Wire, ids, json};

/// All that decides how a piece is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MessagesStyle {
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) later_system: bool,
    pub(super) images: bool,
    pub(super) returns_reasoning: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum MessageRole {
    User,
    Assistant,
}

/// A block that may carry a cache mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CacheMark {
    /// Where its closing brace is.
    at: usize,
    /// Its number among all blocks.
    block: usize,
    /// It ends a user message.
    ends_user: bool,
}

#[derive(Debug)]
pub(super) struct MessagesWriter {
    pub(super) bytes: Vec<u8>,
    /// The bytes before these: flushed ones, and those of the writer that this one continues.
    before: usize,
    open: Option<MessageRole>,
    /// No block of the open message is written yet.
    is_fresh: bool,
    has_results: bool,
    blocks: usize,
    marks: Vec<CacheMark>,
    /// Of all bytes up to `digested`, and of what comes before the messages.
    digest: PrefixDigest,
    digested: usize,
    /// Of everything before the open assistant message.
    answered: PrefixDigest,
    /// The open assistant message began with a thinking block; it holds calls.
    begins_with_thinking: bool,
    has_calls: bool,
    /// The calls that are being answered came without thinking.
    pub(super) loop_without_thinking: bool,
    style: MessagesStyle,
    pub(super) problem: Option<&'static str>,
}

impl crate::order::MessageWriter for MessagesWriter {
    fn write(&mut self, piece: HistoryPiece) {
        match piece {
            HistoryPiece::User(parts) => parts.into_iter().for_each(|part| self.user_part(part)),
            HistoryPiece::Developer(text)
                if self.style.later_system && self.open == Some(MessageRole::User) =>
            {
                self.close();
                self.system_message(&text);
            }
            HistoryPiece::Developer(text) if text.trim().is_empty() => {}
            HistoryPiece::Developer(text) => self.user_part(ContentPart::Text(in_tags(&text))),
            HistoryPiece::Assistant(text) if text.trim().is_empty() => {}
            HistoryPiece::Assistant(text) => {
                self.open(MessageRole::Assistant);
                self.block(&json!({ "type": "text", "text": text }), true);
            }
            HistoryPiece::Reasoning(text) => self.reasoning(&text),
            HistoryPiece::Call(call) => {
                self.open(MessageRole::Assistant);
                self.has_calls = true;
                let (id, input) = (ids::call_id(&call.id, CallIds::Words), arguments_object(&call.arguments));
                self.block(&json!({ "type": "tool_use", "id": id, "name": call.name, "input": input }), true);
            }
            HistoryPiece::Output { call_id, parts, has_failed } => self.output(&call_id, parts, has_failed),
        }
    }

    /// Goes on in a buffer of its own, whose bytes follow ours.
    fn tail(&self) -> Self {
        Self {
            bytes: Vec::new(),
            before: self.len(),
            marks: Vec::new(),
            digest: self.digest_here(),
            digested: 0,
            style: self.style.clone(),
            ..*self
        }
    }
}

impl MessagesWriter {
    /// `seed` covers what comes before the messages.
    pub(super) fn new(style: MessagesStyle, seed: PrefixDigest) -> Self {
        Self {
            bytes: Vec::new(),
            before: 0,
            open: None,
            is_fresh: false,
            has_results: false,
            blocks: 0,
            marks: Vec::new(),
            digest: seed,
            digested: 0,
            answered: seed,
            begins_with_thinking: false,
            has_calls: false,
            loop_without_thinking: false,
            style,
            problem: None,
        }
    }

    /// The bytes written since the last call. Later ones follow them.
    pub(super) fn hand_over(&mut self) -> Vec<u8> {
        (self.digest, self.digested) = (self.digest_here(), 0);
        self.before = self.len();
        std::mem::take(&mut self.bytes)
    }

    /// Ends the request. An answer at the end would be taken for one to be continued, which newer models refuse.
    pub(super) fn finish(&mut self) {
        if self.open == Some(MessageRole::Assistant) || self.len() == 0 {
            self.user_part(ContentPart::Text("Continue.".to_owned()));
        }
        self.close();
    }

    pub(super) fn digest_here(&self) -> PrefixDigest {
        self.digest.and(&self.bytes[self.digested..])
    }

    fn len(&self) -> usize {
        self.before + self.bytes.len()
    }

    fn user_part(&mut self, part: ContentPart) {
        let block = match part {
            ContentPart::Text(text) if text.trim().is_empty() => return,
            part => self.content(part),
        };
        // No text follows the results of calls in their message.
        if self.open == Some(MessageRole::User) && self.has_results {
            self.close();
        }
        self.open(MessageRole::User);
        self.loop_without_thinking = false;
        self.block(&block, true);
    }

    fn content(&mut self, part: ContentPart) -> Value {
        match part {
            ContentPart::Text(text) => json!({ "type": "text", "text": text }),
            ContentPart::Image(url) => json!({ "type": "image", "source": self.source(&url) }),
        }
    }

    fn source(&mut self, url: &str) -> Value {
        if !self.style.images {
            self.problem = Some("an image");
        }
        let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((kind, data)) => json!({ "type": "base64", "media_type": kind, "data": data }),
            None => {
                if !url.starts_with("https://") && !url.starts_with("http://") {
                    self.problem = Some("an image that is neither a data URL in base64 nor an http URL");
                }
                json!({ "type": "url", "url": url })
            }
        }
    }

    fn output(&mut self, call_id: &str, parts: Vec<ContentPart>, has_failed: bool) {
        let parts = parts
            .into_iter()
            .filter(|part| !matches!(part, ContentPart::Text(text) if text.trim().is_empty()));
        let content = Vec::from_iter(parts.map(|part| self.content(part)));
        let content = match content.as_slice() {
            [] => json!("(no output)"),
            [only] if only["type"] == "text" => only["text"].clone(),
            _ => Value::Array(content),
        };
        self.open(MessageRole::User);
        self.has_results = true;
        let id = ids::call_id(call_id, CallIds::Words);
        let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
        if has_failed {
            result["is_error"] = json!(true);
        }
        self.block(&result, true);
    }

    /// Goes back unchanged to the model that made it, behind exactly what it was made behind; left out otherwise.
    fn reasoning(&mut self, text: &str) {
        let Some(blob) = Blob::read(text, Wire::Messages).filter(|_| self.style.returns_reasoning) else {
            return;
        };
        if blob.provider != self.style.provider || blob.model != self.style.model || blob.data.is_null() {
            return;
        }
        if self.open != Some(MessageRole::Assistant) {
            self.close();
            self.answered = self.digest_here();
        }
        if blob.after.as_deref() != Some(self.answered.hex().as_str()) {
            return;
        }
        self.open(MessageRole::Assistant);
        self.begins_with_thinking |= self.is_fresh;
        self.block(&blob.data, false);
    }

    fn system_message(&mut self, text: &str) {
        self.separate();
        json::write(&mut self.bytes, &json!({ "role": "system", "content": text }));
    }

    fn open(&mut self, role: MessageRole) {
        if self.open == Some(role) {
            return;
        }
        self.close();
        if role == MessageRole::Assistant {
            if self.len() == 0 {
                // A conversation begins with the user.
                self.user_part(ContentPart::Text("(The conversation so far begins here.)".to_owned()));
                self.close();
            }
            self.answered = self.digest_here();
            (self.digest, self.digested) = (self.answered, self.bytes.len());
            (self.begins_with_thinking, self.has_calls) = (false, false);
        }
        self.separate();
        let head: &[u8] = match role {
            MessageRole::User => br#"{"role":"user","content":["#,
            MessageRole::Assistant => br#"{"role":"assistant","content":["#,
        };
        self.bytes.extend_from_slice(head);
        (self.open, self.is_fresh, self.has_results) = (Some(role), true, false);
    }

    fn separate(&mut self) {
        if self.len() > 0 {
            self.bytes.push(b',');
        }
    }

    fn close(&mut self) {
        let Some(role) = self.open.take() else { return };
        self.bytes.extend_from_slice(b"]}");
        match role {
            MessageRole::User => {
                if let Some(mark) = self.marks.last_mut() {
                    mark.ends_user = true;
                }
            }
            MessageRole::Assistant if self.has_calls => {
                self.loop_without_thinking |= !self.begins_with_thinking;
            }
            MessageRole::Assistant => {}
        }
    }

    fn block(&mut self, block: &Value, may_be_marked: bool) {
        if !std::mem::replace(&mut self.is_fresh, false) {
            self.bytes.push(b',');
        }
        json::write(&mut self.bytes, block);
        self.blocks += 1;
        if may_be_marked {
            self.marks.push(CacheMark { at: self.len() - 1, block: self.blocks, ends_user: false });
        }
    }
}

/// A mark looks back 20 blocks for what was cached before; some are left for what a turn adds.
const APART: usize = 15;
const MOST_MARKS: usize = 3;
const CACHE_MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

/// Adds both parts of the messages, with cache marks at these places.
pub(super) fn add_marked(body: &mut Vec<Bytes>, written: &SharedBytes, tail: Vec<u8>, marks: &[CacheMark]) {
    let (split, tail) = (written.len(), Bytes::from(tail));
    let mut from = 0;
    let ends = marks.iter().map(|mark| (mark.at, Bytes::from_static(CACHE_MARK)));
    for (to, mark) in ends.chain([(split + tail.len(), Bytes::new())]) {
        body.extend(written.between(from, to));
        body.push(tail.slice(from.saturating_sub(split)..to.saturating_sub(split)));
        body.push(mark);
        from = to;
    }
}

/// The places of cache marks: the end of the last user message, and ends of earlier ones, or blocks between where those
/// are too far apart.
pub(super) fn chosen(written: &MessagesWriter, tail: &MessagesWriter) -> Vec<CacheMark> {
    let backwards = || tail.marks.iter().rev().chain(written.marks.iter().rev()).copied();
    let mut chosen: Vec<CacheMark> = Vec::new();
    // The last mark of a request always ends a user message.
    let Some(mut last) = backwards().next() else { return chosen };
    chosen.push(last);
    while chosen.len() < MOST_MARKS {
        let near = backwards().skip_while(|mark| mark.block >= last.block);
        let near = near.take_while(|mark| last.block - mark.block <= APART);
        let near = Vec::from_iter(near);
        let Some(next) = near.iter().find(|mark| mark.ends_user).or(near.last()) else { break };
        chosen.push(*next);
        last = *next;
    }
    chosen.reverse();
    chosen
}
