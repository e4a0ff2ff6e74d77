//! Voice conversations on a thread.

use std::sync::Arc;

use config::{LoadRequest, ResolvedConfig};
use protocol::{
    RealtimeConversationVersion, ServerNotification, ThreadId, ThreadRealtimeAppendAudioParams,
    ThreadRealtimeAppendTextParams, ThreadRealtimeClosedNotification, ThreadRealtimeErrorNotification,
    ThreadRealtimeItemAddedNotification, ThreadRealtimeOutputAudioDeltaNotification,
    ThreadRealtimeStartParams, ThreadRealtimeStartedNotification,
    ThreadRealtimeTranscriptUpdatedNotification,
};
use realtime::{ConversationEnd, ConversationOptions, RealtimeError, RealtimeEvent, VoiceConversation};
use support::blocking;

use crate::error::RuntimeError;
use crate::methods::turn::ClientId;
use crate::runtime::Runtime;
use crate::state::RuntimeState;
use driver::{Audience, check_thread_id};

const FEATURE: &str = "realtime_conversation";
/// The default model of conversations.
const MODEL: &str = "gpt-realtime";

impl Runtime {
    /// Opens a conversation. It ends with the thread or with `client`, or when it is stopped; a second one replaces the
    /// first.
    pub async fn start_realtime(
        &self,
        params: ThreadRealtimeStartParams,
        client: ClientId,
    ) -> Result<(), RuntimeError> {
        let id = self.realtime_thread(&params.thread_id).await?;
        let state = self.state.clone();
        let prompt = params.prompt;
        let options = blocking(move || options(&state, &prompt)).await??;
        self.stop_conversation(&id).await;
        let (audience, heard_by) = (self.state.audience.clone(), id.clone());
        let fallback = params.session_id;
        let mut is_started = false;
        let heard = move |event: RealtimeEvent| {
            let first = !is_started;
            is_started |= is_start(&event);
            let notification = told(&heard_by, event, fallback.as_deref(), first);
            let (audience, thread) = (audience.clone(), heard_by.clone());
            async move {
                if let Some(notification) = notification {
                    audience.notify(&thread, notification).await;
                }
            }
        };
        let (audience, ended_for) = (self.state.audience.clone(), id.clone());
        let ended = move |end: ConversationEnd| close(audience, ended_for, end);
        let conversation = VoiceConversation::open(self.state.mcp.http(), &options, heard, ended).await?;
        self.state.conversations.insert(id, client.0, conversation);
        Ok(())
    }

    pub async fn append_realtime_audio(
        &self,
        params: &ThreadRealtimeAppendAudioParams,
    ) -> Result<(), RuntimeError> {
        let id = self.realtime_thread(&params.thread_id).await?;
        let conversation = self.state.conversations.get(&id).ok_or(RealtimeError::NotRunning)?;
        Ok(conversation.append_audio(&params.audio)?)
    }

    pub async fn append_realtime_text(
        &self,
        params: &ThreadRealtimeAppendTextParams,
    ) -> Result<(), RuntimeError> {
        let id = self.realtime_thread(&params.thread_id).await?;
        let conversation = self.state.conversations.get(&id).ok_or(RealtimeError::NotRunning)?;
        Ok(conversation.append_text(&params.text)?)
    }

    /// The thread of a conversation to be stopped.
    pub async fn check_realtime(&self, id: &ThreadId) -> Result<(), RuntimeError> {
        self.realtime_thread(id).await.map(|_| ())
    }

    /// Ends the conversation of a thread, if it has one.
    pub async fn stop_realtime(&self, id: &ThreadId) {
        if let Ok(id) = check_thread_id(id) {
            self.stop_conversation(&id).await;
        }
    }

    /// The client disconnected: ends its conversations.
    pub fn close_conversations(&self, client: ClientId) {
        self.state.conversations.close_of(client.0);
    }

    async fn stop_conversation(&self, id: &ThreadId) {
        let taken = self.state.conversations.take(id).and_then(Arc::into_inner);
        if let Some(conversation) = taken {
            conversation.stop().await;
        }
    }

    /// A thread in memory that may have conversations.
    async fn realtime_thread(&self, id: &ThreadId) -> Result<ThreadId, RuntimeError> {
        let handle = self.thread(id)?;
        let snapshot = handle.snapshot(false).await?;
        match snapshot.settings.tools.features.contains(FEATURE) {
            true => Ok(handle.id().clone()),
            false => Err(RuntimeError::NoRealtime(handle.id().clone())),
        }
    }
}

/// The service to connect to, with its key: the configured one, or the model's provider.
fn options(state: &RuntimeState, prompt: &str) -> Result<ConversationOptions, RuntimeError> {
    // Must not fall back to the defaults that are used for a broken file: they name another provider.
    let config = state.loader.load(&LoadRequest::default());
    let config = config.map_err(|error| RuntimeError::Config(error.to_string()))?;
    let provider = &config.provider;
    let setting = |name: &str| text_of(&config, name);
    let base = setting("experimental_realtime_ws_base_url").or_else(|| provider.base_url.clone());
    let base = base.unwrap_or_default();
    let base = base.trim_end_matches('/').replacen("ws", "http", usize::from(base.starts_with("ws")));
    let model = setting("experimental_realtime_ws_model").unwrap_or_else(|| MODEL.to_owned());
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let model: String = model.chars().filter(|letter| is_plain(*letter)).collect();
    let key =
        state.providers.credential(provider).map_err(|error| RuntimeError::Provider(error.to_string()))?;
    let headers = provider.resolve_headers(state.loader.environment());
    let mut headers: Vec<(String, String)> =
        headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned())).collect();
    headers.extend(key.map(|key| ("authorization".to_owned(), format!("Bearer {}", key.reveal()))));
    let instructions =
        setting("experimental_realtime_ws_backend_prompt").unwrap_or_else(|| prompt.to_owned());
    Ok(ConversationOptions { url: format!("{base}/realtime?model={model}"), headers, instructions })
}

fn text_of(config: &ResolvedConfig, name: &str) -> Option<String> {
    let text = config.merged.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_start(event: &RealtimeEvent) -> bool {
    matches!(event, RealtimeEvent::Started { .. })
}

/// The notification for an event. `started` is notified once, even if the service repeats it.
fn told(
    thread: &ThreadId,
    event: RealtimeEvent,
    session_id: Option<&str>,
    is_first: bool,
) -> Option<ServerNotification> {
    let thread_id = thread.clone();
    Some(match event {
        RealtimeEvent::Started { session_id: given } if is_first => {
            let session_id = given.or_else(|| session_id.map(str::to_owned));
            let version = RealtimeConversationVersion::V2;
            ServerNotification::ThreadRealtimeStarted(ThreadRealtimeStartedNotification {
                thread_id,
                session_id,
                version,
            })
        }
        RealtimeEvent::Started { .. } => return None,
        RealtimeEvent::Audio(audio) => {
            ServerNotification::ThreadRealtimeOutputAudioDelta(ThreadRealtimeOutputAudioDeltaNotification {
                thread_id,
                audio,
            })
        }
        RealtimeEvent::Transcript { role, text } => {
            ServerNotification::ThreadRealtimeTranscriptUpdated(ThreadRealtimeTranscriptUpdatedNotification {
                thread_id,
                role: role.to_owned(),
                text,
            })
        }
        RealtimeEvent::Item(item) => {
            ServerNotification::ThreadRealtimeItemAdded(ThreadRealtimeItemAddedNotification {
                thread_id,
                item,
            })
        }
        RealtimeEvent::Failed(message) => {
            ServerNotification::ThreadRealtimeError(ThreadRealtimeErrorNotification { thread_id, message })
        }
    })
}

async fn close(audience: Arc<dyn Audience>, thread_id: ThreadId, end: ConversationEnd) {
    let closed = ThreadRealtimeClosedNotification {
        thread_id: thread_id.clone(),
        reason: Some(end.reason().to_owned()),
    };
    audience.notify(&thread_id, ServerNotification::ThreadRealtimeClosed(closed)).await;
}
