//! The ports and files this process listens on. Sandboxed commands must not reach them: a client of the server can run
//! anything outside the sandbox.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sandbox::{LaterListeners, OffLimits};

/// Ports and files of this process that sandboxed commands cannot reach, whatever their policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnListeners {
    /// TCP ports on this machine.
    pub ports: BTreeSet<u16>,
    /// Unix sockets, and the files with the tokens and secrets of a listener. Absolute paths.
    pub files: BTreeSet<PathBuf>,
    /// Passes later listeners on to open threads.
    later: LaterListeners,
}

impl OwnListeners {
    /// Adds a file and, if it is a link, its target: either path would expose the content.
    pub fn add_file(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.files.extend(path.canonicalize());
        self.files.insert(path);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.later.add(other.ports.iter().copied(), other.files.iter().cloned());
        self.ports.extend(other.ports);
        self.files.extend(other.files);
    }

    pub(crate) fn add_to(&self, off_limits: &mut OffLimits) {
        off_limits.later = self.later.clone();
        let files = self.files.iter().filter(|file| !off_limits.sealed.contains(file));
        let files: Vec<PathBuf> = files.cloned().collect();
        off_limits.sealed.extend(files);
        let ports: Vec<u16> =
            self.ports.iter().copied().filter(|port| !off_limits.ports.contains(port)).collect();
        off_limits.ports.extend(ports);
    }
}

impl OwnListeners {
    /// The port of a bridge on this machine. Requests to the bridge cost its owner money, so commands must not reach
    /// it.
    pub(crate) fn of_bridge(url: &str) -> Self {
        Self { ports: local_port(url).into_iter().collect(), ..Self::default() }
    }
}

/// The port of a URL, if it is on this machine.
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
    fn a_link_is_added_with_its_target() {
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
    fn an_open_thread_cannot_reach_a_later_listener() {
        use protocol::{ReadOnlyAccess, SandboxPolicy};
        use sandbox::{Confinement, Strength};

        let folder = tempfile::tempdir().expect("a folder");
        let token = folder.path().canonicalize().expect("a path").join("token");
        std::fs::write(&token, "secret").expect("a file");
        let mut listeners = OwnListeners::default();
        let mut off_limits = OffLimits::default();
        listeners.add_to(&mut off_limits);
        listeners.extend(OwnListeners {
            ports: [4711].into(),
            files: [token.clone()].into(),
            ..OwnListeners::default()
        });
        let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: true };
        let confinement = Confinement::for_policy(&policy, Path::new("/"), None, Strength::Full, &off_limits);
        let confinement = confinement.expect("a sandbox");
        assert_eq!((confinement.closed_ports, confinement.hidden), (vec![4711], vec![token.clone()]));
        assert!(off_limits.is_sealed(&token));
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
