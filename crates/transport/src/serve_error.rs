//! Why the server did not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::Listen;

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("cannot listen on {listen}: {source}")]
    Bind { listen: Listen, source: io::Error },
    #[error("another server listens on {}", .0.display())]
    SocketInUse(PathBuf),
    #[error("{} exists and is not a socket; choose another path", .0.display())]
    NotASocket(PathBuf),
    #[error(
        "ws://{0} can be reached from other machines, and anybody who does could run commands here; use --ws-auth, or \
         --allow-unauthenticated if that is meant"
    )]
    Exposed(SocketAddr),
    #[error("standard input cannot be read: {0}")]
    Stdin(io::Error),
}
