//! The server's user agent, for clients and, through them, for providers.

use std::fs;

/// The level of the protocol, which clients use to decide what they may send. It is not the product's version.
pub const PROTOCOL_LEVEL: &str = "0.166.0";

/// Names that are longer say nothing more.
const LONGEST_NAME: usize = 256;

/// The system, as `Debian 12.0.0; x86_64`.
#[derive(Debug, Clone)]
pub(crate) struct System {
    name: String,
    version: String,
}

impl System {
    pub(crate) fn of_this_machine() -> Self {
        let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
        Self::from_release(&release).unwrap_or_else(|| Self {
            name: std::env::consts::OS.to_owned(),
            version: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or("unknown".to_owned(), |version| version.trim().to_owned()),
        })
    }

    fn from_release(release: &str) -> Option<Self> {
        let field = |name: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
        };
        let id = field("ID")?;
        let mut letters = id.chars();
        let name = letters.next()?.to_uppercase().chain(letters).collect();
        let version = field("VERSION_ID").map_or("unknown".to_owned(), |version| three_numbers(&version));
        Some(Self { name, version })
    }
}

/// `12` is written `12.0.0`.
fn three_numbers(version: &str) -> String {
    let missing = 3_usize.saturating_sub(version.split('.').count());
    format!("{version}{}", ".0".repeat(missing))
}

/// Whether a name may stand in an HTTP header.
pub(crate) fn is_header_value(name: &str) -> bool {
    let is_legal = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_legal)
}

/// The terminal client is known to providers by another name.
pub(crate) fn originator(client_name: &str) -> &str {
    if client_name == "codex-tui" { "codex_cli_rs" } else { client_name }
}

/// `{originator}/{level} ({system}) {product} ({client}; {version})`.
pub(crate) fn user_agent(originator: &str, system: &System, name: &str, version: &str) -> String {
    let System { name: os, version: os_version } = system;
    let arch = std::env::consts::ARCH;
    let product = concat!("oarlock/", env!("CARGO_PKG_VERSION"));
    let suffix = printable(&format!("{name}; {}", rpc::shorten(version, LONGEST_NAME)));
    let originator = printable(originator);
    format!("{originator}/{PROTOCOL_LEVEL} ({os} {os_version}; {arch}) {product} ({suffix})")
}

fn printable(text: &str) -> String {
    text.chars().map(|letter| if (' '..='~').contains(&letter) { letter } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_put_together_from_client_and_system() {
        let system = System::from_release("NAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nID=debian\n")
            .expect("a system");
        assert_eq!(
            user_agent("peer_a", &system, "pe\u{e9}r", "9.9\n"),
            format!(
                "peer_a/0.166.0 (Debian 12.0.0; {}) oarlock/{} (pe_r; 9.9_)",
                std::env::consts::ARCH,
                env!("CARGO_PKG_VERSION")
            )
        );
    }

    #[test]
    fn a_system_without_a_version_is_still_named() {
        let system = System::from_release("ID=arch").expect("a system");
        assert_eq!((system.name.as_str(), system.version.as_str()), ("Arch", "unknown"));
        assert!(System::from_release("").is_none());
    }

    #[test]
    fn names_that_no_header_takes_are_refused() {
        for name in ["", "a\nb", "a\u{7f}", "\0", &"x".repeat(257)] {
            assert!(!is_header_value(name), "{name:?}");
        }
        for name in ["a b", "é", "codex-tui"] {
            assert!(is_header_value(name), "{name:?}");
        }
        assert_eq!((originator("codex-tui"), originator("other")), ("codex_cli_rs", "other"));
    }
}
