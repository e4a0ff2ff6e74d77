//! Makes connections: plain or encrypted, directly or through a proxy.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::Scheme;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::Proxy;
use crate::error::NoCertificates;

/// One type for every way to connect, so that the pool is compiled once.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    tcp: HttpConnector,
    proxy: Option<Arc<Proxy>>,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const KEEP_ALIVE: Duration = Duration::from_secs(60);

type PooledStream = MaybeHttpsStream<TokioIo<TcpStream>>;
type ConnectFailure = Box<dyn Error + Send + Sync>;
type Connecting = Pin<Box<dyn Future<Output = Result<PooledStream, ConnectFailure>> + Send>>;

impl Connector {
    pub(crate) fn new(proxy: Option<Proxy>) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEP_ALIVE));
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        Self { tcp, proxy: proxy.map(Arc::new) }
    }
}

impl Service<Uri> for Connector {
    type Response = PooledStream;
    type Error = ConnectFailure;
    type Future = Connecting;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Connecting {
        let is_encrypted = to.scheme() == Some(&Scheme::HTTPS);
        let Some(through) = self.proxy.as_ref().and_then(|proxy| proxy.intercept(&to)) else {
            return match is_encrypted {
                true => encrypted(self.tcp.clone(), to),
                false => plain(self.tcp.call(to)),
            };
        };
        let tunnel = Tunnel::new(through.uri().clone(), self.tcp.clone());
        let mut tunnel = match through.basic_auth() {
            Some(auth) => tunnel.with_auth(auth.clone()),
            None => tunnel,
        };
        match is_encrypted {
            true => encrypted(tunnel, to),
            false => plain(tunnel.call(with_port(to))),
        }
    }
}

/// A tunnel takes 443 for the port of a URL that names none.
fn with_port(url: Uri) -> Uri {
    let mut parts = url.clone().into_parts();
    parts.authority = match (url.host(), url.port()) {
        (Some(host), None) => format!("{host}:80").parse().ok(),
        _ => return url,
    };
    Uri::from_parts(parts).unwrap_or(url)
}

fn plain<E: Into<ConnectFailure>>(
    connecting: impl Future<Output = Result<TokioIo<TcpStream>, E>> + Send + 'static,
) -> Connecting {
    Box::pin(async { connecting.await.map(MaybeHttpsStream::Http).map_err(Into::into) })
}

fn encrypted<C>(below: C, to: Uri) -> Connecting
where
    C: Service<Uri, Response = TokioIo<TcpStream>> + Send + 'static,
    C::Future: Send + 'static,
    C::Error: Into<ConnectFailure>,
{
    match trusted() {
        Ok(config) => HttpsConnector::from((below, config)).call(to),
        Err(error) => Box::pin(std::future::ready(Err(error.into()))),
    }
}

/// Loads the certificates this system trusts, once per process. Takes some milliseconds, so it is left to the first
/// connection that needs them.
fn trusted() -> Result<Arc<ClientConfig>, NoCertificates> {
    static TRUSTED: OnceLock<Result<Arc<ClientConfig>, NoCertificates>> = OnceLock::new();
    let load = || {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .try_with_platform_verifier()?
            .with_no_client_auth();
        Ok(Arc::new(config))
    };
    let load = || load().map_err(|error: rustls::Error| NoCertificates(error.to_string()));
    TRUSTED.get_or_init(load).clone()
}
