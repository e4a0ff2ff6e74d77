//! Tar streams into and out of a placement, and snapshots: whole workspaces as files named by their digest.

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use ring::digest::{Context, SHA256};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::backend::Prefix;
use crate::error::{PlacementError, last_line};
use crate::manifest::PreparedManifest;
use crate::placement::{Placement, bounded};
use crate::process::{AttachedProcess, SpawnOptions};
use crate::progress::{PlacementStep, ProgressSink};
use crate::scratch::random_hex;
use crate::tar::{TarCheck, TarOrigin};

/// Largest stream in or out.
const MAX_TAR: u64 = 64 << 30;
const CHUNK: usize = 256 << 10;
const KEPT_STDERR: usize = 64 << 10;

const UNPACK: &str = r#"mkdir -p "$1" && cd "$1" && exec tar -xpf -"#;
const PACK: &str = r#"cd "$1" && exec tar -cf - ."#;

/// A workspace as it was: `DIGEST.tar` in the folder of blobs. It is never unpacked on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotFile {
    pub path: PathBuf,
    /// SHA-256 of the file, in hexadecimal.
    pub digest: String,
    pub bytes: u64,
}

impl Placement {
    /// Unpacks a tar stream in a folder beneath the workspace (`""` is the workspace). Names and links must stay inside.
    pub async fn put_tar(&self, folder: &str, tar: impl AsyncRead + Unpin) -> Result<(), PlacementError> {
        let progress = ProgressSink::none();
        let stream = TarStream { origin: TarOrigin::Upload, total: None, progress: &progress };
        self.unpack(self.prefix().await?, folder, tar, stream).await.map(drop)
    }

    /// Packs a folder beneath the workspace. Returns how many bytes were written.
    pub async fn get_tar(&self, folder: &str, to: impl AsyncWrite + Unpin) -> Result<u64, PlacementError> {
        self.pack(folder, to).await.map(|(bytes, _)| bytes)
    }

    /// Packs the whole workspace into `blobs`. The file has its name when it is complete and on the disk.
    pub async fn snapshot(&self, blobs: &Path) -> Result<SnapshotFile, PlacementError> {
        let action = "writing the snapshot";
        tokio::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(blobs)
            .await
            .map_err(PlacementError::io(action))?;
        let temporary = blobs.join(format!(".new-{}", random_hex()?));
        let written = self.write_snapshot(&temporary, blobs).await;
        if written.is_err() {
            let _ = tokio::fs::remove_file(&temporary).await;
        }
        written
    }

    async fn write_snapshot(&self, temporary: &Path, blobs: &Path) -> Result<SnapshotFile, PlacementError> {
        let action = "writing the snapshot";
        let mut options = tokio::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(temporary)
            .await
            .map_err(PlacementError::io(action))?;
        let (bytes, digest) = self.pack("", &mut file).await?;
        file.sync_all().await.map_err(PlacementError::io(action))?;
        let path = blobs.join(format!("{digest}.tar"));
        tokio::fs::rename(temporary, &path).await.map_err(PlacementError::io(action))?;
        if let Ok(folder) = File::open(blobs).await {
            folder.sync_all().await.map_err(PlacementError::io(action))?;
        }
        Ok(SnapshotFile { path, digest, bytes })
    }

    /// Unpacks a snapshot in the workspace and compares its digest.
    pub(crate) async fn restore(
        &self,
        snapshot: &SnapshotFile,
        prefix: Prefix,
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        let file = File::open(&snapshot.path).await.map_err(PlacementError::io("opening the snapshot"))?;
        let stream = TarStream { origin: TarOrigin::Snapshot, total: Some(snapshot.bytes), progress };
        let digest = self.unpack(prefix, "", file, stream).await?;
        match digest == snapshot.digest {
            true => Ok(()),
            false => {
                let problem =
                    format!("its digest is {digest}, not {}; it was changed or is damaged", snapshot.digest);
                Err(PlacementError::invalid(format!("snapshot {}", snapshot.path.display()), problem))
            }
        }
    }

    pub(crate) async fn send_manifest(
        &self,
        prepared: &PreparedManifest,
        prefix: Prefix,
        progress: &ProgressSink,
    ) -> Result<(), PlacementError> {
        let stream = TarStream { origin: TarOrigin::Upload, total: Some(prepared.bytes()), progress };
        self.unpack(prefix, "", File::from_std(prepared.open()?), stream).await.map(drop)
    }

    /// Returns the digest of the stream.
    async fn unpack(
        &self,
        prefix: Prefix,
        folder: &str,
        mut tar: impl AsyncRead + Unpin,
        stream: TarStream<'_>,
    ) -> Result<String, PlacementError> {
        let mut process = self.tar_process(prefix, UNPACK, folder).await?;
        let (stdin, stdout, stderr) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let send = async {
            // Owned, so that the end of the stream closes it.
            let Some(mut stdin) = stdin else { return Ok(String::new()) };
            let mut check = TarCheck::new(stream.origin, MAX_TAR);
            let mut digest = Context::new(&SHA256);
            let mut buffer = vec![0; CHUNK];
            let mut done = 0;
            let mut is_open = true;
            loop {
                stream.progress.step(PlacementStep::Workspace, done, stream.total);
                let read =
                    tar.read(&mut buffer).await.map_err(PlacementError::io("reading the tar stream"))?;
                if read == 0 {
                    check.finish()?;
                    return Ok(HEXLOWER.encode(digest.finish().as_ref()));
                }
                check.feed(&buffer[..read])?;
                digest.update(&buffer[..read]);
                // A tar that has ended says with its code whether it had enough: padding may follow the end of an archive.
                is_open = is_open && stdin.write_all(&buffer[..read]).await.is_ok();
                done += read as u64;
            }
        };
        let (sent, _, (stderr, _)) = tokio::join!(send, bounded(stdout, 0), bounded(stderr, KEPT_STDERR));
        let end = process.wait().await;
        let digest = sent?;
        match self.exit_code(end)? {
            0 => Ok(digest),
            code => Err(tar_failed("unpacking the workspace", "tar -x", code, &stderr)),
        }
    }

    /// Returns the size and the digest of the stream.
    async fn pack(
        &self,
        folder: &str,
        mut to: impl AsyncWrite + Unpin,
    ) -> Result<(u64, String), PlacementError> {
        let mut process = self.tar_process(self.prefix().await?, PACK, folder).await?;
        drop(process.stdin.take());
        let (stdout, stderr) = (process.stdout.take(), process.stderr.take());
        let receive = async {
            let mut check = TarCheck::new(TarOrigin::Snapshot, MAX_TAR);
            let mut digest = Context::new(&SHA256);
            let mut bytes = 0;
            let mut buffer = vec![0; CHUNK];
            let Some(mut stdout) = stdout else { return Ok((0, String::new(), check)) };
            loop {
                let read =
                    stdout.read(&mut buffer).await.map_err(PlacementError::io("reading the workspace"))?;
                if read == 0 {
                    to.flush().await.map_err(PlacementError::io("writing the tar stream"))?;
                    return Ok((bytes, HEXLOWER.encode(digest.finish().as_ref()), check));
                }
                check.feed(&buffer[..read])?;
                digest.update(&buffer[..read]);
                to.write_all(&buffer[..read]).await.map_err(PlacementError::io("writing the tar stream"))?;
                bytes += read as u64;
            }
        };
        let (received, (stderr, _)) = tokio::join!(receive, bounded(stderr, KEPT_STDERR));
        let (bytes, digest, check) = match received {
            Ok(received) => received,
            Err(error) => {
                process.kill().await?;
                return Err(error);
            }
        };
        let code = self.exit_code(process.wait().await)?;
        match code {
            0 => {}
            // GNU tar: a file changed while it was read. The stream is whole.
            1 if memchr::memmem::find(&stderr, b"changed as we read it").is_some() => {}
            _ => return Err(tar_failed("packing the workspace", "tar -c", code, &stderr)),
        }
        check.finish()?;
        Ok((bytes, digest))
    }

    async fn tar_process(
        &self,
        prefix: Prefix,
        script: &str,
        folder: &str,
    ) -> Result<AttachedProcess, PlacementError> {
        let Some(parts) = crate::tar::relative_parts(folder.as_bytes()) else {
            return Err(PlacementError::invalid(
                "folder",
                format!("{folder:?} must be beneath the workspace"),
            ));
        };
        let mut path = self.reference().workspace.clone();
        for part in parts {
            path.push('/');
            path.push_str(&String::from_utf8_lossy(part));
        }
        self.spawn_behind(prefix, &SpawnOptions::new(["sh", "-c", script, "sh", &path])).await
    }
}

/// Facts about a stream that goes in.
#[derive(Debug)]
struct TarStream<'a> {
    origin: TarOrigin,
    total: Option<u64>,
    progress: &'a ProgressSink,
}

fn tar_failed(action: &str, command: &str, code: i32, stderr: &[u8]) -> PlacementError {
    let line = last_line(stderr).unwrap_or_else(|| format!("it ended with code {code}"));
    PlacementError::Failed { action: action.to_owned(), command: command.to_owned(), line }
}
