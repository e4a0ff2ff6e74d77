//! Files on this machine, as a client handles them. What a client watches belongs to its connection.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use protocol::{
    AbsolutePath, FsChangedNotification, FsCopyParams, FsCopyResponse, FsCreateDirectoryParams,
    FsCreateDirectoryResponse, FsGetMetadataParams, FsGetMetadataResponse, FsReadDirectoryParams,
    FsReadDirectoryResponse, FsReadFile, FsReadFileParams, FsRemoveParams, FsRemoveResponse, FsUnwatchParams,
    FsUnwatchResponse, FsWatch, FsWatchParams, FsWatchResponse, FsWriteFileParams, FsWriteFileResponse,
    ServerNotification,
};
use runtime::{FileError, PathWatch, RuntimeError};
use tokio::task::JoinHandle;

use crate::app::App;
use crate::hub::{ConnectionId, Requester};
use crate::reply::MethodReply;

/// Paths that one connection may watch.
const MAX_WATCHES: usize = 128;

/// The watches of every connection that has any, by their ids.
#[derive(Debug, Default)]
pub(crate) struct ConnectionWatches {
    by_connection: Mutex<HashMap<ConnectionId, HashMap<String, JoinHandle<()>>>>,
}

impl ConnectionWatches {
    fn check_room(&self, connection: ConnectionId) -> Result<(), FileError> {
        let count = self.by_connection.lock().get(&connection).map_or(0, HashMap::len);
        if count < MAX_WATCHES { Ok(()) } else { Err(FileError::TooManyWatches { count }) }
    }

    /// Tells the caller of changes from now on, unless its connection has ended.
    fn add(&self, caller: Requester, watch: PathWatch) {
        let mut watches = self.by_connection.lock();
        // Looked at with the lock held: a connection closes its outbox before it calls `close`.
        if !caller.connection.outbox.is_closed() {
            let (connection, id) = (caller.id(), watch.id().to_owned());
            watches.entry(connection).or_default().insert(id, tokio::spawn(tell(caller, watch)));
        }
    }

    /// Once this has returned, nothing more is told.
    async fn remove(&self, connection: ConnectionId, id: &str) {
        let ended = self.by_connection.lock().get_mut(&connection).and_then(|watches| watches.remove(id));
        if let Some(task) = ended {
            end(task).await;
        }
    }

    pub(crate) async fn close(&self, connection: ConnectionId) {
        let ended = self.by_connection.lock().remove(&connection).unwrap_or_default();
        for task in ended.into_values() {
            end(task).await;
        }
    }
}

async fn end(task: JoinHandle<()>) {
    task.abort();
    // An error says that it was aborted.
    let _ = task.await;
}

async fn tell(caller: Requester, mut watch: PathWatch) {
    loop {
        let changed_paths = watch.next().await;
        let watch_id = watch.id().to_owned();
        let changed = FsChangedNotification { watch_id, changed_paths };
        caller.notify(ServerNotification::FsChanged(changed)).await;
    }
}

pub(crate) async fn read_file(
    app: Arc<App>,
    _: Requester,
    params: FsReadFileParams,
    reply: MethodReply<FsReadFile>,
) {
    // The answer may be large, so it is not made before earlier ones were read.
    reply.room().await;
    reply.send(app.runtime.read_file(&params).await.map_err(Into::into));
}

pub(crate) async fn write_file(
    app: Arc<App>,
    _: Requester,
    params: FsWriteFileParams,
) -> Result<FsWriteFileResponse, RuntimeError> {
    app.runtime.write_file(params).await?;
    Ok(FsWriteFileResponse {})
}

pub(crate) async fn create_directory(
    app: Arc<App>,
    _: Requester,
    params: FsCreateDirectoryParams,
) -> Result<FsCreateDirectoryResponse, RuntimeError> {
    app.runtime.create_directory(params).await?;
    Ok(FsCreateDirectoryResponse {})
}

pub(crate) async fn metadata(
    app: Arc<App>,
    _: Requester,
    params: FsGetMetadataParams,
) -> Result<FsGetMetadataResponse, RuntimeError> {
    app.runtime.path_metadata(&params.path).await
}

pub(crate) async fn read_directory(
    app: Arc<App>,
    _: Requester,
    params: FsReadDirectoryParams,
) -> Result<FsReadDirectoryResponse, RuntimeError> {
    app.runtime.read_directory(&params).await
}

pub(crate) async fn remove(
    app: Arc<App>,
    _: Requester,
    params: FsRemoveParams,
) -> Result<FsRemoveResponse, RuntimeError> {
    app.runtime.remove_path(params).await?;
    Ok(FsRemoveResponse {})
}

pub(crate) async fn copy(
    app: Arc<App>,
    _: Requester,
    params: FsCopyParams,
) -> Result<FsCopyResponse, RuntimeError> {
    app.runtime.copy_path(params).await?;
    Ok(FsCopyResponse {})
}

pub(crate) async fn watch(
    app: Arc<App>,
    caller: Requester,
    params: FsWatchParams,
    reply: MethodReply<FsWatch>,
) {
    match start_watch(&app, &caller, &params.path).await {
        Ok(watch) => {
            reply.send(Ok(FsWatchResponse { watch_id: watch.id().to_owned(), path: params.path }));
            app.watches.add(caller, watch);
        }
        Err(error) => reply.send(Err(error.into())),
    }
}

async fn start_watch(app: &App, caller: &Requester, path: &AbsolutePath) -> Result<PathWatch, RuntimeError> {
    app.watches.check_room(caller.id())?;
    app.runtime.watch_path(path).await
}

pub(crate) async fn unwatch(
    app: Arc<App>,
    caller: Requester,
    params: FsUnwatchParams,
) -> Result<FsUnwatchResponse, RuntimeError> {
    app.watches.remove(caller.id(), &params.watch_id).await;
    Ok(FsUnwatchResponse {})
}
