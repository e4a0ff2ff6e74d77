//! Which addresses a server's metadata may make us request. A server on the internet must not use us to reach what only
//! this machine or its network can.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use http::Uri;

use super::LoginError;

const RESOLVING: Duration = Duration::from_secs(5);

/// Who can reach an address, from everyone to this machine only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Zone {
    Public,
    Private,
    Loopback,
}

/// The rule for one server: no address further inside than its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressRule {
    innermost: Zone,
}

impl AddressRule {
    /// From the address that the user configured.
    pub(super) async fn of_server(url: &Uri) -> Result<Self, LoginError> {
        let host = url.host().unwrap_or_default();
        let innermost = match literal(host) {
            Some(address) => zone(address).unwrap_or(Zone::Private),
            None => {
                let zones =
                    resolved(url).await.into_iter().map(|address| zone(address).unwrap_or(Zone::Private));
                zones.max().unwrap_or(Zone::Public)
            }
        };
        let is_secure = url.scheme_str() == Some("https") || is_loopback(host);
        match is_secure {
            true => Ok(Self { innermost }),
            false => Err(LoginError::Insecure(format!("{}://{host}", url.scheme_str().unwrap_or_default()))),
        }
    }

    /// Whether a browser or a request may go there. `subject` says who names the address.
    pub(super) fn check_form(self, subject: &'static str, text: &str) -> Result<Uri, LoginError> {
        let refuse = |problem| LoginError::Address { subject, url: super::url::shown(text), problem };
        let url: Uri = text.parse().map_err(|_| refuse("which is no address"))?;
        let Some(host) = url.host().filter(|host| !host.is_empty()) else {
            return Err(refuse("which names no host"));
        };
        // `https://known.example@other.example` looks like another host than it is.
        if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(refuse("which hides its host behind a user name"));
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(refuse("which is no address"));
        }
        match url.scheme_str() {
            Some("https") => Ok(url),
            Some("http") if is_loopback(host) && self.innermost == Zone::Loopback => Ok(url),
            Some("http") => Err(refuse("which is not encrypted; https is needed")),
            _ => Err(refuse("which is not an https address")),
        }
    }

    /// Like `check_form`, and also checks the resolved addresses. A name that cannot be resolved here may be known to a
    /// proxy; without one the request fails anyway. If the name resolves differently a moment later, TLS fails: that
    /// host has no certificate for the name.
    pub(super) async fn check(self, subject: &'static str, text: &str) -> Result<Uri, LoginError> {
        let url = self.check_form(subject, text)?;
        let addresses = match literal(url.host().unwrap_or_default()) {
            Some(address) => vec![address],
            None => resolved(&url).await,
        };
        let is_allowed = |address: &IpAddr| zone(*address).is_some_and(|zone| zone <= self.innermost);
        match addresses.iter().all(is_allowed) {
            true => Ok(url),
            false => Err(LoginError::Address {
                subject,
                url: super::url::shown(text),
                problem: "which is inside this machine or its network, where the server itself is not",
            }),
        }
    }
}

fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.eq_ignore_ascii_case("localhost") {
        true => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        false => bare.parse().ok(),
    }
}

fn is_loopback(host: &str) -> bool {
    literal(host).and_then(zone) == Some(Zone::Loopback)
}

async fn resolved(url: &Uri) -> Vec<IpAddr> {
    let (host, port) = (url.host().unwrap_or_default().to_owned(), url.port_u16().unwrap_or(443));
    match tokio::time::timeout(RESOLVING, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        _ => Vec::new(),
    }
}

/// `None` for addresses that metadata must never name: link-local (where clouds provide credentials), multicast, and
/// unspecified ones.
fn zone(address: IpAddr) -> Option<Zone> {
    match address {
        IpAddr::V4(address) => zone_v4(address),
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(address) => zone_v4(address),
            None => zone_v6(address),
        },
    }
}

fn zone_v4(address: Ipv4Addr) -> Option<Zone> {
    let [first, second, ..] = address.octets();
    // Shared by the customers of one provider, 100.64.0.0/10.
    let is_shared = first == 100 && (64..128).contains(&second);
    match address {
        _ if first == 0 || address.is_link_local() || address.is_multicast() || first >= 240 => None,
        _ if address.is_loopback() => Some(Zone::Loopback),
        _ if address.is_private() || is_shared => Some(Zone::Private),
        _ => Some(Zone::Public),
    }
}

fn zone_v6(address: Ipv6Addr) -> Option<Zone> {
    let first = address.segments()[0];
    let is_link_local = (first & 0xffc0) == 0xfe80;
    // The last four bytes are an IPv4 address: translated (64:ff9b::/96) or compatible (::/96).
    let embedded = match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] if high != 0 => {
            Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
        }
        _ => None,
    };
    match embedded {
        Some(inner) => zone_v4(inner),
        _ if address.is_unspecified() || is_link_local || address.is_multicast() => None,
        _ if address.is_loopback() => Some(Zone::Loopback),
        _ if (first & 0xfe00) == 0xfc00 => Some(Zone::Private),
        _ => Some(Zone::Public),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(server: &str, named: &str) -> Result<Uri, LoginError> {
        let rule = AddressRule::of_server(&server.parse().expect("a url")).await?;
        rule.check("test", named).await
    }

    #[tokio::test]
    async fn a_public_server_names_public_addresses_alone() {
        let server = "https://93.184.215.14/mcp";
        assert!(check(server, "https://8.8.8.8/token").await.is_ok());
        for named in [
            "http://8.8.8.8/token",
            "https://127.0.0.1/token",
            "http://127.0.0.1:8080/token",
            "https://localhost:8443/token",
            "https://10.0.0.1/",
            "https://192.168.1.1/",
            "https://172.16.0.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "https://0.0.0.0/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:169.254.169.254]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::7f00:1]/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://8.8.8.8@9.9.9.9/",
            "https:///path",
            "not an address",
            "",
        ] {
            assert!(check(server, named).await.is_err(), "{named}");
        }
    }

    #[tokio::test]
    async fn a_server_of_this_machine_may_name_this_machine() {
        for server in ["http://127.0.0.1:3000/mcp", "http://localhost:3000/mcp", "http://[::1]:3000/mcp"] {
            for named in ["http://127.0.0.1:3001/token", "https://10.0.0.1/", "https://8.8.8.8/"] {
                assert!(check(server, named).await.is_ok(), "{server} {named}");
            }
            assert!(check(server, "https://169.254.169.254/").await.is_err());
            assert!(check(server, "http://10.0.0.1/").await.is_err());
        }
        assert!(check("https://10.0.0.9/mcp", "https://10.0.0.1/").await.is_ok());
        assert!(check("https://10.0.0.9/mcp", "https://127.0.0.1/").await.is_err());
    }

    #[tokio::test]
    async fn a_server_without_encryption_gets_no_token() {
        let refused = check("http://93.184.215.14/mcp", "https://8.8.8.8/").await;
        assert!(matches!(refused, Err(LoginError::Insecure(_))));
    }
}
