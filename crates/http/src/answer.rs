//! An answer whose body is read as it comes in.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use hyper::StatusCode;
use hyper::body::{Body as HyperBody, Frame, Incoming, SizeHint};
use hyper::header::HeaderMap;

use crate::error::{Cause, HttpError};

/// The head of an answer, and its body to be read. Dropping it closes the connection it comes by.
#[derive(Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ResponseBody,
}

/// The body of an answer. What is not polled is not read, so a slow reader slows the sender.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    host: String,
}

impl ResponseBody {
    pub(crate) fn new(incoming: Incoming, host: String) -> Self {
        Self { incoming, host }
    }

    /// The next piece, or `None` at the end. Trailers are passed over.
    pub fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        loop {
            match ready!(Pin::new(&mut *self).poll_frame(context)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    pub async fn chunk(&mut self) -> Option<Result<Bytes, HttpError>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// The whole body. Fails where it is larger than `max_bytes` or not there after `patience`.
    pub async fn read(mut self, max_bytes: usize, patience: Duration) -> Result<Bytes, HttpError> {
        let (bytes, ended) = self.read_up_to(max_bytes, patience).await;
        ended.map(|()| bytes)
    }

    /// As much of the body as fits and came in time: for showing what an error answer said.
    pub async fn read_some(mut self, max_bytes: usize, patience: Duration) -> Bytes {
        self.read_up_to(max_bytes, patience).await.0
    }

    async fn read_up_to(&mut self, max_bytes: usize, patience: Duration) -> (Bytes, Result<(), HttpError>) {
        let host = self.host.clone();
        let mut bytes = BytesMut::new();
        let read = async {
            while let Some(chunk) = self.chunk().await {
                let chunk = chunk?;
                let room = max_bytes - bytes.len();
                bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    let detail = format!("more than {max_bytes} bytes");
                    return Err(HttpError::of(Cause::TooLarge, host.clone(), &detail));
                }
            }
            Ok(())
        };
        let ended = match tokio::time::timeout(patience, read).await {
            Ok(ended) => ended,
            Err(_) => Err(HttpError::of(Cause::Timeout, host.clone(), "its answer did not end in time")),
        };
        (bytes.freeze(), ended)
    }
}

impl HyperBody for ResponseBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = ready!(Pin::new(&mut self.incoming).poll_frame(context));
        Poll::Ready(frame.map(|frame| frame.map_err(|error| HttpError::new(&error, self.host.clone()))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
