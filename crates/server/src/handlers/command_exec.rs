//! ConnectionCommands that a client runs outside any thread. They belong to its connection.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use protocol::{
    CommandExec, CommandExecOutputDelta, CommandExecOutputDeltaNotification, CommandExecParams,
    CommandExecResize, CommandExecResizeParams, CommandExecResizeResponse, CommandExecTerminate,
    CommandExecTerminateParams, CommandExecTerminateResponse, CommandExecWrite, CommandExecWriteParams,
    CommandExecWriteResponse, NotificationMethod as _,
};
use rpc::{DeltaKey, OrderGroup, OutgoingMessage};
use runtime::{ClientCommands, CommandExecError, DeltaSink, Responder, RuntimeError};
use tokio::sync::Semaphore;

use crate::app::App;
use crate::hub::{ConnectionId, Requester};
use crate::reply::MethodReply;

/// Output that waits to be written to one connection. Far below what its queue holds: commands wait for a slow reader,
/// and everything else that is told to it finds room.
const WAITING_BYTES: usize = 1024 * 1024;

/// The commands of every connection that has run any.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCommands {
    by_connection: Mutex<HashMap<ConnectionId, Desk>>,
}

/// State shared by the requests of one connection.
#[derive(Debug, Clone)]
struct Desk {
    commands: Arc<ClientCommands>,
    room: Arc<Semaphore>,
}

impl ConnectionCommands {
    /// `None` for a connection that has ended: nothing may be started for it any more.
    fn desk(&self, app: &App, caller: &Requester) -> Option<Desk> {
        let mut desks = self.by_connection.lock();
        // Looked at with the lock held: a connection closes its outbox before it calls `close`.
        if caller.connection.outbox.is_closed() {
            return None;
        }
        let desk = desks.entry(caller.id()).or_insert_with(|| Desk {
            commands: Arc::new(app.runtime.client_commands()),
            room: Arc::new(Semaphore::new(WAITING_BYTES)),
        });
        Some(desk.clone())
    }

    /// The connection is gone: kills all that ran for it, and returns when nothing is left.
    pub(crate) async fn close(&self, connection: ConnectionId) {
        let desk = self.by_connection.lock().remove(&connection);
        if let Some(desk) = desk {
            desk.commands.close().await;
        }
    }
}

/// Answers when the command has ended. Other requests do not wait for that.
pub(crate) async fn start(
    app: Arc<App>,
    caller: Requester,
    params: CommandExecParams,
    reply: MethodReply<CommandExec>,
) {
    let Some(desk) = app.commands.desk(&app, &caller) else { return };
    let answer = Responder::new(move |ended: Result<_, CommandExecError>| {
        reply.send(ended.map_err(|error| RuntimeError::from(error).into()));
    });
    desk.commands.start(params, sink(caller, desk.room), answer);
}

pub(crate) async fn write(
    app: Arc<App>,
    caller: Requester,
    params: CommandExecWriteParams,
    reply: MethodReply<CommandExecWrite>,
) {
    let Some(desk) = app.commands.desk(&app, &caller) else { return };
    let answer = Responder::new(move |written: Result<(), CommandExecError>| {
        reply.send(
            written.map(|()| CommandExecWriteResponse {}).map_err(|error| RuntimeError::from(error).into()),
        );
    });
    desk.commands.write(&params, answer);
}

pub(crate) async fn resize(
    app: Arc<App>,
    caller: Requester,
    params: CommandExecResizeParams,
    reply: MethodReply<CommandExecResize>,
) {
    let Some(desk) = app.commands.desk(&app, &caller) else { return };
    let answer = Responder::new(move |resized: Result<(), CommandExecError>| {
        reply.send(
            resized.map(|()| CommandExecResizeResponse {}).map_err(|error| RuntimeError::from(error).into()),
        );
    });
    desk.commands.resize(&params, answer);
}

pub(crate) async fn terminate(
    app: Arc<App>,
    caller: Requester,
    params: CommandExecTerminateParams,
    reply: MethodReply<CommandExecTerminate>,
) {
    let Some(desk) = app.commands.desk(&app, &caller) else { return };
    let answer = Responder::new(move |stopped: Result<(), CommandExecError>| {
        reply.send(
            stopped
                .map(|()| CommandExecTerminateResponse {})
                .map_err(|error| RuntimeError::from(error).into()),
        );
    });
    desk.commands.terminate(&params, answer);
}

/// Tells the caller, and waits while it has too much to read. A full queue never costs it its connection: only its own
/// command waits.
fn sink(caller: Requester, room: Arc<Semaphore>) -> DeltaSink {
    DeltaSink::new(move |delta| {
        let (caller, room) = (caller.clone(), room.clone());
        Box::pin(async move {
            if !caller.connection.wants(CommandExecOutputDelta::METHOD) {
                return;
            }
            let price = u32::try_from(delta.delta_base64.len().clamp(1, WAITING_BYTES)).unwrap_or(u32::MAX);
            // Nobody closes it.
            let Ok(paid) = room.acquire_many_owned(price).await else { return };
            // A closed connection hears nothing more, and its commands are about to be killed.
            let _ = caller.connection.outbox.send(message(delta, paid)).await;
        })
    })
}

/// The permit travels with the message and is released when its line is encoded, just before it is written.
fn message(
    mut delta: CommandExecOutputDeltaNotification,
    paid: impl Send + Sync + 'static,
) -> OutgoingMessage {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A key of its own: pieces of base64 cannot be joined.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let key = DeltaKey { group: OrderGroup(number), stream: CommandExecOutputDelta::METHOD.into() };
    let text = std::mem::take(&mut delta.delta_base64);
    let render = Arc::new(move |text: &str| {
        let _paid = &paid;
        let delta = CommandExecOutputDeltaNotification { delta_base64: text.to_owned(), ..delta.clone() };
        // Text always can be written as JSON; a connection skips an empty line.
        rpc::notification(CommandExecOutputDelta::METHOD, &delta).unwrap_or_default()
    });
    OutgoingMessage::Delta { key, text, render }
}
