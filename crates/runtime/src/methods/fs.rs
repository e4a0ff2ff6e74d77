//! `fs/*`: files that a connected client reads and changes. Each method runs on its own thread with a time limit,
//! because a file system may hang.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use driver::ClockExt;
use protocol::{
    AbsolutePath, FsCopyParams, FsCreateDirectoryParams, FsGetMetadataResponse, FsReadDirectoryEntry,
    FsReadDirectoryParams, FsReadDirectoryResponse, FsReadFileParams, FsReadFileResponse, FsRemoveParams,
    FsWriteFileParams,
};
use support::blocking;
use workspace::{FileError, READ_LIMIT, StepCount, Subscription, Watcher, within_steps};

use crate::error::RuntimeError;
use crate::runtime::Runtime;

/// Limit of a read. The response is a third longer because of base64.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Changes within this time are notified together.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(200);

/// Only hosts have placements.
fn check_here(placement: Option<&String>) -> Result<(), RuntimeError> {
    let problem = || "is for hosts; leave it out for files of this machine".to_owned();
    match placement {
        None => Ok(()),
        Some(_) => Err(RuntimeError::Field { field: "placementId", problem: problem() }),
    }
}

impl Runtime {
    pub async fn read_file(&self, params: &FsReadFileParams) -> Result<FsReadFileResponse, RuntimeError> {
        check_here(params.placement_id.as_ref())?;
        let read = |path: &Path, steps: &StepCount| {
            let mut data_base64 = String::new();
            workspace::read_in_pieces(path, MAX_READ_BYTES, steps, |piece| {
                STANDARD.encode_string(piece, &mut data_base64);
            })?;
            Ok(FsReadFileResponse { data_base64 })
        };
        on_files(&params.path, read).await
    }

    pub async fn write_file(&self, params: FsWriteFileParams) -> Result<(), RuntimeError> {
        let FsWriteFileParams { path, data_base64, placement_id } = params;
        check_here(placement_id.as_ref())?;
        let write = move |path: &Path, steps: &StepCount| {
            let content =
                STANDARD.decode(data_base64).map_err(|error| FileError::Base64(error.to_string()))?;
            workspace::write_file(path, &content, steps)
        };
        on_files(&path, write).await
    }

    pub async fn create_directory(&self, params: FsCreateDirectoryParams) -> Result<(), RuntimeError> {
        check_here(params.placement_id.as_ref())?;
        let is_recursive = params.recursive.unwrap_or(true);
        on_files(&params.path, move |path, _| workspace::create_directory(path, is_recursive)).await
    }

    pub async fn path_metadata(&self, path: &AbsolutePath) -> Result<FsGetMetadataResponse, RuntimeError> {
        let facts = on_files(path, |path, _| workspace::path_facts(path)).await?;
        Ok(FsGetMetadataResponse {
            is_directory: facts.is_directory,
            is_file: facts.is_file,
            is_symlink: facts.is_link,
            created_at_ms: facts.created_ms,
            modified_at_ms: facts.modified_ms,
        })
    }

    pub async fn read_directory(
        &self,
        params: &FsReadDirectoryParams,
    ) -> Result<FsReadDirectoryResponse, RuntimeError> {
        check_here(params.placement_id.as_ref())?;
        let entries = on_files(&params.path, workspace::read_directory).await?;
        let entry = |entry: workspace::DirectoryEntry| FsReadDirectoryEntry {
            file_name: entry.name,
            is_directory: entry.is_directory,
            is_file: entry.is_file,
        };
        Ok(FsReadDirectoryResponse { entries: entries.into_iter().map(entry).collect() })
    }

    pub async fn remove_path(&self, params: FsRemoveParams) -> Result<(), RuntimeError> {
        let (is_recursive, is_forced) = (params.recursive.unwrap_or(true), params.force.unwrap_or(true));
        let remove =
            move |path: &Path, steps: &StepCount| workspace::remove(path, is_recursive, is_forced, steps);
        on_files(&params.path, remove).await
    }

    pub async fn copy_path(&self, params: FsCopyParams) -> Result<(), RuntimeError> {
        let destination = absolute(&params.destination_path)?;
        let copy = move |path: &Path, steps: &StepCount| {
            workspace::copy(path, &destination, params.recursive, steps)
        };
        on_files(&params.source_path, copy).await
    }

    /// Watches a path, which need not exist. Every change after this returns is noticed.
    pub async fn watch_path(&self, path: &AbsolutePath) -> Result<PathWatch, RuntimeError> {
        let watch = |path: &Path, _: &StepCount| {
            let subscription = Watcher::shared().subscribe(WATCH_DEBOUNCE);
            match subscription.set_paths([path.to_owned()]).is_complete {
                true => Ok(subscription),
                false => Err(FileError::NotWatched(path.to_owned())),
            }
        };
        let subscription = on_files_as_server(path, watch).await?;
        let id = self.state.ids.watch(self.state.clock.stamp());
        Ok(PathWatch { id, path: PathBuf::from(path.as_str()), subscription: Some(subscription) })
    }
}

/// A watched path of one client.
#[derive(Debug)]
pub struct PathWatch {
    id: String,
    path: PathBuf,
    /// Taken on drop.
    subscription: Option<Subscription>,
}

impl PathWatch {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for changes and returns the changed paths, sorted. If events were lost, it returns the watched path.
    pub async fn next(&mut self) -> Vec<AbsolutePath> {
        let Some(subscription) = &mut self.subscription else { return std::future::pending().await };
        loop {
            let changes = subscription.next().await;
            let is_ours = |path: &&Path| !path.file_name().is_some_and(workspace::is_temporary_name);
            let mut paths: Vec<&Path> = changes.paths().into_iter().filter(is_ours).collect();
            if changes.is_incomplete && !paths.contains(&self.path.as_path()) {
                paths.insert(paths.partition_point(|path| *path < self.path.as_path()), &self.path);
            }
            let told = paths.iter().filter_map(|path| AbsolutePath::new(path.to_string_lossy()));
            let told: Vec<AbsolutePath> = told.collect();
            if !told.is_empty() {
                return told;
            }
        }
    }
}

impl Drop for PathWatch {
    fn drop(&mut self) {
        let subscription = self.subscription.take();
        // Unsubscribing calls the kernel and may wait for a lock.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn_blocking(move || drop(subscription));
        }
    }
}

/// A drive letter is absolute on the wire, but not on this system.
fn absolute(path: &AbsolutePath) -> Result<PathBuf, FileError> {
    let path = PathBuf::from(path.as_str());
    if path.is_absolute() { Ok(path) } else { Err(FileError::NotAbsolute(path)) }
}

/// With the rights of commands: a link that a command has put in the way must not lead into this program's home.
async fn on_files<T: Send + 'static>(
    path: &AbsolutePath,
    work: impl FnOnce(&Path, &StepCount) -> Result<T, FileError> + Send + 'static,
) -> Result<T, RuntimeError> {
    on_files_as_server(path, move |path, steps| {
        sandbox::as_command_user(|| work(path, steps)).unwrap_or_else(|error| Err(error.into()))
    })
    .await
}

/// The one watcher of the process is made by its first use, with rights that it keeps.
async fn on_files_as_server<T: Send + 'static>(
    path: &AbsolutePath,
    work: impl FnOnce(&Path, &StepCount) -> Result<T, FileError> + Send + 'static,
) -> Result<T, RuntimeError> {
    let path = absolute(path)?;
    let limited = move || {
        let own = path.clone();
        within_steps(&path, READ_LIMIT, move |steps| work(&own, steps))
            .unwrap_or_else(|error| Err(FileError::unanswered(&path, &error)))
    };
    Ok(blocking(limited).await??)
}
