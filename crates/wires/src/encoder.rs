//! Encodes requests, on any wire.

use std::sync::Arc;

use bytes::Bytes;
use model::RequestBody;

use crate::{Capabilities, Decoder, Unsupported, Wire, chat, messages, responses};

/// Encodes the requests of one thread. Each item of its history is encoded once and its bytes are kept, so a request's
/// cost does not grow with the thread.
#[derive(Debug)]
pub struct Encoder(WireEncoder);

#[derive(Debug)]
enum WireEncoder {
    Responses(responses::ResponsesEncoder),
    Chat(chat::ChatEncoder),
    Messages(messages::MessagesEncoder),
}

/// An encoded request.
#[derive(Debug)]
pub struct EncodedRequest {
    /// In consecutive parts; those of the history are shared with the encoder.
    pub body: Vec<Bytes>,
    /// Decodes the response. Each attempt needs its own clone.
    pub decoder: Decoder,
}

impl Encoder {
    pub fn new(wire: Wire) -> Self {
        Self(match wire {
            Wire::Responses => WireEncoder::Responses(responses::ResponsesEncoder::default()),
            Wire::Chat => WireEncoder::Chat(chat::ChatEncoder::default()),
            Wire::Messages => WireEncoder::Messages(messages::MessagesEncoder::default()),
        })
    }

    /// The bytes kept for the next request.
    pub fn kept_bytes(&self) -> usize {
        match &self.0 {
            WireEncoder::Responses(encoder) => encoder.kept_bytes(),
            WireEncoder::Chat(encoder) => encoder.kept_bytes(),
            WireEncoder::Messages(encoder) => encoder.kept_bytes(),
        }
    }

    pub fn encode(
        &mut self,
        request: &Arc<RequestBody>,
        able: &Capabilities,
    ) -> Result<EncodedRequest, Unsupported> {
        let wire = self.wire().name();
        let unsupported = |feature| Unsupported { provider: able.provider.clone(), wire, feature };
        match &mut self.0 {
            WireEncoder::Responses(encoder) => {
                let body = encoder.encode(request, able).map_err(|error| unsupported(error.to_string()))?;
                Ok(EncodedRequest { body, decoder: Decoder::responses_to(request, able) })
            }
            WireEncoder::Chat(encoder) => {
                let (body, targets) = encoder.encode(request, able).map_err(unsupported)?;
                let decoder = chat::ChatDecoder::new(able, Arc::clone(request), targets);
                Ok(EncodedRequest { body, decoder: Decoder::chat(decoder, request) })
            }
            WireEncoder::Messages(encoder) => {
                let (body, decoder) = encoder.encode(request, able).map_err(unsupported)?;
                Ok(EncodedRequest { body, decoder: Decoder::messages(decoder, request) })
            }
        }
    }

    fn wire(&self) -> Wire {
        match &self.0 {
            WireEncoder::Responses(_) => Wire::Responses,
            WireEncoder::Chat(_) => Wire::Chat,
            WireEncoder::Messages(_) => Wire::Messages,
        }
    }
}
