//! Goals. The answer to a change is queued before the work it leads to.

use std::sync::Arc;

use protocol::{
    ThreadGoalClear, ThreadGoalClearParams, ThreadGoalClearResponse, ThreadGoalGetParams,
    ThreadGoalGetResponse, ThreadGoalSet, ThreadGoalSetParams, ThreadGoalSetResponse,
};
use runtime::{Responder, RuntimeError};

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

pub(crate) async fn set(
    app: Arc<App>,
    _: Requester,
    params: ThreadGoalSetParams,
    reply: MethodReply<ThreadGoalSet>,
) {
    let answer = Responder::new(move |goal: Result<_, RuntimeError>| {
        reply.send(goal.map(|goal| ThreadGoalSetResponse { goal }).map_err(Into::into));
    });
    app.runtime.set_goal(params, answer).await;
}

pub(crate) async fn get(
    app: Arc<App>,
    _: Requester,
    params: ThreadGoalGetParams,
) -> Result<ThreadGoalGetResponse, RuntimeError> {
    let goal = app.runtime.goal(&params.thread_id).await?;
    Ok(ThreadGoalGetResponse { goal })
}

pub(crate) async fn clear(
    app: Arc<App>,
    _: Requester,
    params: ThreadGoalClearParams,
    reply: MethodReply<ThreadGoalClear>,
) {
    let answer = Responder::new(move |cleared: Result<bool, RuntimeError>| {
        reply.send(cleared.map(|cleared| ThreadGoalClearResponse { cleared }).map_err(Into::into));
    });
    app.runtime.clear_goal(&params.thread_id, answer).await;
}
