//! Why no answer came, told apart by cause.

use std::error::Error;
use std::io;

use hyper::Uri;

/// A request that got no answer, or an answer that broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct HttpError {
    pub cause: Cause,
    /// Host and port.
    pub host: String,
    detail: String,
}

/// The causes that call for different advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nothing listens there.
    Refused,
    /// The name has no address.
    Dns,
    /// The other side is not trusted, or does not speak TLS.
    Tls,
    /// Too slow to connect or to answer.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
    /// The body is larger than the reader takes.
    TooLarge,
    Other,
}

/// This system has no certificates to trust.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot load trusted certificates ({0}); install them, or name a file of them in SSL_CERT_FILE")]
pub(crate) struct NoCertificates(pub(crate) String);

impl HttpError {
    pub(crate) fn new(error: &(dyn Error + 'static), host: String) -> Self {
        Self { cause: cause_of(error), host, detail: chain(error) }
    }

    pub(crate) fn of(cause: Cause, host: String, detail: &str) -> Self {
        Self { cause, host, detail: detail.to_owned() }
    }

    fn sentence(&self) -> String {
        let Self { cause, host, detail } = self;
        match cause {
            Cause::Refused => format!("nothing answers on {host} (connection refused)"),
            Cause::Dns => format!("the name of {host} cannot be resolved: {detail}"),
            Cause::Tls if detail.contains("InvalidContentType") => {
                format!("{host} does not speak TLS; an address that begins with http:// may be meant")
            }
            Cause::Tls => format!("no trusted connection to {host}: {detail}"),
            Cause::Timeout => format!("timed out waiting for {host}: {detail}"),
            Cause::Broken => format!("the connection to {host} broke: {detail}"),
            Cause::TooLarge => format!("the answer of {host} is too large: {detail}"),
            Cause::Other => format!("cannot reach {host}: {detail}"),
        }
    }
}

pub(crate) fn host_of(url: &Uri) -> String {
    let port = match (url.port_u16(), url.scheme_str()) {
        (Some(port), _) => port,
        (None, Some("https")) => 443,
        (None, _) => 80,
    };
    format!("{}:{port}", url.host().unwrap_or("?"))
}

/// The innermost error that says something decides; the outer ones only say that a request failed.
fn cause_of(error: &(dyn Error + 'static)) -> Cause {
    let mut found = Cause::Other;
    let mut next = Some(error);
    while let Some(error) = next {
        found = cause_here(error).unwrap_or(found);
        next = error.source();
    }
    found
}

fn cause_here(error: &(dyn Error + 'static)) -> Option<Cause> {
    if error.is::<NoCertificates>() || error.is::<rustls::Error>() {
        return Some(Cause::Tls);
    }
    if let Some(error) = error.downcast_ref::<hyper::Error>() {
        let is_broken = error.is_incomplete_message() || error.is_closed() || error.is_body_write_aborted();
        return if is_broken { Some(Cause::Broken) } else { None };
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The error inside is no source of the one around it, and may be one of the same type.
        if let Some(cause) = error.get_ref().and_then(|inner| cause_here(inner)) {
            return Some(cause);
        }
        return match error.kind() {
            io::ErrorKind::ConnectionRefused => Some(Cause::Refused),
            io::ErrorKind::TimedOut => Some(Cause::Timeout),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof => {
                Some(Cause::Broken)
            }
            _ => None,
        };
    }
    // The resolver's own error has no type of its own.
    (error.to_string() == "dns error").then_some(Cause::Dns)
}

/// The whole chain: the outermost error alone says only "client error".
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut causes = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    causes.dedup();
    // Names of layers say nothing to a person where a cause follows.
    let last = causes.pop();
    causes.retain(|cause| !matches!(cause.as_str(), "client error (Connect)" | "dns error"));
    causes.extend(last);
    causes.join(": ")
}
