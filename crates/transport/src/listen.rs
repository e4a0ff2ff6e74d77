//! Where the server listens, from one word on the command line.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where clients come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// One client, on standard input and output.
    Stdio,
    /// Websockets.
    Ws(SocketAddr),
    /// Lines over a Unix socket.
    Unix(PathBuf),
    /// A socket of either kind that a service manager opened and passed on.
    Inherited,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    #[error("invalid websocket --listen URL `{0}`; expected `ws://IP:PORT`")]
    NoAddress(String),
    #[error("invalid socket --listen URL `{0}`; expected `unix://PATH`")]
    NoPath(String),
    #[error("unsupported --listen URL `{0}`; expected `stdio://`, `ws://IP:PORT` or `unix://PATH`")]
    Unsupported(String),
}

impl Listen {
    pub fn parse(url: &str) -> Result<Self, ListenError> {
        if url == "stdio://" {
            return Ok(Self::Stdio);
        }
        if url == "fd://" {
            return Ok(Self::Inherited);
        }
        if let Some(address) = url.strip_prefix("ws://") {
            // A name could mean another machine tomorrow than it means today.
            return address.parse().map(Self::Ws).map_err(|_| ListenError::NoAddress(url.to_owned()));
        }
        match url.strip_prefix("unix://") {
            Some("") => Err(ListenError::NoPath(url.to_owned())),
            Some(path) => Ok(Self::Unix(path.into())),
            None => Err(ListenError::Unsupported(url.to_owned())),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio://"),
            Self::Ws(address) => write!(f, "ws://{address}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Inherited => f.write_str("fd://"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        for url in [
            "stdio://",
            "ws://127.0.0.1:0",
            "ws://[::1]:4500",
            "unix:///run/oarlock.sock",
            "unix://a.sock",
            "fd://",
        ] {
            assert_eq!(Listen::parse(url).map(|listen| listen.to_string()).as_deref(), Ok(url));
        }
    }

    #[test]
    fn says_what_it_expected() {
        let unsupported = |url: &str| {
            format!("unsupported --listen URL `{url}`; expected `stdio://`, `ws://IP:PORT` or `unix://PATH`")
        };
        for (url, expected) in [
            (
                "ws://localhost:80",
                "invalid websocket --listen URL `ws://localhost:80`; expected `ws://IP:PORT`".to_owned(),
            ),
            (
                "ws://127.0.0.1",
                "invalid websocket --listen URL `ws://127.0.0.1`; expected `ws://IP:PORT`".to_owned(),
            ),
            ("unix://", "invalid socket --listen URL `unix://`; expected `unix://PATH`".to_owned()),
            ("http://127.0.0.1:80", unsupported("http://127.0.0.1:80")),
            ("", unsupported("")),
        ] {
            assert_eq!(Listen::parse(url).map_err(|error| error.to_string()), Err(expected));
        }
    }
}
