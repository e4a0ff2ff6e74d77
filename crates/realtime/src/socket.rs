//! A websocket to the service: an HTTP request that becomes one.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Client, HeaderMap, HeaderName, HeaderValue, HttpBody, HttpRequest, Method, UpgradedConnection};
use ring::rand::{SecureRandom, SystemRandom};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use crate::conversation::RealtimeError;

/// Time limit of connecting.
const PATIENCE: Duration = Duration::from_secs(15);
/// Sound comes in pieces of a second or so. A larger message is an attack.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

pub(crate) type ServiceSocket = WebSocketStream<UpgradedConnection>;

/// Connects to an `http` or `https` address, with these headers beside those of the handshake.
pub(crate) async fn connect(
    client: &Client,
    url: &str,
    headers: &[(String, String)],
) -> Result<ServiceSocket, RealtimeError> {
    let unreachable = |error: String| RealtimeError::Unreachable(error);
    let url = url.parse().map_err(|_| unreachable("its address cannot be read".to_owned()))?;
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let pair = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value.as_str()));
        if let (Ok(name), Ok(mut value)) = pair {
            value.set_sensitive(true);
            all.insert(name, value);
        }
    }
    let mut nonce = [0; 16];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| unreachable("there are no random numbers".to_owned()))?;
    let key =
        HeaderValue::try_from(STANDARD.encode(nonce)).map_err(|error| unreachable(error.to_string()))?;
    for (name, value) in [
        ("connection", HeaderValue::from_static("Upgrade")),
        ("upgrade", HeaderValue::from_static("websocket")),
        ("sec-websocket-version", HeaderValue::from_static("13")),
        ("sec-websocket-key", key),
    ] {
        all.insert(HeaderName::from_static(name), value);
    }
    let request = HttpRequest { method: Method::GET, url, headers: all, body: HttpBody::default() };
    let upgraded = client.upgrade(request, PATIENCE).await.map_err(|error| unreachable(error.to_string()))?;
    let limits =
        WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await)
}
