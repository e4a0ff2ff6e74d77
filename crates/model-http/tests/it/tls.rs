//! Encrypted connections: refused to whom the system does not trust, made to whom it does.

use std::process::Command;
use std::sync::Arc;

use model::FailureClass;
use oarlock_model_http::Provider;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::*;

/// Answers every request on an encrypted connection with a whole stream. The key is for this test alone.
async fn provider() -> Provider {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4_096]).await;
            let answer = format!("{STREAM_HEAD}data: {}\n\n", completed());
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    let mut provider = Provider::new("encrypted", format!("https://localhost:{port}/v1"));
    provider.request_max_retries = 0;
    provider
}

/// Set for the child process that trusts the test's authority.
const TRUSTING: &str = "OARLOCK_TEST_TRUSTING";

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    if std::env::var_os(TRUSTING).is_some() {
        return;
    }
    let found = events(&transport(&provider().await), request("hi")).await;
    let failure = found[0].as_ref().unwrap_err();
    assert_eq!(failure.class, FailureClass::Connection);
    // A system without any certificates says so; another one names the problem with this one.
    assert!(failure.message.contains("certificate"), "{failure}");
}

#[tokio::test]
async fn a_trusted_authority_is_spoken_to() {
    if std::env::var_os(TRUSTING).is_none() {
        // Which authorities are trusted is read from the environment, which a running process must not change.
        let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/tls/authority.pem");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tls::a_trusted_authority_is_spoken_to"])
            .env("SSL_CERT_FILE", authority)
            .env_remove("SSL_CERT_DIR")
            .env(TRUSTING, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && output.contains("1 passed"), "{output}");
        return;
    }
    let found = events(&transport(&provider().await), request("hi")).await;
    assert_eq!(lines(&found), ["opened", "completed resp_1"]);
}
