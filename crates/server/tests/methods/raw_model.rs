//! A model that shows each request as it came and answers with headers of the test's choice.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use serde_json::{Value, json};

pub(crate) struct RawModel {
    pub(crate) port: u16,
    requests: mpsc::UnboundedReceiver<RawRequest>,
    serving: JoinHandle<()>,
}

pub(crate) struct RawRequest {
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl RawModel {
    /// `header` is a whole line, or nothing; `created` is the response of the first event.
    pub(crate) async fn serve(header: &str, created: Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (tell, requests) = mpsc::unbounded_channel();
        let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let request = respond(stream, &header, &created).await;
                let _ = tell.send(request);
            }
        });
        Self { port, requests, serving }
    }

    pub(crate) async fn next(&mut self) -> RawRequest {
        self.requests.recv().await.expect("a request")
    }
}

impl Drop for RawModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn respond(mut stream: TcpStream, header: &str, created: &Value) -> RawRequest {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        assert!(stream.read_buf(&mut bytes).await.expect("readable") > 0, "the request broke off");
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
    while bytes.len() < end + length {
        assert!(stream.read_buf(&mut bytes).await.expect("readable") > 0, "the body broke off");
    }
    let message = json!({
        "type": "message", "id": "m1", "role": "assistant",
        "content": [{"type": "output_text", "text": "hello"}],
    });
    let events = [
        json!({"type": "response.created", "response": created}),
        json!({"type": "response.output_item.done", "item": message}),
        json!({"type": "response.completed", "response": {"id": "r1", "usage": null}}),
    ];
    let stream_text: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{header}connection: close\r\n\r\n{stream_text}"
    );
    stream.write_all(answer.as_bytes()).await.expect("writable");
    let body = serde_json::from_slice(&bytes[end..]).expect("JSON");
    RawRequest { head, body }
}
