//! One conversation: a task that owns the socket, and a handle that sends to it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use protocol::ThreadRealtimeAudioChunk;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;

use crate::events::{RealtimeEvent, append_audio, append_text, open_session};
use crate::socket::{ServiceSocket, connect};

/// Limit of queued audio and text messages.
const WAITING: usize = 256;
/// Limit of their bytes. A client may send faster than the service reads.
const WAITING_BYTES: usize = 16 << 20;
/// Time limit of sending the queue and closing.
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

/// The URL of the service, and the voice's instructions.
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
    /// As reported to clients.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::TransportClosed => "transport_closed",
        }
    }
}

/// A running conversation. Dropping it ends it.
#[derive(Debug)]
pub struct VoiceConversation {
    messages: mpsc::Sender<WaitingMessage>,
    /// The bytes that may still be queued.
    room: Arc<Semaphore>,
    task: JoinHandle<()>,
    /// Dropped with the rest: a service that does not read must not keep the task alive.
    _open: oneshot::Sender<()>,
}

#[derive(Debug)]
struct WaitingMessage {
    text: String,
    _room: OwnedSemaphorePermit,
}

impl VoiceConversation {
    /// Connects, and passes every event to `heard` until the conversation ends, which is reported once to `ended`.
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
        let (open, closed) = oneshot::channel();
        let task = tokio::spawn(async move {
            let end = tokio::select! {
                end = carry(&mut socket, &mut waiting, &mut heard) => end,
                () = overdue(closed) => ConversationEnd::Requested,
            };
            let _ = tokio::time::timeout(CLOSING, socket.close(None)).await;
            ended(end).await;
        });
        Ok(Self { messages, room: Arc::new(Semaphore::new(WAITING_BYTES)), task, _open: open })
    }

    pub fn append_audio(&self, audio: &ThreadRealtimeAudioChunk) -> Result<(), RealtimeError> {
        self.send(append_audio(audio))
    }

    pub fn append_text(&self, text: &str) -> Result<(), RealtimeError> {
        self.send(append_text(text))
    }

    /// Does not wait for a slow service: refuses what exceeds the limits.
    fn send(&self, text: String) -> Result<(), RealtimeError> {
        let bytes = u32::try_from(text.len()).map_err(|_| RealtimeError::Full)?;
        let room = self.room.clone().try_acquire_many_owned(bytes).map_err(|_| RealtimeError::Full)?;
        self.messages.try_send(WaitingMessage { text, _room: room }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => RealtimeError::Full,
            mpsc::error::TrySendError::Closed(_) => RealtimeError::NotRunning,
        })
    }

    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Ends it, and waits until that was reported.
    pub async fn stop(self) {
        let Self { messages, task, _open, .. } = self;
        drop((messages, _open));
        let _ = task.await;
    }
}

/// Resolves a while after the other end is dropped.
async fn overdue(closed: oneshot::Receiver<()>) {
    let _ = closed.await;
    tokio::time::sleep(CLOSING).await;
}

/// Transfers in both directions until one of them ends.
async fn carry<H, F>(
    socket: &mut ServiceSocket,
    waiting: &mut mpsc::Receiver<WaitingMessage>,
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
                    if let Err(error) = socket.send(Message::text(message.text)).await {
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
                // The socket answers pings itself; other messages are not part of this protocol.
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    heard(RealtimeEvent::Failed(error.to_string())).await;
                    return ConversationEnd::TransportClosed;
                }
            },
        }
    }
}
