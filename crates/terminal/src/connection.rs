//! The wire: lines to and from a server, which is a child of ours, behind a Unix socket, or behind a websocket.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use rpc::{FrameError, FrameLimits, FrameReader};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Messages that may wait in each direction.
const WAITING: usize = 256;
const MAX_MESSAGE: usize = 64 << 20;
/// How long a server may take to answer a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long our own server may take to put its threads away.
const END_LIMIT: Duration = Duration::from_secs(6);
/// Of what our server wrote to its standard error, so much is kept.
const KEPT_ERRORS: usize = 4_096;

/// Where the server is.
#[derive(Debug, Clone)]
pub enum ServerAddress {
    /// Started for this session, with lines on its standard input and output.
    Child { program: PathBuf, arguments: Vec<OsString> },
    /// `ws://…` or `unix://…`.
    Remote { url: String, token: Option<String> },
}

#[derive(Debug)]
pub(crate) struct ServerConnection {
    pub(crate) incoming: mpsc::Receiver<Value>,
    outgoing: Option<mpsc::Sender<String>>,
    writer: JoinHandle<()>,
    child: Option<Child>,
    errors: Arc<Mutex<String>>,
}

impl ServerConnection {
    pub(crate) async fn open(address: &ServerAddress) -> Result<Self> {
        match address {
            ServerAddress::Child { program, arguments } => Self::start(program, arguments),
            ServerAddress::Remote { url, token } => {
                let opening = Self::connect(url, token.as_deref());
                let opened = tokio::time::timeout(CONNECT_LIMIT, opening).await;
                opened
                    .unwrap_or_else(|_| bail!("no answer in {} s", CONNECT_LIMIT.as_secs()))
                    .context(url.clone())
            }
        }
    }

    /// In a process group of its own: keys that are signals are for the terminal's programs alone.
    fn start(program: &PathBuf, arguments: &[OsString]) -> Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("the server cannot be started")?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            bail!("the server has no pipes");
        };
        let mut connection = Self::lines(output, input, MAX_MESSAGE);
        tokio::spawn(keep_errors(errors, connection.errors.clone()));
        connection.child = Some(child);
        Ok(connection)
    }

    async fn connect(url: &str, token: Option<&str>) -> Result<Self> {
        if let Some(path) = url.strip_prefix("unix://") {
            let (input, output) = UnixStream::connect(path).await.map_err(not_there)?.into_split();
            return Ok(Self::lines(input, output, MAX_MESSAGE));
        }
        let Some(rest) = url.strip_prefix("ws://") else {
            bail!("expected `ws://HOST:PORT` or `unix://PATH`");
        };
        let authority = rest.split('/').next().unwrap_or_default();
        let authority =
            if authority.contains(':') { authority.to_owned() } else { format!("{authority}:80") };
        let mut request = url.into_client_request()?;
        if let Some(token) = token {
            let value =
                HeaderValue::from_str(&format!("Bearer {token}")).context("the token cannot be sent")?;
            request.headers_mut().insert("authorization", value);
        }
        let stream = TcpStream::connect(&authority).await.map_err(not_there)?;
        let mut config = WebSocketConfig::default();
        (config.max_message_size, config.max_frame_size) = (Some(MAX_MESSAGE), Some(MAX_MESSAGE));
        let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await?;
        let (mut sink, mut stream) = socket.split();
        let (told, incoming) = mpsc::channel(WAITING);
        let (outgoing, mut lines) = mpsc::channel::<String>(WAITING);
        let errors: Arc<Mutex<String>> = Arc::default();
        let problem = errors.clone();
        tokio::spawn(async move {
            while let Some(message) = stream.next().await {
                let text = match message {
                    Ok(Message::Text(text)) => text,
                    Ok(_) => continue,
                    // Also that a message is too long: then nothing more can be read.
                    Err(error) => {
                        *problem.lock() = error.to_string();
                        return;
                    }
                };
                let Ok(value) = serde_json::from_str(&text) else { continue };
                if told.send(value).await.is_err() {
                    return;
                }
            }
        });
        let writer = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if sink.send(Message::text(line)).await.is_err() {
                    return;
                }
            }
            let _ = sink.close().await;
        });
        Ok(Self { incoming, outgoing: Some(outgoing), writer, child: None, errors })
    }

    fn lines(
        input: impl AsyncRead + Unpin + Send + 'static,
        mut output: impl AsyncWrite + Unpin + Send + 'static,
        max_message: usize,
    ) -> Self {
        let (told, incoming) = mpsc::channel(WAITING);
        let (outgoing, mut lines) = mpsc::channel::<String>(WAITING);
        tokio::spawn(async move {
            let mut frames = FrameReader::new(input, FrameLimits { max_frame_bytes: max_message });
            while let Some(frame) = frames.next().await {
                let frame = match frame {
                    Ok(frame) => frame,
                    Err(error) => {
                        let Some(refusal) = too_long(&error) else { return };
                        if told.send(refusal).await.is_err() {
                            return;
                        }
                        continue;
                    }
                };
                // A line that is not JSON is not shown to a person.
                let Ok(value) = serde_json::from_slice(frame) else { continue };
                if told.send(value).await.is_err() {
                    return;
                }
            }
        });
        let writer = tokio::spawn(async move {
            while let Some(mut line) = lines.recv().await {
                line.push('\n');
                if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                    return;
                }
            }
        });
        Self { incoming, outgoing: Some(outgoing), writer, child: None, errors: Arc::default() }
    }

    /// Waits while the server does not read.
    pub(crate) async fn send(&self, message: &Value) {
        if let Some(outgoing) = &self.outgoing {
            // A server that is gone is noticed when nothing more comes from it.
            let _ = outgoing.send(message.to_string()).await;
        }
    }

    /// Why the server is gone, as far as it told.
    pub(crate) async fn last_words(&mut self) -> String {
        let status = match &mut self.child {
            Some(child) => tokio::time::timeout(END_LIMIT, child.wait()).await.ok().and_then(Result::ok),
            None => None,
        };
        let errors = self.errors.lock().trim().to_owned();
        let ending = status.map_or_else(|| "the connection ended".to_owned(), |status| status.to_string());
        if errors.is_empty() { ending } else { format!("{ending}\n{errors}") }
    }

    /// Says goodbye: what is to be sent still is, and a server of our own puts its threads away.
    pub(crate) async fn close(mut self) {
        drop(self.outgoing.take());
        let ending = async {
            let _ = (&mut self.writer).await;
            if let Some(child) = &mut self.child {
                let _ = child.wait().await;
            }
        };
        // A child that does not end in time is killed when it is dropped.
        let _ = tokio::time::timeout(END_LIMIT, ending).await;
    }
}

/// Says what to do where no server is. The reason stays below it.
fn not_there(error: io::Error) -> anyhow::Error {
    let is_absent = matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound);
    let error = anyhow::Error::new(error);
    if is_absent { error.context(NOT_THERE) } else { error }
}

const NOT_THERE: &str = "no server answers there; start one with `oarlock app-server --listen` or `oarlock host`, or correct --remote";

/// Takes the place of a message that is too long: whoever asked for it must not wait for ever. It has no id, because what is
/// read of such a message tells none. None where nothing more can be read.
fn too_long(error: &FrameError) -> Option<Value> {
    let FrameError::TooLong { limit, .. } = error else { return None };
    let message = format!("a message of the server is longer than {} MiB and was left out", limit >> 20);
    Some(json!({ "id": null, "error": { "message": message } }))
}

async fn keep_errors(mut errors: impl AsyncRead + Unpin, kept: Arc<Mutex<String>>) {
    let mut buffer = [0; 1_024];
    while let Ok(count @ 1..) = errors.read(&mut buffer).await {
        let mut kept = kept.lock();
        kept.push_str(&String::from_utf8_lossy(&buffer[..count]));
        let surplus = kept.len().saturating_sub(KEPT_ERRORS);
        let from = (surplus..=kept.len()).find(|at| kept.is_char_boundary(*at)).unwrap_or_default();
        kept.drain(..from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_no_server_is_the_error_says_what_to_start() {
        let folder = std::env::temp_dir();
        let url = format!("unix://{}", folder.join("no-such-socket-of-a-server").display());
        let error = ServerConnection::open(&ServerAddress::Remote { url: url.clone(), token: None }).await;
        let told = format!("{:#}", error.expect_err("nobody is there"));
        assert_eq!(told, format!("{url}: {NOT_THERE}: No such file or directory (os error 2)"));
    }

    #[tokio::test]
    async fn a_message_that_is_too_long_is_no_silence() {
        let (mut server, ours) = tokio::io::duplex(1 << 10);
        let mut connection = ServerConnection::lines(ours, tokio::io::sink(), 32);
        let long = format!("{{\"id\":3,\"result\":\"{}\"}}\n{{\"id\":4}}\n", "x".repeat(99));
        server.write_all(long.as_bytes()).await.expect("it is written");
        let told = connection.incoming.recv().await.expect("a message");
        assert!(told["error"]["message"].is_string(), "{told}");
        assert_eq!(connection.incoming.recv().await, Some(json!({ "id": 4 })));
    }
}
