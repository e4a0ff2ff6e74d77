//! Model servers that offer themselves on this machine, where nobody chose a provider.

use std::collections::BTreeMap;
use std::net::IpAddr;

use runtime::config::ProviderConfig;

use crate::terminal::clean_line;

/// The provider of this id, unless another user of this machine listens at its address. That user would read the prompts
/// and say what to run, so the provider has to be named.
pub(crate) fn offered<'a>(
    known: &'a BTreeMap<String, ProviderConfig>,
    id: &str,
) -> Option<&'a ProviderConfig> {
    let provider = known.get(id)?;
    let address = provider.base_url.as_deref()?;
    if let Some(uid) = local_port(address).and_then(access::foreign_listener) {
        let (address, id) = (clean_line(address), clean_line(id));
        eprintln!(
            "oarlock: the server at {address} is not asked for models: it belongs to another user of this machine \
             (uid {uid}). If you trust that user, choose it with `--provider {id}`."
        );
        return None;
    }
    Some(provider)
}

/// The port of an address on this machine.
fn local_port(address: &str) -> Option<u16> {
    let authority = address.split_once("://")?.1.split('/').next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_local = host.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback());
    port.parse().ok().filter(|_| is_local)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_this_machine_are_known() {
        for (address, port) in [
            ("http://localhost:11434/v1", Some(11434)),
            ("http://127.0.0.1:8000", Some(8000)),
            ("http://[::1]:1234/v1", Some(1234)),
            ("http://models.example:8000/v1", None),
            ("http://localhost/v1", None),
        ] {
            assert_eq!(local_port(address), port, "{address}");
        }
    }
}
