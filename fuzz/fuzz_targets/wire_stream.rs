//! Any bytes as the event stream of a model provider, cut into chunks anywhere.

use std::sync::Arc;

use http::SseReader;
use model::{OutputFormat, RequestBody, StreamEvent, TextOptions};
use wires::{Capabilities, Decoder, Encoder, Wire};

const MAX_EVENT_BYTES: usize = 1 << 16;

/// The first byte says where the rest is cut; both ways of cutting must give the same events, and one end. Where it is odd,
/// the answer has to match a schema.
pub fn read(wire: Wire, data: &[u8]) {
    let Some((first, stream)) = data.split_first() else { return };
    let with_schema = first % 2 == 1;
    let whole = events(decoder(wire, with_schema), [stream]);
    let pieces = events(decoder(wire, with_schema), stream.chunks(usize::from(*first).max(1)));
    assert_eq!(whole, pieces);
    let ends = whole.iter().filter(|event| event.is_terminal()).count();
    assert!(ends == 1 && whole.last().is_some_and(StreamEvent::is_terminal), "{whole:?}");
}

fn events<'a>(mut decoder: Decoder, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<StreamEvent> {
    let mut reader = SseReader::new(MAX_EVENT_BYTES);
    let mut events = Vec::new();
    'stream: for chunk in chunks {
        reader.push(bytes::Bytes::copy_from_slice(chunk));
        loop {
            match reader.next_event() {
                Ok(Some(data)) => decoder.push(&data.text(), &mut events),
                Ok(None) => break,
                Err(_) => break 'stream,
            }
        }
    }
    decoder.close(None, &mut events);
    events
}

const SCHEMA: &str = r##"{"type":"object","required":["a"],"additionalProperties":false,
    "$defs":{"word":{"type":"string","maxLength":3}},
    "properties":{"a":{"anyOf":[{"$ref":"#/$defs/word"},{"type":"array","items":{"$ref":"#/$defs/word"}}]}}}"##;

fn decoder(wire: Wire, with_schema: bool) -> Decoder {
    let mut request: RequestBody = serde_json::from_str(
        r#"{"model":"m","instructions":"i","input":[{"type":"function_call","name":"read","arguments":"{}","call_id":"c0"}],
            "tools":[{"type":"custom","name":"apply_patch"},{"type":"function","name":"read","parameters":{}}],
            "tool_choice":"auto","parallel_tool_calls":true,"reasoning":null,"store":false,"stream":true,"include":[],
            "prompt_cache_key":"k"}"#,
    )
    .expect("a request");
    if with_schema {
        let schema = serde_json::from_str(SCHEMA).expect("a schema");
        let format = OutputFormat::JsonSchema { strict: true, schema, name: "answer".to_owned() };
        request.text = Some(TextOptions { verbosity: None, format: Some(format) });
    }
    let able = Capabilities::of("gemini", wire);
    Encoder::new(wire).encode(&Arc::new(request), &able).expect("a plain request").decoder
}
