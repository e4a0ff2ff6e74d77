//! An issuer of tokens and a provider that takes them, on a port of this machine.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Words that only the issuer, the store and the provider may ever see.
pub(super) const SECRET: &str = "very-secret";

#[derive(Debug, Default)]
pub(super) struct IssuerState {
    /// Access tokens that the provider takes.
    pub(super) good: BTreeSet<String>,
    /// Whether refresh tokens are refused.
    pub(super) refuses_refresh: bool,
    /// How often the code for a device is not typed yet.
    pub(super) device_waits: u32,
    refreshed: u32,
    /// Everything that was asked: the path, the bearer token and the body.
    pub(super) requests: Vec<(String, String, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct MockIssuer {
    pub(super) address: String,
    pub(super) state: Arc<Mutex<IssuerState>>,
}

/// A token that says who its owner is.
pub(crate) fn id_token() -> String {
    let claims = json!({ "email": "user@example.org",
        "https://api.openai.com/auth": { "chatgpt_plan_type": "plus", "chatgpt_account_id": "workspace-1" } });
    format!("e30.{}.{SECRET}", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

pub(super) fn access_token(number: u32) -> String {
    format!("{SECRET}-access-{number}")
}

impl MockIssuer {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let state =
            Arc::new(Mutex::new(IssuerState { good: [access_token(0)].into(), ..IssuerState::default() }));
        let serving = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, serving.clone()));
            }
        });
        Self { address, state }
    }

    /// Settings with which OpenAI is this machine.
    pub(super) fn settings(&self) -> String {
        let address = &self.address;
        format!(
            "model_provider = \"openai\"\nopenai_base_url = \"{address}/v1\"\nchatgpt_base_url = {address:?}"
        )
    }

    pub(super) fn asked(&self, path: &str) -> Vec<(String, String)> {
        let state = self.state.lock().expect("not poisoned");
        let asked = state.requests.iter().filter(|(asked, ..)| asked == path);
        asked.map(|(_, token, body)| (token.clone(), body.clone())).collect()
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<IssuerState>>) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    let (head, body_length) = loop {
        let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
        request.extend_from_slice(&buffer[..read]);
        let Some(end) = request.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        request.drain(..end + 4);
        let lengths = head
            .lines()
            .filter_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length = lengths.max().unwrap_or(0);
        break (head, length);
    };
    while request.len() < body_length {
        let Ok(read @ 1..) = stream.read(&mut buffer).await else { return };
        request.extend_from_slice(&buffer[..read]);
    }
    let body = String::from_utf8_lossy(&request).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let bearer = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("authorization: bearer ").map(str::to_owned));
    let (status, kind, answer) = {
        let mut state = state.lock().expect("not poisoned");
        state.requests.push((path.clone(), bearer.clone().unwrap_or_default(), body.clone()));
        respond(&mut state, &path, &bearer.unwrap_or_default(), &body)
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    let _ = stream.write_all(format!("{head}{answer}").as_bytes()).await;
}

fn respond(state: &mut IssuerState, path: &str, bearer: &str, body: &str) -> (u16, &'static str, String) {
    let json = |status: u16, value: Value| (status, "application/json", value.to_string());
    let tokens = |number: u32| {
        json!({ "id_token": id_token(), "access_token": access_token(number),
        "refresh_token": format!("{SECRET}-refresh-{number}") })
    };
    match path {
        "/oauth/token" if body.contains("refresh_token") && state.refuses_refresh => {
            json(401, json!({ "error": SECRET }))
        }
        "/oauth/token" if body.contains("refresh_token") => {
            state.refreshed += 1;
            state.good.insert(access_token(state.refreshed));
            json(200, tokens(state.refreshed))
        }
        "/oauth/token" => json(200, tokens(0)),
        "/api/accounts/deviceauth/usercode" => {
            json(200, json!({ "device_auth_id": "device", "user_code": "ABCD-EFGH", "interval": "0" }))
        }
        "/api/accounts/deviceauth/token" if state.device_waits > 0 => {
            state.device_waits -= 1;
            json(403, json!({}))
        }
        "/api/accounts/deviceauth/token" => {
            json(200, json!({ "authorization_code": "device-code", "code_verifier": "verifier" }))
        }
        "/api/codex/usage" => json(
            200,
            json!({ "plan_type": "plus", "rate_limit": { "primary_window": { "used_percent": 40 } } }),
        ),
        "/v1/responses" if state.good.contains(bearer) => {
            let events = [
                json!({ "type": "response.created", "response": { "id": "r1" } }),
                json!({ "type": "response.output_item.done", "output_index": 0, "item": { "type": "message",
                    "id": "m1", "role": "assistant", "content": [{ "type": "output_text", "text": "hello" }] } }),
                json!({ "type": "response.completed", "response": { "id": "r1" } }),
            ];
            let lines = events
                .iter()
                .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("text")));
            (200, "text/event-stream", lines.collect())
        }
        "/v1/responses" => json(401, json!({ "error": { "message": "token refused" } })),
        _ => json(404, json!({})),
    }
}
