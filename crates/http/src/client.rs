//! Sends requests over pooled connections.

use std::fmt;
use std::time::Duration;

use hyper::header::HeaderMap;
use hyper::upgrade::Upgraded;
use hyper::{Method, StatusCode, Uri};
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::connector::Connector;
use crate::error::{Cause, HttpError, host_of};
use crate::{HttpBody, HttpResponse, Proxy, ResponseBody};

/// A pool of connections to any number of hosts. A clone shares the pool. Making one does no work: connections and
/// trusted certificates come with the first request that needs them.
///
/// HTTP/1.1 on purpose: one request has one connection, so a reader that stops reading slows its own stream only.
#[derive(Clone)]
pub struct Client(legacy::Client<Connector, HttpBody>);

/// One request. Its body is whole, so that it can be sent again.
#[derive(Clone)]
pub struct HttpRequest {
    pub method: Method,
    /// With scheme and host.
    pub url: Uri,
    pub headers: HeaderMap,
    pub body: HttpBody,
}

const IDLE_CONNECTION: Duration = Duration::from_secs(90);

impl Client {
    /// The proxy is used for every host but this machine and those it excludes.
    pub fn new(proxy: Option<Proxy>) -> Self {
        let mut pool = legacy::Client::builder(TokioExecutor::new());
        pool.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_CONNECTION);
        Self(pool.build(Connector::new(proxy)))
    }

    /// Answers once the headers are in, whatever the status, or fails after `patience`. Redirects are not followed: the
    /// credentials of a request are for the host it names.
    pub async fn send(&self, request: HttpRequest, patience: Duration) -> Result<HttpResponse, HttpError> {
        let host = host_of(&request.url);
        let mut sent = hyper::Request::new(request.body);
        *sent.method_mut() = request.method;
        *sent.uri_mut() = request.url;
        *sent.headers_mut() = request.headers;
        match tokio::time::timeout(patience, self.0.request(sent)).await {
            Ok(Ok(response)) => {
                let (head, body) = response.into_parts();
                Ok(HttpResponse {
                    status: head.status,
                    headers: head.headers,
                    body: ResponseBody::new(body, host),
                })
            }
            Ok(Err(error)) => Err(HttpError::new(&error, host)),
            Err(_) => Err(HttpError::of(Cause::Timeout, host, "no answer came in time")),
        }
    }
}

/// A connection that began as a request and is now the caller's own, whatever it is used for.
pub type UpgradedConnection = TokioIo<Upgraded>;

impl Client {
    /// Sends a request that asks for another protocol, and gives the connection once the other side agrees.
    pub async fn upgrade(
        &self,
        request: HttpRequest,
        patience: Duration,
    ) -> Result<UpgradedConnection, HttpError> {
        let host = host_of(&request.url);
        let mut sent = hyper::Request::new(request.body);
        *sent.method_mut() = request.method;
        *sent.uri_mut() = request.url;
        *sent.headers_mut() = request.headers;
        let agreeing = async {
            let response =
                self.0.request(sent).await.map_err(|error| HttpError::new(&error, host.clone()))?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                let detail = format!("it answered with status {}", response.status().as_u16());
                return Err(HttpError::of(Cause::Other, host.clone(), &detail));
            }
            let upgraded = hyper::upgrade::on(response).await;
            upgraded.map(TokioIo::new).map_err(|error| HttpError::new(&error, host.clone()))
        };
        let late = || HttpError::of(Cause::Timeout, host.clone(), "no answer came in time");
        tokio::time::timeout(patience, agreeing).await.unwrap_or_else(|_| Err(late()))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

impl fmt::Debug for HttpRequest {
    /// Neither the headers nor the query: both may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("host", &host_of(&self.url))
            .field("path", &self.url.path())
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}
