//! A client over a websocket. Dropped, it is gone in the middle of whatever it did, without a word.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use testkit::{TestClient, within};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;

pub(super) async fn connect(address: SocketAddr, capabilities: Value) -> TestClient {
    let stream = within("a connection", TcpStream::connect(address)).await.expect("a connection");
    let handshake = tokio_tungstenite::client_async(format!("ws://{address}/"), stream);
    let (socket, _) = within("a websocket", handshake).await.expect("a websocket");
    let (near, far) = tokio::io::duplex(1 << 16);
    let ((from, to), (input, mut output)) = (tokio::io::split(near), tokio::io::split(far));
    tokio::spawn(async move {
        let (mut sink, mut messages) = socket.split();
        let mut lines = BufReader::new(input).lines();
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => sink.send(Message::text(line)).await.expect("the server reads"),
                    // The client was dropped, and the socket with it.
                    _ => return,
                },
                message = messages.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        if output.write_all(format!("{text}\n").as_bytes()).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    });
    let mut client = TestClient::new(from, to);
    client.initialize(capabilities).await;
    client
}
