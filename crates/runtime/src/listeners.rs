//! What this process listens on. Commands of threads and of clients are kept from all of it: whoever can speak to the
//! server can have anything run outside the sandbox.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use config::Config;
use sandbox::OffLimits;

use crate::bridge::Bridge;
use crate::runtime::{Runtime, lock};

/// Ports and files of this process that sandboxed commands cannot reach, whatever their policy says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnListeners {
    /// TCP ports on this machine.
    pub ports: BTreeSet<u16>,
    /// Unix sockets, and the files with the tokens and secrets of a listener. Absolute.
    pub files: BTreeSet<PathBuf>,
}

impl OwnListeners {
    /// Takes in a file, and what it leads to if it is a link: either name would give away the content.
    pub fn add_file(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.files.extend(path.canonicalize());
        self.files.insert(path);
    }

    fn extend(&mut self, other: Self) {
        self.ports.extend(other.ports);
        self.files.extend(other.files);
    }

    fn add_to(&self, off_limits: &mut OffLimits) {
        let files = self.files.iter().filter(|file| !off_limits.sealed.contains(file));
        let files: Vec<PathBuf> = files.cloned().collect();
        off_limits.sealed.extend(files);
        let ports: Vec<u16> =
            self.ports.iter().copied().filter(|port| !off_limits.ports.contains(port)).collect();
        off_limits.ports.extend(ports);
    }
}

impl Runtime {
    /// Adds to what commands that start from now on cannot reach. Called before the first client is served.
    pub fn add_listeners(&self, listeners: OwnListeners) {
        lock(&self.inner.listeners).extend(listeners);
    }

    /// A bridge on this machine spends its owner's money for whoever reaches it, so commands must not.
    pub(crate) fn keep_commands_from(&self, bridge: Option<&Bridge>) {
        if let Some(port) = bridge.and_then(|bridge| local_port(bridge.url())) {
            self.add_listeners(OwnListeners { ports: [port].into(), ..OwnListeners::default() });
        }
    }

    /// What is out of reach of commands: what configuration says, and what this process listens on.
    pub(crate) fn off_limits(&self, config: &Config) -> OffLimits {
        let mut off_limits = config.off_limits();
        lock(&self.inner.listeners).add_to(&mut off_limits);
        off_limits
    }
}

/// The port behind a URL, if it is one of this machine.
fn local_port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match host_and_port.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, port)| (host, port.strip_prefix(':')))?,
        None => {
            host_and_port.split_once(':').map_or((host_and_port, None), |(host, port)| (host, Some(port)))
        }
    };
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback() || address.is_unspecified());
    let usual = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    is_local.then(|| port.map_or(Some(usual), |port| port.parse().ok())).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn a_file_behind_a_link_is_taken_in_under_both_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("token"), folder.path().join("link"));
        std::fs::write(&file, "secret").expect("a file");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let mut listeners = OwnListeners::default();
        listeners.add_file(&link);
        let mut off_limits = OffLimits { sealed: vec![link.clone()], ..OffLimits::default() };
        listeners.add_to(&mut off_limits);
        assert_eq!(off_limits.sealed, [link, file.canonicalize().expect("a path")]);
    }

    #[test]
    fn ports_of_this_machine_are_found_in_urls() {
        for (url, port) in [
            ("http://127.0.0.1:8080/v1", Some(8080)),
            ("http://x:tok@127.0.0.1:8080", Some(8080)),
            ("http://LOCALHOST:1/v1?x", Some(1)),
            ("http://[::1]:9/v1", Some(9)),
            ("http://127.0.0.1/v1", Some(80)),
            ("https://localhost", Some(443)),
            ("https://api.example:8080/v1", None),
            ("http://10.0.0.1:8080/v1", None),
            ("nonsense", None),
        ] {
            assert_eq!(local_port(url), port, "{url}");
        }
    }
}
