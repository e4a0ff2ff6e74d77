//! One conversation: a task that owns the socket, and a handle that sends to it.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use protocol::ThreadRealtimeAudioChunk;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::events::{RealtimeEvent, append_audio, append_text, open_session};
use crate::socket::{ServiceSocket, connect};

/// Pieces of sound and text that may wait for the service.
const WAITING: usize = 256;
/// How long a goodbye may take.
const CLOSING: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RealtimeError {
    #[error("the realtime service cannot be reached: {0}")]
    Unreachable(String),
    #[error("too much sound waits for the realtime service; send less at a time")]
    Full,
    #[error("conversation is not running")]
    NotRunning,
}

/// Where a conversation is held, and what the voice is told.
#[derive(Clone)]
pub struct ConversationOptions {
    /// An `http` or `https` address.
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub instructions: String,
}

impl std::fmt::Debug for ConversationOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConversationOptions").finish_non_exhaustive()
    }
}

/// How a conversation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationEnd {
    Requested,
    TransportClosed,
}

impl ConversationEnd {
    /// As clients are told.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::TransportClosed => "transport_closed",
        }
    }
}

/// A conversation that runs. Dropped, it ends.
#[derive(Debug)]
pub struct VoiceConversation {
    messages: mpsc::Sender<String>,
    task: JoinHandle<()>,
}

impl VoiceConversation {
    /// Connects, and hands every event to `heard` until the conversation ends, which `ended` is told once.
    pub async fn open<H, E, F, G>(
        client: &http::Client,
        options: &ConversationOptions,
        mut heard: H,
        ended: E,
    ) -> Result<Self, RealtimeError>
    where
        H: FnMut(RealtimeEvent) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
        E: FnOnce(ConversationEnd) -> G + Send + 'static,
        G: Future<Output = ()> + Send + 'static,
    {
        let mut socket = connect(client, &options.url, &options.headers).await?;
        let opening = socket.send(Message::text(open_session(&options.instructions))).await;
        opening.map_err(|error| RealtimeError::Unreachable(error.to_string()))?;
        let (messages, mut waiting) = mpsc::channel(WAITING);
        let task = tokio::spawn(async move {
            let end = carry(&mut socket, &mut waiting, &mut heard).await;
            let _ = tokio::time::timeout(CLOSING, socket.close(None)).await;
            ended(end).await;
        });
        Ok(Self { messages, task })
    }

    pub fn append_audio(&self, audio: &ThreadRealtimeAudioChunk) -> Result<(), RealtimeError> {
        self.send(append_audio(audio))
    }

    pub fn append_text(&self, text: &str) -> Result<(), RealtimeError> {
        self.send(append_text(text))
    }

    /// Nobody waits for a slow service: what does not fit is refused.
    fn send(&self, message: String) -> Result<(), RealtimeError> {
        self.messages.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => RealtimeError::Full,
            mpsc::error::TrySendError::Closed(_) => RealtimeError::NotRunning,
        })
    }

    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it, and waits until that was told.
    pub async fn stop(self) {
        let Self { messages, task } = self;
        drop(messages);
        let _ = task.await;
    }
}

/// Both ways until one of them ends.
async fn carry<H, F>(
    socket: &mut ServiceSocket,
    waiting: &mut mpsc::Receiver<String>,
    heard: &mut H,
) -> ConversationEnd
where
    H: FnMut(RealtimeEvent) -> F,
    F: Future<Output = ()>,
{
    loop {
        tokio::select! {
            message = waiting.recv() => match message {
                None => return ConversationEnd::Requested,
                Some(message) => {
                    if let Err(error) = socket.send(Message::text(message)).await {
                        heard(RealtimeEvent::Failed(error.to_string())).await;
                        return ConversationEnd::TransportClosed;
                    }
                }
            },
            received = socket.next() => match received {
                Some(Ok(Message::Text(text))) => {
                    let event = serde_json::from_str(&text).ok().and_then(|event| RealtimeEvent::of(&event));
                    if let Some(event) = event {
                        heard(event).await;
                    }
                }
                Some(Ok(Message::Close(_))) | None => return ConversationEnd::TransportClosed,
                // Pings are answered by the socket itself; nothing else is part of this protocol.
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    heard(RealtimeEvent::Failed(error.to_string())).await;
                    return ConversationEnd::TransportClosed;
                }
            },
        }
    }
}
