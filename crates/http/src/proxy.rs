//! Which proxy a connection goes through, if any.

use std::fmt;
use std::net::IpAddr;

use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// A proxy to tunnel through, and the hosts that are reached without it.
pub struct Proxy(Matcher);

/// A proxy address that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proxy address is not usable; write it like http://host:port (SOCKS is not supported)")]
pub struct BadProxy;

impl Proxy {
    /// The address as in `HTTPS_PROXY`, the exceptions as in `NO_PROXY`. The caller has read the environment.
    pub fn new(address: &str, no_proxy: &str) -> Result<Self, BadProxy> {
        let matcher = |no_proxy: &str| Matcher::builder().all(address).no(no_proxy).build();
        // The matcher ignores what it cannot read, and takes an address without a scheme for http.
        let is_http =
            address.parse::<Uri>().is_ok() && (address.starts_with("http://") || !address.contains("://"));
        let anywhere = Uri::from_static("https://host.invalid");
        match is_http && matcher("").intercept(&anywhere).is_some() {
            true => Ok(Self(matcher(no_proxy))),
            false => Err(BadProxy),
        }
    }

    /// No proxy can reach this machine for us.
    pub(crate) fn intercept(&self, to: &Uri) -> Option<Intercept> {
        if is_local(to) { None } else { self.0.intercept(to) }
    }
}

fn is_local(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl fmt::Debug for Proxy {
    /// The address may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proxy")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_before_use() {
        for good in ["http://proxy:3128", "proxy:3128", "http://user:word@proxy:1"] {
            assert!(Proxy::new(good, "").is_ok(), "{good}");
        }
        for bad in ["", "socks5://proxy:1080", "not a url", "https://proxy"] {
            assert_eq!(Proxy::new(bad, "").err(), Some(BadProxy), "{bad}");
        }
    }

    #[test]
    fn this_machine_and_exceptions_are_reached_directly() {
        let proxy = Proxy::new("http://proxy:3128", "example.com,10.0.0.1").unwrap();
        let is_used = |url: &'static str| proxy.intercept(&Uri::from_static(url)).is_some();
        for direct in [
            "http://localhost:1",
            "http://127.0.0.1:1/v1",
            "http://[::1]:1",
            "https://api.example.com",
            "http://10.0.0.1",
        ] {
            assert!(!is_used(direct), "{direct}");
        }
        assert!(is_used("https://other.com") && is_used("http://10.0.0.2"));
    }
}
