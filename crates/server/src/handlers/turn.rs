//! Turns. The answer to each is queued before the events that follow from it.

use std::sync::Arc;

use protocol::{
    ThreadBackgroundTerminalsCleanParams, ThreadBackgroundTerminalsCleanResponse,
    ThreadDecrementElicitationParams, ThreadDecrementElicitationResponse, ThreadIncrementElicitationParams,
    ThreadIncrementElicitationResponse, ThreadShellCommand, ThreadShellCommandParams,
    ThreadShellCommandResponse, TurnInterrupt, TurnInterruptParams, TurnInterruptResponse, TurnStart,
    TurnStartParams, TurnStartResponse, TurnSteerParams, TurnSteerResponse, TurnSuspend, TurnSuspendParams,
};
use runtime::{Responder, RuntimeError};

use crate::app::App;
use crate::hub::Requester;
use crate::reply::MethodReply;

pub(crate) async fn start(
    app: Arc<App>,
    _: Requester,
    params: TurnStartParams,
    reply: MethodReply<TurnStart>,
) {
    let answer = Responder::new(move |turn: Result<_, RuntimeError>| {
        reply.send(turn.map(|turn| TurnStartResponse { turn }).map_err(Into::into));
    });
    app.runtime.start_turn(params, answer).await;
}

pub(crate) async fn steer(
    app: Arc<App>,
    _: Requester,
    params: TurnSteerParams,
) -> Result<TurnSteerResponse, RuntimeError> {
    let turn_id = app.runtime.steer_turn(params).await?;
    Ok(TurnSteerResponse { turn_id })
}

pub(crate) async fn interrupt(
    app: Arc<App>,
    _: Requester,
    params: TurnInterruptParams,
    reply: MethodReply<TurnInterrupt>,
) {
    let answer = Responder::new(move |stopped: Result<(), RuntimeError>| {
        reply.send(stopped.map(|()| TurnInterruptResponse {}).map_err(Into::into));
    });
    app.runtime.interrupt_turn(params, answer).await;
}

/// Answered after `turn/suspended`.
pub(crate) async fn suspend(
    app: Arc<App>,
    _: Requester,
    params: TurnSuspendParams,
    reply: MethodReply<TurnSuspend>,
) {
    let answer = Responder::new(move |put_away: Result<_, RuntimeError>| {
        reply.send(put_away.map_err(Into::into));
    });
    app.runtime.suspend_turn(params, answer).await;
}

pub(crate) async fn shell_command(
    app: Arc<App>,
    _: Requester,
    params: ThreadShellCommandParams,
    reply: MethodReply<ThreadShellCommand>,
) {
    let answer = Responder::new(move |begun: Result<(), RuntimeError>| {
        reply.send(begun.map(|()| ThreadShellCommandResponse {}).map_err(Into::into));
    });
    app.runtime.shell_command(params, answer).await;
}

pub(crate) async fn open_elicitation(
    app: Arc<App>,
    caller: Requester,
    params: ThreadIncrementElicitationParams,
) -> Result<ThreadIncrementElicitationResponse, RuntimeError> {
    let client = caller.id().into();
    let count = app.runtime.open_elicitation(&params.thread_id, client)?;
    // Looked at after it was opened: a connection closes its outbox before its questions are closed.
    if caller.connection.outbox.is_closed() {
        app.runtime.close_elicitations(client);
    }
    Ok(ThreadIncrementElicitationResponse { count, paused: count > 0 })
}

pub(crate) async fn close_elicitation(
    app: Arc<App>,
    caller: Requester,
    params: ThreadDecrementElicitationParams,
) -> Result<ThreadDecrementElicitationResponse, RuntimeError> {
    let count = app.runtime.close_elicitation(&params.thread_id, caller.id().into())?;
    Ok(ThreadDecrementElicitationResponse { count, paused: count > 0 })
}

pub(crate) async fn clean_terminals(
    app: Arc<App>,
    _: Requester,
    params: ThreadBackgroundTerminalsCleanParams,
) -> Result<ThreadBackgroundTerminalsCleanResponse, RuntimeError> {
    app.runtime.clear_terminals(&params.thread_id).await?;
    Ok(ThreadBackgroundTerminalsCleanResponse {})
}
