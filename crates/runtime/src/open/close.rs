//! Unloading threads.

use std::sync::Arc;
use std::time::Duration;

use protocol::ThreadId;

use crate::error::RuntimeError;
use crate::state::RuntimeState;
use driver::ThreadError;

/// Time limit for a thread to stop.
pub(crate) const CLOSING_LIMIT: Duration = Duration::from_secs(10);

/// Unloads a thread. Returns whether it was in memory.
pub(crate) async fn unload(state: &Arc<RuntimeState>, id: &ThreadId) -> Result<bool, RuntimeError> {
    let _opening = state.threads.opening(id).await;
    close_loaded(state, id).await
}

/// Like [`unload`], for a caller that holds the thread's opening lock.
pub(crate) async fn close_loaded(state: &Arc<RuntimeState>, id: &ThreadId) -> Result<bool, RuntimeError> {
    let Some(loaded) = state.loaded(id) else {
        state.forget(id);
        return Ok(false);
    };
    if let Some(session) = &loaded.session {
        session.close();
    }
    match tokio::time::timeout(CLOSING_LIMIT, loaded.handle.close()).await {
        Ok(Ok(()) | Err(ThreadError::Gone(_))) => {}
        Ok(Err(error)) => return Err(error.into()),
        Err(_) => {
            let problem = format!("thread {id} did not stop in {} seconds", CLOSING_LIMIT.as_secs());
            return Err(ThreadError::Storage(problem).into());
        }
    }
    state.forget(id);
    Ok(true)
}
