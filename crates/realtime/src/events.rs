//! The messages of a conversation in both directions, for the older and the newer service.

use protocol::{ItemId, ThreadRealtimeAudioChunk};
use serde_json::{Value, json};

/// The default sample rate.
const SAMPLE_RATE: u32 = 24_000;

/// One event of the service.
#[derive(Debug, Clone, PartialEq)]
pub enum RealtimeEvent {
    /// The conversation is open.
    Started {
        session_id: Option<String>,
    },
    Audio(ThreadRealtimeAudioChunk),
    /// A new part of the transcript.
    Transcript {
        role: &'static str,
        text: String,
    },
    /// An item without its own event.
    Item(Value),
    Failed(String),
}

impl RealtimeEvent {
    /// None for events that clients do not need.
    pub(crate) fn of(event: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Some(match event["type"].as_str()? {
            "session.created" | "session.updated" => {
                Self::Started { session_id: text(&event["session"]["id"]) }
            }
            "conversation.output_audio.delta" | "response.output_audio.delta" | "response.audio.delta" => {
                Self::Audio(audio(event)?)
            }
            "conversation.input_transcript.delta" | "conversation.item.input_audio_transcription.delta" => {
                Self::Transcript { role: "user", text: text(&event["delta"])? }
            }
            "conversation.output_transcript.delta"
            | "response.output_audio_transcript.delta"
            | "response.audio_transcript.delta"
            | "response.output_text.delta" => {
                Self::Transcript { role: "assistant", text: text(&event["delta"])? }
            }
            "conversation.item.added" | "conversation.item.done" => {
                Self::Item(Some(event["item"].clone()).filter(|item| !item.is_null())?)
            }
            "conversation.handoff.requested" | "input_audio_buffer.speech_started" | "response.cancelled" => {
                Self::Item(event.clone())
            }
            "error" => {
                let message = text(&event["error"]["message"]).or_else(|| text(&event["message"]));
                Self::Failed(message.unwrap_or_else(|| "the service reports an error".to_owned()))
            }
            _ => return None,
        })
    }
}

fn audio(event: &Value) -> Option<ThreadRealtimeAudioChunk> {
    let number = |name: &str| event[name].as_u64().and_then(|number| u32::try_from(number).ok());
    let channels = number("channels").or_else(|| number("num_channels"));
    Some(ThreadRealtimeAudioChunk {
        data: event["delta"].as_str().or_else(|| event["data"].as_str())?.to_owned(),
        sample_rate: number("sample_rate").unwrap_or(SAMPLE_RATE),
        num_channels: channels.and_then(|channels| u16::try_from(channels).ok()).unwrap_or(1),
        samples_per_channel: number("samples_per_channel"),
        item_id: event["item_id"].as_str().map(ItemId::new),
    })
}

/// The first message: the instructions and the audio format.
pub(crate) fn open_session(instructions: &str) -> String {
    let format = json!({ "type": "audio/pcm", "rate": SAMPLE_RATE });
    json!({
        "type": "session.update",
        "session": {
            "type": "realtime",
            "instructions": instructions,
            "output_modalities": ["audio"],
            "audio": { "input": { "format": format }, "output": { "format": format } },
        },
    })
    .to_string()
}

pub(crate) fn append_audio(audio: &ThreadRealtimeAudioChunk) -> String {
    json!({ "type": "input_audio_buffer.append", "audio": audio.data }).to_string()
}

pub(crate) fn append_text(text: &str) -> String {
    let content = json!([{ "type": "input_text", "text": text }]);
    let item = json!({ "type": "message", "role": "user", "content": content });
    json!({ "type": "conversation.item.create", "item": item }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "the cases read better")]
    fn check(event: &Value, expected: Option<RealtimeEvent>) {
        assert_eq!(RealtimeEvent::of(event), expected, "{event}");
    }

    #[test]
    fn events_of_both_services_mean_the_same() {
        let started = |id: Option<&str>| Some(RealtimeEvent::Started { session_id: id.map(str::to_owned) });
        check(&json!({"type": "session.created", "session": {"id": "s1"}}), started(Some("s1")));
        check(&json!({"type": "session.updated"}), started(None));
        let said = |role, text: &str| Some(RealtimeEvent::Transcript { role, text: text.to_owned() });
        check(&json!({"type": "conversation.input_transcript.delta", "delta": "a"}), said("user", "a"));
        check(
            &json!({"type": "response.output_audio_transcript.delta", "delta": "b"}),
            said("assistant", "b"),
        );
        for kind in ["conversation.output_audio.delta", "response.output_audio.delta"] {
            let Some(RealtimeEvent::Audio(chunk)) =
                RealtimeEvent::of(&json!({"type": kind, "delta": "AAA="}))
            else {
                panic!("{kind}")
            };
            assert_eq!((chunk.data.as_str(), chunk.sample_rate, chunk.num_channels), ("AAA=", 24_000, 1));
        }
        check(
            &json!({"type": "conversation.item.added", "item": {"id": 1}}),
            Some(RealtimeEvent::Item(json!({"id": 1}))),
        );
        check(
            &json!({"type": "error", "error": {"message": "no"}}),
            Some(RealtimeEvent::Failed("no".to_owned())),
        );
        for nothing in
            [json!({}), json!([]), json!({"type": "newer"}), json!({"type": "response.output_audio.delta"})]
        {
            check(&nothing, None);
        }
    }
}
