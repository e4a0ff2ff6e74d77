//! Rules about hosts. They are parsed, so that mistakes are reported, but not enforced.

/// Network protocols.
pub(super) const PROTOCOLS: &[&str] = &["http", "https", "socks5_tcp", "socks5_udp"];

/// Patterns are refused: a rule is about one host.
pub(super) fn check_host_name(host: &str) -> Result<(), &'static str> {
    let name = host.strip_suffix('.').unwrap_or(host);
    if name.contains('*') {
        return Err("`host` is one host, not a pattern");
    }
    let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    let label = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_host = address.parse::<std::net::IpAddr>().is_ok() || name.split('.').all(label);
    if is_host {
        Ok(())
    } else {
        Err("`host` is the name or the address of a host, without scheme, port or path")
    }
}
