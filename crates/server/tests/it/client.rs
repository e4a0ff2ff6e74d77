//! Clients of the tests: over lines and over websockets, with one way to talk.

use std::path::Path;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use testkit::within;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest, handshake::client::Request};

pub(crate) trait Peer {
    async fn send_text(&mut self, text: &str);

    /// The next message; `None` at the end.
    async fn next(&mut self) -> Option<Value>;

    async fn receive(&mut self) -> Value {
        within("the next message or the end", self.next()).await.expect("a message")
    }

    async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) {
        self.send(json!({"id": id, "method": method, "params": params})).await;
    }

    /// Asks and takes the answer, which must come next.
    async fn call(&mut self, id: i64, method: &str, params: Value) -> Value {
        self.ask(id, method, params).await;
        let answer = self.receive().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({"name": "peer_test", "version": "1"});
        let answer =
            self.call(0, "initialize", json!({"clientInfo": client, "capabilities": capabilities})).await;
        answer["result"].clone()
    }

    /// Subscribes to a thread. The answer comes before the open questions.
    async fn join(&mut self, thread: &str) {
        let answer = self.call(1000, "thread/compact/start", json!({"threadId": thread})).await;
        assert_eq!(answer["result"], json!({}));
        // Another request about the thread runs only when the subscription is made.
        self.ask(1001, "thread/name/set", json!({"threadId": thread, "name": "joined"})).await;
    }

    /// As [`Peer::join`], for a thread without open questions.
    async fn join_quietly(&mut self, thread: &str) {
        self.join(thread).await;
        assert_eq!(self.receive().await["id"], 1001);
    }
}

pub(crate) struct Lines {
    input: tokio::io::Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    pub(crate) output: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

impl Lines {
    pub(crate) fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let input: Box<dyn AsyncRead + Send + Unpin> = Box::new(input);
        Self { input: BufReader::new(input).lines(), output: Some(Box::new(output)) }
    }

    pub(crate) async fn connect(path: &Path) -> Self {
        let (input, output) = within("a connection", UnixStream::connect(path)).await.unwrap().into_split();
        Self::new(input, output)
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let output = self.output.as_mut().unwrap();
        let written = async {
            output.write_all(bytes).await?;
            output.flush().await
        };
        within("the server to read", written).await.unwrap();
    }

    /// Nothing more will be sent.
    pub(crate) fn finish(&mut self) {
        self.output = None;
    }
}

impl Peer for Lines {
    async fn send_text(&mut self, text: &str) {
        self.write(format!("{text}\n").as_bytes()).await;
    }

    async fn next(&mut self) -> Option<Value> {
        let line = self.input.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }
}

pub(crate) struct Ws(pub(crate) WebSocketStream<TcpStream>);

impl Ws {
    pub(crate) async fn connect(address: std::net::SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(address)).await.unwrap();
        let request = format!("ws://{address}/any").into_client_request().unwrap();
        Self::upgrade(request, stream).await
    }

    async fn upgrade(request: Request, stream: TcpStream) -> Self {
        let handshake = tokio_tungstenite::client_async(request, stream);
        Self(within("a websocket", handshake).await.unwrap().0)
    }

    pub(crate) async fn connect_with_token(address: std::net::SocketAddr, token: &str) -> Self {
        let stream = within("a connection", TcpStream::connect(address)).await.unwrap();
        let mut request = format!("ws://{address}/any").into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Self::upgrade(request, stream).await
    }
}

impl Peer for Ws {
    async fn send_text(&mut self, text: &str) {
        within("the server to read", self.0.send(Message::text(text))).await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return Some(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}
