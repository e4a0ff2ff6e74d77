//! Rules about hosts.

use std::fmt;

use super::{RuleDecision, RuleSource, Rules};

/// How a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NetworkRuleProtocol {
    Http,
    Https,
    Socks5Tcp,
    Socks5Udp,
}

impl NetworkRuleProtocol {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            "socks5_tcp" => Some(Self::Socks5Tcp),
            "socks5_udp" => Some(Self::Socks5Udp),
            _ => None,
        }
    }
}

impl fmt::Display for NetworkRuleProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5Tcp => "socks5_tcp",
            Self::Socks5Udp => "socks5_udp",
        })
    }
}

/// One host, reached one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkRule {
    /// In small letters, without a dot at its end.
    pub host: String,
    pub protocol: NetworkRuleProtocol,
    pub decision: RuleDecision,
    pub justification: Option<String>,
    pub source: RuleSource,
}

impl Rules {
    /// The strictest rule for exactly this host.
    pub fn check_host(&self, host: &str, protocol: NetworkRuleProtocol) -> Option<&NetworkRule> {
        let host = host_name(host).ok()?;
        let rules = self.networks.iter().filter(|rule| rule.host == host && rule.protocol == protocol);
        rules.max_by_key(|rule| rule.decision)
    }
}

/// The one spelling of a host. Patterns are refused: a rule is about one host.
pub(super) fn host_name(host: &str) -> Result<String, &'static str> {
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if name.contains('*') {
        return Err("`host` is one host, not a pattern");
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
    let literal = address.parse::<std::net::IpAddr>().is_ok();
    let label = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if literal {
        Ok(address.to_owned())
    } else if name.split('.').all(label) {
        Ok(name)
    } else {
        Err("`host` is the name or the address of a host, without scheme, port or path")
    }
}
