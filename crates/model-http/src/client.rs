//! The HTTP client: a pool of connections to one provider.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::endpoint::Endpoint;
use crate::{ClientOptions, ProviderError};

/// HTTP/1.1 on purpose: one request has one connection, so a reader that stops reading slows its own stream only.
#[derive(Debug)]
pub(crate) struct Client(legacy::Client<Connector, Full<Bytes>>);

/// How connections are made. One type for every way, so that the pool is compiled once.
#[derive(Debug, Clone)]
enum Connector {
    Plain(HttpConnector),
    Encrypted(HttpsConnector<HttpConnector>),
    /// Through a proxy; encrypted from end to end where the URL says so.
    Tunnelled(HttpsConnector<Tunnel<HttpConnector>>),
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
const KEEP_ALIVE: Duration = Duration::from_secs(60);

impl Client {
    /// Loads the certificates this system trusts, if they are needed at all. Takes some milliseconds, so it is left to the
    /// first request.
    pub(crate) fn new(endpoint: &Endpoint, proxy: Option<&Intercept>) -> Result<Self, String> {
        let tcp = tcp();
        let connector = match proxy {
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                let tunnel = match proxy.basic_auth() {
                    Some(auth) => tunnel.with_auth(auth.clone()),
                    None => tunnel,
                };
                Connector::Tunnelled(encrypted(tunnel)?)
            }
            None if endpoint.is_encrypted() => Connector::Encrypted(encrypted(tcp)?),
            None => Connector::Plain(tcp),
        };
        let mut pool = legacy::Client::builder(TokioExecutor::new());
        pool.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_CONNECTION);
        Ok(Self(pool.build(connector)))
    }

    /// Answers once the headers are in.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, String> {
        self.0.request(request).await.map_err(|error| causes(&error))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            Self::Plain(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Encrypted(tls) => tls.poll_ready(cx),
            Self::Tunnelled(tls) => tls.poll_ready(cx),
        }
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        match self {
            Self::Plain(tcp) => {
                let connecting = tcp.call(to);
                Box::pin(async { Ok(MaybeHttpsStream::Http(connecting.await?)) })
            }
            Self::Encrypted(tls) => tls.call(to),
            Self::Tunnelled(tls) => tls.call(to),
        }
    }
}

/// Which proxy to use, if any. The caller has read the environment.
pub(crate) fn proxy(
    endpoint: &Endpoint,
    options: &ClientOptions,
) -> Result<Option<Intercept>, ProviderError> {
    let Some(proxy) = options.proxy.as_ref().filter(|_| !endpoint.is_local()) else { return Ok(None) };
    // The matcher ignores what it cannot read, and takes an address without a scheme for http.
    let address = proxy.reveal();
    let is_http =
        address.parse::<Uri>().is_ok() && (address.starts_with("http://") || !address.contains("://"));
    let matcher =
        |no_proxy: &str| Matcher::builder().all(address).no(no_proxy).build().intercept(&endpoint.url.0);
    if !is_http || matcher("").is_none() {
        return Err(ProviderError::Proxy);
    }
    Ok(matcher(&options.no_proxy))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp
}

fn encrypted<C>(inner: C) -> Result<HttpsConnector<C>, String> {
    let builder = HttpsConnectorBuilder::new()
        .with_provider_and_platform_verifier(Arc::new(rustls::crypto::ring::default_provider()))
        .map_err(|error| {
            format!("cannot load trusted certificates ({error}); install them, or name a file of them in SSL_CERT_FILE")
        })?;
    Ok(builder.https_or_http().enable_http1().wrap_connector(inner))
}

/// The whole chain: the outermost error alone says only "client error".
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    causes.dedup();
    causes.join(": ")
}
