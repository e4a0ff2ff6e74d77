//! Clients over a Unix socket: lines, as over standard input and output, from processes of the same user.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use access::origin::{self, Origin};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Listen, ServeError};

/// A socket that is open. Its file goes when this is dropped, if it was made here.
#[derive(Debug)]
pub struct UnixPort {
    listener: UnixListener,
    /// Empty for a socket without a file.
    path: PathBuf,
    /// Which file it is: another server may have put its own there since. None of ours where somebody else made it.
    file: Option<(u64, u64)>,
}

/// A client of the same user.
#[derive(Debug)]
pub struct UnixClient {
    pub stream: UnixStream,
    /// Who connected.
    pid: i32,
}

impl UnixClient {
    /// Waits for a place. `None` for commands that this server started.
    pub async fn enter(&self, places: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
        match origin::of_process(self.pid).await {
            Origin::Elsewhere => places.clone().acquire_owned().await.ok(),
            Origin::Descendant | Origin::Confined | Origin::Unheld | Origin::Unknown => {
                tracing::warn!(pid = self.pid, "{}", origin::REFUSAL);
                None
            }
        }
    }
}

impl UnixPort {
    /// Takes the place of a socket that nobody listens on any more.
    pub async fn bind(path: &Path) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { listen: Listen::Unix(path.to_owned()), source };
        clear(path).await?;
        let listener = UnixListener::bind(path).map_err(failed)?;
        let open = || {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            let metadata = fs::symlink_metadata(path)?;
            io::Result::Ok((metadata.dev(), metadata.ino()))
        };
        let file = open().map_err(failed)?;
        Ok(Self { listener, path: path.to_owned(), file: Some(file) })
    }

    /// Takes over a socket that somebody else opened, and whose file stays when this is dropped.
    pub fn adopt(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let path = address.as_pathname().map(Path::to_owned).unwrap_or_default();
        Ok(Self { listener: UnixListener::from_std(listener)?, path, file: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next client. Processes of other users are turned away.
    pub async fn accept(&self) -> io::Result<UnixClient> {
        let own = rustix::process::geteuid().as_raw();
        loop {
            let (stream, _) = self.listener.accept().await?;
            match stream.peer_cred() {
                Ok(peer) if is_allowed(peer.uid(), own) => {
                    return Ok(UnixClient { stream, pid: peer.pid().unwrap_or(-1) });
                }
                Ok(peer) => tracing::warn!(uid = peer.uid(), "a client of another user was turned away"),
                Err(error) => tracing::warn!(%error, "a client without a user was turned away"),
            }
        }
    }

    /// The text for standard error.
    pub fn banner(&self) -> String {
        format!("oarlock app-server (Unix socket)\n  listening on: unix://{}\n", self.path.display())
    }
}

/// The file's mode says the same; this holds also where modes are not looked at.
fn is_allowed(peer: u32, own: u32) -> bool {
    peer == own
}

async fn clear(path: &Path) -> Result<(), ServeError> {
    let failed = |source| ServeError::Bind { listen: Listen::Unix(path.to_owned()), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(ServeError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        // It answers, or it cannot be told: either way it is not ours to remove.
        Ok(_) => Err(ServeError::SocketInUse(path.to_owned())),
        Err(error) => Err(failed(error)),
    }
}

impl Drop for UnixPort {
    fn drop(&mut self) {
        let is_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| Some((metadata.dev(), metadata.ino())) == self.file);
        if is_ours {
            // Left behind, it is replaced by the next server.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_user_is_let_in() {
        assert!(is_allowed(1000, 1000));
        assert!(!is_allowed(1001, 1000) && !is_allowed(0, 1000));
    }
}
