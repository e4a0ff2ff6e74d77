//! Requests to a provider that speaks another wire.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame};
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use model_http::{Translation, Translator};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::{self, BridgeResponse};
use super::gate::ProviderRoute;

/// Answers as the Responses API would.
pub(super) async fn translate(
    translator: &Translator,
    route: ProviderRoute,
    body: &[u8],
    permit: OwnedSemaphorePermit,
) -> BridgeResponse {
    if route == ProviderRoute::Compact {
        let message = "the provider speaks another wire and has no way to shorten a history by itself";
        return answer::error(StatusCode::NOT_FOUND, "not_available", message);
    }
    let translation = match translator.post(body).await {
        Ok(translation) => translation,
        Err(refused) => {
            let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_GATEWAY);
            tracing::debug!(status = status.as_u16(), "the provider refuses");
            return answer::json_document(status, &refused.body);
        }
    };
    if !translation.wants_stream() {
        let response = translation.whole().await;
        drop(permit);
        return answer::json_document(StatusCode::OK, &response);
    }
    let events = EventFrames { translation, _permit: permit };
    let mut answer = Response::new(events.boxed_unsync());
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// Each event goes out as it comes in; the place is free again when the last one has.
struct EventFrames {
    translation: Translation,
    _permit: OwnedSemaphorePermit,
}

impl Body for EventFrames {
    type Data = Bytes;
    type Error = http::HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let event = ready!(self.translation.poll_event(context));
        Poll::Ready(event.map(|event| {
            let kind = event["type"].as_str().unwrap_or_default();
            Ok(Frame::data(format!("event: {kind}\ndata: {event}\n\n").into()))
        }))
    }
}
