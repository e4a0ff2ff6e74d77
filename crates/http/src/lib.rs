//! Owns connections: one pool, TLS, proxies, and the framing of event streams. Must not know what is sent.

mod answer;
mod body;
mod client;
mod connector;
mod error;
mod proxy;
mod sse;

pub use answer::{HttpResponse, ResponseBody};
pub use body::HttpBody;
pub use client::{Client, HttpRequest, UpgradedConnection};
pub use error::{Cause, HttpError};
/// The parts of requests and answers, so that users need no HTTP library of their own.
pub use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use hyper::{Method, StatusCode, Uri};
pub use proxy::{BadProxy, Proxy};
pub use sse::{EventData, SseReader, TooLong};
