//! Pages of a thread. A runtime that holds the thread knows more than the record does and is asked; else the record
//! answers, and nothing is started for whoever only reads.

use std::sync::Arc;

use protocol::{
    RequestMethod, ThreadId, ThreadItemsList, ThreadItemsListParams, ThreadTurnsList, ThreadTurnsListParams,
    Turn,
};
use runtime::{RuntimeError, items_page, turns_page};

use crate::host_face::app::HostApp;
use crate::host_face::handlers::forward;
use crate::hub::Requester;
use crate::reply::MethodReply;

pub(crate) async fn turns(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadTurnsListParams,
    reply: MethodReply<ThreadTurnsList>,
) {
    let thread = params.thread_id.clone();
    page(app, caller, &thread, params, reply, turns_page).await;
}

pub(crate) async fn items(
    app: Arc<HostApp>,
    caller: Requester,
    params: ThreadItemsListParams,
    reply: MethodReply<ThreadItemsList>,
) {
    let thread = params.thread_id.clone();
    page(app, caller, &thread, params, reply, items_page).await;
}

type PageCut<M> =
    fn(&[Turn], &<M as RequestMethod>::Params) -> Result<<M as RequestMethod>::Response, RuntimeError>;

async fn page<M: RequestMethod>(
    app: Arc<HostApp>,
    caller: Requester,
    thread: &ThreadId,
    params: M::Params,
    reply: MethodReply<M>,
    cut: PageCut<M>,
) {
    reply.room().await;
    match app.host.stored_turns(thread).await {
        Ok(Some(turns)) => reply.send(cut(&turns, &params).map_err(Into::into)),
        Ok(None) => forward(app, caller, params, reply).await,
        Err(error) => reply.send(Err(error.into())),
    }
}
