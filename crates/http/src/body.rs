//! The body of a request.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HyperBody, Frame, SizeHint};

/// Parts that follow each other. Neither sending nor cloning it copies them.
#[derive(Clone, Default)]
pub struct HttpBody(VecDeque<Bytes>);

impl HttpBody {
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Bytes> for HttpBody {
    fn from_iter<T: IntoIterator<Item = Bytes>>(parts: T) -> Self {
        Self(parts.into_iter().filter(|part| !part.is_empty()).collect())
    }
}

impl From<Bytes> for HttpBody {
    fn from(whole: Bytes) -> Self {
        Self::from_iter([whole])
    }
}

/// The length alone: a body may hold prompts, which do not belong in logs.
impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpBody({} bytes)", self.len())
    }
}

impl HyperBody for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.len() as u64)
    }
}
