//! Servers with streamable HTTP: each message is a POST; responses come as JSON or as an event stream.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::SecretText;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{
    Client, HeaderMap, HeaderName, HeaderValue, HttpRequest, HttpResponse, Method, ResponseBody, SseReader,
    StatusCode, Uri,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use crate::oauth::{Challenge, ServerAccess};
use crate::tool::cut;
use crate::wire::{Arrival, MAX_MESSAGE, McpWire, WAITING};

/// Time limit until the headers of a response. The callers limit individual calls.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);
/// Limit of concurrent messages.
const AT_ONCE: usize = 16;
const SHOWN_ERROR: usize = 500;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The URL of a server and our credentials.
#[derive(Clone)]
pub(crate) struct McpEndpoint {
    pub(crate) url: Uri,
    pub(crate) headers: HeaderMap,
    /// The login for every request, if the configuration has no token.
    pub(crate) access: Option<Arc<ServerAccess>>,
    /// Its name in the configuration.
    pub(crate) server: String,
}

impl std::fmt::Debug for McpEndpoint {
    /// Neither headers nor query: both may contain keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpEndpoint").field("host", &self.url.host()).finish_non_exhaustive()
    }
}

impl McpEndpoint {
    /// `headers` by name; an invalid value is reported without showing it.
    pub(crate) fn new(
        url: &str,
        headers: impl IntoIterator<Item = (String, String)>,
        bearer: Option<&str>,
    ) -> Result<Self, String> {
        let url: Uri = url.parse().map_err(|_| "its url cannot be read".to_owned())?;
        if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
            return Err("its url must begin with http:// or https:// and name a host".to_owned());
        }
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let parsed = HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(&value).ok());
            let (name, mut value) = parsed.ok_or_else(|| format!("the header `{name}` cannot be sent"))?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        if let Some(token) = bearer {
            let value = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut value = value.map_err(|_| "its token cannot be sent as a header".to_owned())?;
            value.set_sensitive(true);
            all.insert(AUTHORIZATION, value);
        }
        Ok(Self { url, headers: all, access: None, server: String::new() })
    }
}

/// Nothing is sent before the first message.
pub(crate) fn connect(client: Client, endpoint: McpEndpoint) -> McpWire {
    let (outgoing, to_send) = mpsc::channel(WAITING);
    let (arrived, arrivals) = mpsc::channel(WAITING);
    let sender = Arc::new(Sender { client, endpoint, arrived, agreed: Mutex::default() });
    tokio::spawn(send_all(sender, to_send));
    McpWire { outgoing, arrivals }
}

#[derive(Debug)]
struct Sender {
    client: Client,
    endpoint: McpEndpoint,
    arrived: mpsc::Sender<Arrival>,
    /// From the server's first answer: its session and the revision of MCP.
    agreed: Mutex<HeaderMap>,
}

/// Until all senders are dropped; then the session is closed.
async fn send_all(sender: Arc<Sender>, mut messages: mpsc::Receiver<Value>) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    let mut tasks = JoinSet::new();
    let mut is_listening = false;
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            () = sender.arrived.closed() => None,
        };
        let Some(message) = message else { break };
        while tasks.try_join_next().is_some() {}
        let is_ready = message.get("method").and_then(Value::as_str) == Some("notifications/initialized");
        let Ok(slot) = slots.clone().acquire_owned().await else { break };
        let of_task = sender.clone();
        tasks.spawn(async move {
            let _slot = slot;
            of_task.deliver(message).await;
        });
        if is_ready && !std::mem::replace(&mut is_listening, true) {
            let listener = sender.clone();
            tasks.spawn(async move { listener.listen().await });
        }
    }
    tasks.shutdown().await;
    sender.close().await;
}

impl Sender {
    fn request(&self, method: Method, body: Bytes) -> HttpRequest {
        let mut headers = self.endpoint.headers.clone();
        headers.extend(self.agreed.lock().clone());
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        HttpRequest { method, url: self.endpoint.url.clone(), headers, body: body.into() }
    }

    /// Sends with the token of the login, if there is one. A refused token is renewed once.
    async fn send(
        &self,
        method: Method,
        body: Bytes,
        patience: Duration,
    ) -> Result<HttpResponse, http::HttpError> {
        let request = self.request(method, body);
        let Some(access) = &self.endpoint.access else { return self.client.send(request, patience).await };
        let token = access.token().await;
        let answer = self.client.send(with_token(request.clone(), token.as_ref()), patience).await?;
        if answer.status == StatusCode::UNAUTHORIZED
            && let Some(refused) = token
            && let Some(renewed) = access.renew(&refused).await
        {
            return self.client.send(with_token(request, Some(&renewed)), patience).await;
        }
        Ok(answer)
    }

    /// Sends one message and passes on the response. A request without a response fails with the reason.
    async fn deliver(&self, message: Value) {
        let id = message.get("method").and_then(|_| message.get("id")).and_then(Value::as_u64);
        let body = Bytes::from(message.to_string());
        let outcome = match self.send(Method::POST, body, PATIENCE).await {
            Ok(answer) => self.take(answer, &message).await,
            Err(error) => Err(error.to_string()),
        };
        let reason = match outcome {
            Ok(()) => "the server closed its answer before the result came".to_owned(),
            Err(reason) => reason,
        };
        // No effect if there was a response.
        if let Some(id) = id {
            let _ = self.arrived.send(Arrival::Undelivered { id, reason }).await;
        }
    }

    async fn take(&self, answer: HttpResponse, message: &Value) -> Result<(), String> {
        if !answer.status.is_success() {
            return Err(refusal(&self.endpoint, answer).await);
        }
        if message.get("method").and_then(Value::as_str) == Some("initialize")
            && let Some(session) = answer.headers.get(SESSION)
        {
            self.agreed.lock().insert(SESSION, session.clone());
        }
        let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return self.events(answer.body).await;
        }
        let Ok(body) = answer.body.read(MAX_MESSAGE, PATIENCE).await else {
            let _ = self.arrived.send(Arrival::TooLarge).await;
            return Ok(());
        };
        if !body.trim_ascii().is_empty() {
            let message = serde_json::from_slice(&body).map_err(|_| "its answer is no JSON".to_owned())?;
            self.hand_on(message).await;
        }
        Ok(())
    }

    async fn hand_on(&self, message: Value) {
        // The agreed revision goes with every later request.
        if let Some(version) = message.pointer("/result/protocolVersion").and_then(Value::as_str)
            && let Ok(version) = HeaderValue::from_str(version)
        {
            self.agreed.lock().entry(VERSION).or_insert(version);
        }
        let _ = self.arrived.send(Arrival::Message(message)).await;
    }

    async fn events(&self, mut body: ResponseBody) -> Result<(), String> {
        let mut reader = SseReader::new(MAX_MESSAGE);
        while let Some(chunk) = body.chunk().await {
            reader.push(chunk.map_err(|error| error.to_string())?);
            loop {
                match reader.next_event() {
                    Ok(Some(event)) => match serde_json::from_str::<Value>(&event.text()) {
                        Ok(message) if message.is_object() || message.is_array() => {
                            self.hand_on(message).await;
                        }
                        _ => {}
                    },
                    Ok(None) => break,
                    Err(_) => {
                        let _ = self.arrived.send(Arrival::TooLarge).await;
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads messages that the server sends outside responses. Servers need not support that.
    async fn listen(&self) {
        let answer = self.send(Method::GET, Bytes::new(), PATIENCE).await;
        if let Ok(answer) = answer
            && answer.status == StatusCode::OK
        {
            let _ = self.events(answer.body).await;
        }
    }

    async fn close(&self) {
        if self.agreed.lock().contains_key(SESSION) {
            let _ = self.send(Method::DELETE, Bytes::new(), CLOSE_PATIENCE).await;
        }
    }
}

fn with_token(mut request: HttpRequest, token: Option<&SecretText>) -> HttpRequest {
    let value = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {}", token.reveal())).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        request.headers.insert(AUTHORIZATION, value);
    }
    request
}

async fn refusal(endpoint: &McpEndpoint, answer: HttpResponse) -> String {
    let (status, name) = (answer.status, &endpoint.server);
    let challenge = Challenge::read(&answer.headers);
    match (status, challenge.error.as_deref(), &endpoint.access) {
        (StatusCode::UNAUTHORIZED, _, Some(_)) => {
            return format!(
                "the server wants a login (401); run `oarlock mcp login {name}`, or name a token in \
                 bearer_token_env_var"
            );
        }
        (StatusCode::UNAUTHORIZED, _, None) => {
            return "the server wants a login (401) and refuses the token of its configuration".to_owned();
        }
        (StatusCode::FORBIDDEN, Some("insufficient_scope"), Some(access)) => {
            let wanted = cut(challenge.scope.as_deref().unwrap_or_default(), SHOWN_ERROR);
            let scopes = access.scopes_with(&wanted).join(",");
            return format!(
                "the login does not reach that far; run `oarlock mcp login {name} --scopes {scopes}`"
            );
        }
        _ => {}
    }
    let said = answer.body.read_some(SHOWN_ERROR, CLOSE_PATIENCE).await;
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match said.is_empty() {
        true => format!("the server answered {status}"),
        false => format!("the server answered {status}: {said}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_named_and_not_shown() {
        for (url, header, bearer, expected) in [
            ("not a url", None, None, "url cannot be read"),
            ("ftp://h/x", None, None, "must begin with http"),
            ("https://h/x", Some(("A b", "v")), None, "the header `A b`"),
            ("https://h/x", Some(("A", "s3cret\n")), None, "the header `A`"),
            ("https://h/x", None, Some("s3cret\n"), "its token"),
        ] {
            let headers = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
            let problem = McpEndpoint::new(url, headers, bearer).expect_err("it is wrong");
            assert!(problem.contains(expected) && !problem.contains("s3cret"), "{problem}");
        }
        let headers = [("X-Key".to_owned(), "s3cret".to_owned())];
        let endpoint =
            McpEndpoint::new("https://h/x?k=s3cret", headers, Some("s3cret")).expect("it is right");
        assert!(!format!("{endpoint:?}").contains("s3cret"));
        assert_eq!(endpoint.headers[AUTHORIZATION], "Bearer s3cret");
    }
}
