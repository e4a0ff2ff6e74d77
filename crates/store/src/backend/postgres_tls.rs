//! TLS to Postgres by rustls. The published adapter brings a reader of certificates for channel binding; a connection
//! whose certificate was verified is safe without.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::client;

use crate::error::StoreError;

/// Trusts the certificates in the file, or those that this system trusts.
pub(super) fn tls_config(authorities: Option<&str>) -> Result<Arc<rustls::ClientConfig>, StoreError> {
    let wrong = |problem: String| StoreError::Database(format!("TLS to the database: {problem}"));
    let builder =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?;
    let Some(file) = authorities else {
        let builder = builder.with_platform_verifier().map_err(|error| wrong(error.to_string()))?;
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let mut trusted = rustls::RootCertStore::empty();
    let unreadable = |problem: String| wrong(format!("sslrootcert={file}: {problem}"));
    for certificate in
        CertificateDer::pem_file_iter(file).map_err(|error| unreadable(format!("{error:?}")))?
    {
        let certificate = certificate.map_err(|error| unreadable(format!("{error:?}")))?;
        trusted.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    Ok(Arc::new(builder.with_root_certificates(trusted).with_no_client_auth()))
}

#[derive(Debug, Clone)]
pub(super) struct TlsConnector {
    config: Arc<rustls::ClientConfig>,
}

impl TlsConnector {
    pub(super) fn new(config: Arc<rustls::ClientConfig>) -> Self {
        Self { config }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for TlsConnector {
    type Stream = SecureStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Self::TlsConnect, Self::Error> {
        let name = ServerName::try_from(host)?.to_owned();
        Ok(TlsHandshake { connector: Arc::clone(&self.config).into(), name })
    }
}

/// A handshake that is still to be made.
pub(super) struct TlsHandshake {
    connector: tokio_rustls::TlsConnector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsHandshake {
    type Stream = SecureStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<SecureStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(SecureStream(Box::new(self.connector.connect(self.name, stream).await?))) })
    }
}

/// The encrypted connection.
#[derive(Debug)]
pub(super) struct SecureStream<S>(Box<client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for SecureStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for SecureStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for SecureStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
