//! A model behind the wire of a vendor, as strict about requests as the vendor: what the real API would refuse fails the
//! test.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use model::Purpose;
use model_http::{OfflineReply, OfflineRequest, OfflineResponder, Outcome, Wire};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::deadline::WAIT_LIMIT;
use crate::vendor_answers::written;
use crate::vendor_requests::request_of;
use crate::vendor_rules::{chat_problems, messages_problems, quirk_problems, responses_problems};

/// Serves until the process ends: nothing else has its port. Dropped, it checks that every request was accepted.
#[derive(Debug)]
pub struct VendorServer {
    kind: VendorKind,
    port: u16,
    log: Arc<Mutex<VendorLog>>,
}

/// The vendor that the server plays, whose rules requests must follow.
#[derive(Debug, Clone, Copy)]
struct VendorKind {
    wire: Wire,
    /// Its own rules hold beside those of the wire. Empty: none.
    name: &'static str,
}

#[derive(Debug, Default)]
struct VendorLog {
    bodies: Vec<Value>,
    problems: Vec<String>,
    /// How often the models were requested.
    lists: usize,
    /// The reasoning that this server made: it can read no other.
    sealed: Vec<String>,
    /// How often foreign reasoning was sent, which is refused and may then be left out.
    foreign: usize,
}

impl VendorServer {
    /// `model` decides what is answered.
    pub fn start(wire: Wire, model: Arc<dyn OfflineResponder>) -> Self {
        Self::start_as(wire, "", model)
    }

    /// With the rules of this vendor beside those of the wire.
    pub fn start_as(wire: Wire, name: &'static str, model: Arc<dyn OfflineResponder>) -> Self {
        let kind = VendorKind { wire, name };
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let log: Arc<Mutex<VendorLog>> = Arc::default();
        let kept = log.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (model, log) = (model.clone(), kept.clone());
                std::thread::spawn(move || serve(stream, kind, model.as_ref(), &log));
            }
        });
        Self { kind, port, log }
    }

    /// Ends with the version.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// As `wire_api` has it.
    pub fn wire_name(&self) -> &'static str {
        self.kind.wire.name()
    }

    /// A table of the configuration.
    pub fn provider_table(&self, name: &str) -> String {
        let (url, wire) = (self.base_url(), self.wire_name());
        format!(
            "[model_providers.{name}]\nname = \"{name}\"\nbase_url = \"{url}\"\nwire_api = \"{wire}\"\n\
             request_max_retries = 0\nstream_max_retries = 3\n"
        )
    }

    /// The bodies of all requests for an answer.
    pub fn bodies(&self) -> Vec<Value> {
        self.log.lock().bodies.clone()
    }

    /// How often the models were requested.
    pub fn lists(&self) -> usize {
        self.log.lock().lists
    }

    /// How often it was sent reasoning of another server, and refused it.
    pub fn foreign_reasoning(&self) -> usize {
        self.log.lock().foreign
    }

    /// Fails if the vendor would have refused any request.
    #[track_caller]
    pub fn assert_accepted(&self) {
        let log = self.log.lock();
        assert!(log.problems.is_empty(), "{:?}: {:#?}", self.kind, log.problems);
    }
}

impl Drop for VendorServer {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.assert_accepted();
        }
    }
}

/// One request for each connection.
fn serve(mut stream: TcpStream, kind: VendorKind, model: &dyn OfflineResponder, log: &Mutex<VendorLog>) {
    stream.set_read_timeout(Some(WAIT_LIMIT)).expect("set");
    let Some((head, body)) = receive(&mut stream) else { return };
    let line = head.lines().next().unwrap_or_default().to_owned();
    let answer = if line.starts_with("get /v1/models ") {
        log.lock().lists += 1;
        let models = json!({"object": "list", "data": [
            {"id": "mock-model", "object": "model"},
            {"id": "roomy-model", "object": "model", "context_length": 64_000},
        ]});
        Some((200, models.to_string()))
    } else if line == format!("post /v1{} http/1.1", kind.wire.path()) {
        respond(&mut stream, kind, model, log, &head, &body)
    } else {
        Some((404, error("not_found_error", &format!("there is no {line}"))))
    };
    if let Some((status, body)) = answer {
        let length = body.len();
        // The client may have gone.
        let _ = write!(
            stream,
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
    }
}

/// Answers with a stream, or says with what else.
fn respond(
    stream: &mut TcpStream,
    kind: VendorKind,
    model: &dyn OfflineResponder,
    log: &Mutex<VendorLog>,
    head: &str,
    body: &[u8],
) -> Option<(u16, String)> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let wire = kind.wire;
    let mut problems = match wire {
        Wire::Responses => responses_problems(&body),
        Wire::Chat => chat_problems(&body),
        Wire::Messages => messages_problems(&body),
    };
    if wire == Wire::Messages && !head.contains("\r\nanthropic-version: 2023-06-01\r\n") {
        problems.push("anthropic-version: header is required".to_owned());
    }
    if !kind.name.is_empty() {
        problems.extend(quirk_problems(kind.name, &body));
    }
    if head.contains("\r\nx-api-key: ") && head.contains("\r\nauthorization: ") {
        problems.push("a key and a bearer token together".to_owned());
    }
    let request = request_of(wire, &body).map_err(|problem| problems.push(problem));
    let mut kept = log.lock();
    kept.bodies.push(body.clone());
    if !problems.is_empty() {
        let told = problems.join("; ");
        kept.problems.extend(problems);
        return Some((400, error("invalid_request_error", &told)));
    }
    let sealed = |item: &Value| item["encrypted_content"].as_str().map(str::to_owned);
    let items = body["input"].as_array().into_iter().flatten();
    if items.filter_map(sealed).any(|sealed| !kept.sealed.contains(&sealed)) {
        kept.foreign += 1;
        let told =
            "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted";
        return Some((
            400,
            json!({"error": {"message": told, "code": "invalid_encrypted_content"}}).to_string(),
        ));
    }
    drop(kept);
    let request = request.ok()?;
    let reply: OfflineReply = model.respond(OfflineRequest { body: &request, purpose: purpose(head) });
    std::thread::sleep(reply.delay);
    match reply.outcome {
        Outcome::Refused { status, body } => Some((status, body)),
        Outcome::Events { events, stays_open } => {
            let events = events.iter().map(|event| serde_json::from_str(event).expect("an event"));
            let events = Vec::<Value>::from_iter(events);
            let made = events.iter().filter_map(|event| sealed(&event["item"]));
            log.lock().sealed.extend(made);
            let text = written(wire, kind.name, &body, events.into_iter());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
            if stays_open {
                // Until the client closes.
                let _ = stream.read(&mut [0; 1]);
            }
            None
        }
    }
}

/// Only our own wire marks it.
fn purpose(head: &str) -> Purpose {
    if head.contains("x-openai-subagent: compact") { Purpose::Compaction } else { Purpose::Turn }
}

fn error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

/// The head in lower case, and the body.
fn receive(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut piece = [0; 65536];
    let mut more = |bytes: &mut Vec<u8>| match stream.read(&mut piece) {
        Ok(0) | Err(_) => None,
        Ok(read) => {
            bytes.extend_from_slice(&piece[..read]);
            Some(())
        }
    };
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(&mut bytes)?;
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        more(&mut bytes)?;
    }
    Some((head, bytes.split_off(end)))
}

/// A message, as the event of a response.
pub fn text_event(text: &str) -> String {
    let content = json!([{"type": "output_text", "text": text}]);
    let item = json!({"type": "message", "id": "m1", "role": "assistant", "content": content});
    json!({"type": "response.output_item.done", "item": item}).to_string()
}

/// A call, as the event of a response.
pub fn call_event(call_id: &str, name: &str, arguments: &Value) -> String {
    let item = json!({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments.to_string()});
    json!({"type": "response.output_item.done", "item": item}).to_string()
}

/// The end of a response.
pub fn completed_event(input_tokens: u64, output_tokens: u64) -> String {
    let usage = json!({"input_tokens": input_tokens, "output_tokens": output_tokens,
                       "total_tokens": input_tokens + output_tokens});
    json!({"type": "response.completed", "response": {"id": "r1", "usage": usage}}).to_string()
}
