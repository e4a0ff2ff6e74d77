//! `thread/realtime/*`, with a service on a port of this machine.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use testkit::{Stage, TestClient, text, within};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// A service that takes one conversation after the other.
struct Service {
    address: String,
    conversations: mpsc::Receiver<WebSocketStream<TcpStream>>,
}

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, conversations) = mpsc::channel(4);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { continue };
                if sender.send(socket).await.is_err() {
                    return;
                }
            }
        });
        Self { address, conversations }
    }

    fn settings(&self) -> String {
        let address = &self.address;
        format!(
            "experimental_realtime_ws_base_url = \"ws://{address}/v1\"\nfeatures.realtime_conversation = true"
        )
    }

    async fn stage(&self) -> Stage {
        Stage::configured(json!([]), &self.settings()).await
    }
}

async fn heard(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        match socket.next().await.expect("a message").expect("a sound one") {
            Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
            Message::Close(_) => return Value::Null,
            _ => {}
        }
    }
}

async fn say(socket: &mut WebSocketStream<TcpStream>, event: &Value) {
    socket.send(Message::text(event.to_string())).await.expect("sent");
}

/// A conversation that has begun.
async fn begin(service: &mut Service, client: &mut TestClient) -> (String, WebSocketStream<TcpStream>) {
    let id = client.start_thread(json!({})).await;
    let params = json!({"threadId": id, "prompt": "be brief", "sessionId": "mine"});
    assert_eq!(client.ask("thread/realtime/start", params).await, json!({}));
    let mut socket = within("a conversation", service.conversations.recv()).await.expect("a conversation");
    let opening = heard(&mut socket).await;
    assert_eq!(
        (&opening["type"], &opening["session"]["instructions"]),
        (&json!("session.update"), &json!("be brief"))
    );
    (id, socket)
}

#[tokio::test]
async fn sound_and_words_go_both_ways_until_it_is_stopped() {
    let mut service = Service::start().await;
    let stage = service.stage().await;
    let (_server, mut client) = stage.open().await;
    let (id, mut socket) = begin(&mut service, &mut client).await;
    say(&mut socket, &json!({"type": "session.created", "session": {"id": "s1"}})).await;
    say(&mut socket, &json!({"type": "session.updated", "session": {"id": "s1"}})).await;
    let started = client.next_of("thread/realtime/started").await;
    assert_eq!(started, json!({"threadId": id, "sessionId": "s1", "version": "v2"}));
    let audio = json!({"data": "AAA=", "sampleRate": 24000, "numChannels": 1, "samplesPerChannel": null, "itemId": null});
    client.ask("thread/realtime/appendAudio", json!({"threadId": id, "audio": audio})).await;
    assert_eq!(heard(&mut socket).await, json!({"type": "input_audio_buffer.append", "audio": "AAA="}));
    client.ask("thread/realtime/appendText", json!({"threadId": id, "text": "hello"})).await;
    assert_eq!(heard(&mut socket).await["item"]["content"][0]["text"], "hello");
    say(&mut socket, &json!({"type": "response.output_audio.delta", "delta": "BBB=", "item_id": "i1"})).await;
    let told = client.next_of("thread/realtime/outputAudio/delta").await;
    assert_eq!((&told["audio"]["data"], &told["audio"]["itemId"]), (&json!("BBB="), &json!("i1")));
    say(&mut socket, &json!({"type": "response.output_audio_transcript.delta", "delta": "hi"})).await;
    let told = client.next_of("thread/realtime/transcriptUpdated").await;
    assert_eq!(told, json!({"threadId": id, "role": "assistant", "text": "hi"}));
    say(&mut socket, &json!({"type": "conversation.item.added", "item": {"id": "i2"}})).await;
    assert_eq!(client.next_of("thread/realtime/itemAdded").await["item"], json!({"id": "i2"}));
    say(&mut socket, &json!({"type": "error", "error": {"message": "odd"}})).await;
    assert_eq!(client.next_of("thread/realtime/error").await["message"], "odd");
    socket.send(Message::text("no JSON")).await.expect("sent");
    client.transcript();
    assert_eq!(client.ask("thread/realtime/stop", json!({"threadId": id})).await, json!({}));
    let closed = client.next_of("thread/realtime/closed").await;
    assert_eq!(closed, json!({"threadId": id, "reason": "requested"}));
    assert_eq!(client.transcript(), ["= thread/realtime/stop", "thread/realtime/closed"]);
    assert_eq!(heard(&mut socket).await, Value::Null);
    let refused = client.refused("thread/realtime/appendText", json!({"threadId": id, "text": "x"})).await;
    assert_eq!(refused, "conversation is not running");
}

#[tokio::test]
async fn a_service_that_hangs_up_and_a_thread_that_goes_end_it() {
    let mut service = Service::start().await;
    let stage = service.stage().await;
    let (_server, mut client) = stage.open().await;
    let (id, socket) = begin(&mut service, &mut client).await;
    drop(socket);
    let closed = client.next_of("thread/realtime/closed").await;
    assert_eq!(closed, json!({"threadId": id, "reason": "transport_closed"}));
    let (id, mut socket) = begin(&mut service, &mut client).await;
    client.ask("thread/unsubscribe", json!({"threadId": id})).await;
    assert_eq!(heard(&mut socket).await, Value::Null);
}

#[tokio::test]
async fn it_needs_the_feature_the_thread_and_a_service() {
    let stage = Stage::new(json!([])).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let params = json!({"threadId": id, "prompt": "x"});
    let refused = client.refused("thread/realtime/start", params).await;
    assert_eq!(refused, format!("thread {id} does not support realtime conversation"));
    let nowhere = "00000000-0000-7000-8000-000000000000";
    let refused = client.refused("thread/realtime/stop", json!({"threadId": nowhere})).await;
    assert_eq!(refused, format!("thread not found: {nowhere}"));
    let keys =
        "experimental_realtime_ws_base_url = \"ws://127.0.0.1:9/v1\"\nfeatures.realtime_conversation = true";
    let stage = Stage::configured(json!([]), keys).await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let refused = client.refused("thread/realtime/start", json!({"threadId": id, "prompt": "x"})).await;
    assert!(
        refused.starts_with("the realtime service cannot be reached: nothing answers on 127.0.0.1:9"),
        "{refused}"
    );
    assert!(!text(&json!(refused)).contains("Bearer"));
}

#[tokio::test]
async fn a_service_that_does_not_read_fills_no_memory_and_can_be_left() {
    let mut service = Service::start().await;
    let stage = service.stage().await;
    let (_server, mut client) = stage.open().await;
    let (id, socket) = begin(&mut service, &mut client).await;
    let sound = "A".repeat(4 << 20);
    let audio = json!({"data": sound, "sampleRate": 24000, "numChannels": 1});
    let mut refusals = Vec::new();
    // More than the system keeps for a connection and than may wait here.
    for _ in 0..24 {
        let params = json!({"threadId": id, "audio": audio});
        refusals.extend(client.request("thread/realtime/appendAudio", params).await.err());
    }
    let refused = refusals.first().expect("it is refused before 96 MiB wait");
    assert!(refused.message.starts_with("too much sound waits"), "{refused:?}");
    client.ask("thread/realtime/stop", json!({"threadId": id})).await;
    assert_eq!(client.next_of("thread/realtime/closed").await["reason"], "requested");
    drop(socket);
}

#[tokio::test]
async fn a_broken_file_does_not_lead_to_another_provider() {
    let mut service = Service::start().await;
    let stage = service.stage().await;
    let (_server, mut client) = stage.open().await;
    let id = client.start_thread(json!({})).await;
    let file = stage.home().join("config.toml");
    let text = std::fs::read_to_string(&file).expect("readable");
    std::fs::write(&file, format!("{text}\nmodel = [\n")).expect("written");
    let refused = client.refused("thread/realtime/start", json!({"threadId": id, "prompt": "x"})).await;
    assert!(refused.contains("config.toml:"), "{refused}");
    assert!(service.conversations.try_recv().is_err(), "nobody was called");
}
