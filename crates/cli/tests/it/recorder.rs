//! A model that answers everything alike and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::{Value, json};

use crate::support::provider_flags;

pub(crate) struct Recorder {
    url: String,
    asked: Receiver<Value>,
}

impl Recorder {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let (tell, asked) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &tell);
            }
        });
        Self { url, asked }
    }

    pub(crate) fn flags(&self) -> Vec<String> {
        provider_flags(&self.url)
    }

    /// The body of the oldest request not looked at yet.
    pub(crate) fn request(&self) -> Value {
        self.asked.try_recv().expect("a request was made")
    }
}

fn answer(stream: TcpStream, tell: &Sender<Value>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    tell.send(serde_json::from_slice(&body).expect("JSON")).expect("the test listens");
    let message = json!({ "type": "message", "id": "m", "role": "assistant",
        "content": [{ "type": "output_text", "text": "noted" }] });
    let usage = json!({ "input_tokens": 7, "input_tokens_details": { "cached_tokens": 3 }, "output_tokens": 2,
        "output_tokens_details": { "reasoning_tokens": 1 }, "total_tokens": 9 });
    let events = [
        json!({ "type": "response.created", "response": { "id": "r" } }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": message }),
        json!({ "type": "response.completed", "response": { "id": "r", "usage": usage } }),
    ];
    let text: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("")))
        .collect();
    let mut stream = stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let _ = write!(stream, "{head}content-length: {}\r\n\r\n{text}", text.len());
}
