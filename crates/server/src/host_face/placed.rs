//! Requests that name a placement are carried out there. Without one they are about the host's machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host::{FileRequest, LinkAnswer, OrderedAnswer, RuntimeClient, TaskError, names_placement};
use parking_lot::Mutex;
use rpc::{DeltaKey, OrderGroup, OutgoingMessage};
use runtime::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Semaphore;

use crate::host_face::app::HostApp;
use crate::hub::Requester;
use crate::reply::ReplyTo;
use crate::roles::check_machine;
use crate::router::Run;
use crate::wire_error::WireError;

/// Notifications of a placement that wait to be written to one connection: far below what its queue holds, so that everything
/// else finds room.
const WAITING_BYTES: usize = 1024 * 1024;

/// Goes to the placement that the request names; else `run` is about this machine.
pub(crate) fn placed(
    method: &'static str,
    _: Option<&str>,
    params: &RawValue,
    run: Run<HostApp>,
) -> Run<HostApp> {
    if !names_placement(method, Some(params.get())) {
        return run;
    }
    let params = params.to_owned();
    Box::new(move |app, caller, to| {
        Box::pin(async move {
            // The answer may be large, so it is not made before earlier ones were read.
            to.slot.room().await;
            if !FileRequest::METHODS.contains(&method) {
                return by_runtime(&app, caller, (method, &params), to).await;
            }
            match app.host.use_files(method, params.get()).await {
                Ok(answer) => to.pass_on(method, &Ok(answer)),
                Err(error) => to.refuse(&WireError::from(error)),
            }
        })
    })
}

async fn by_runtime(
    app: &HostApp,
    caller: Requester,
    (method, params): (&'static str, &RawValue),
    to: ReplyTo,
) {
    let read: Value = serde_json::from_str(params.get()).unwrap_or_default();
    let id = read["placementId"].as_str().unwrap_or_default().to_owned();
    let checked = match app.host.is_place_here(&id).await {
        Ok(true) => {
            let is_local = caller.identity().is_local;
            check_machine(is_local, method, Some(params.get()), app.host.default_placement())
        }
        Ok(false) => Ok(()),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = checked {
        return to.refuse(&error);
    }
    // Whoever fails to send the request still has to answer it.
    let waiting = Arc::new(Mutex::new(Some(to)));
    let first = Arc::clone(&waiting);
    let answer: OrderedAnswer = Box::new(move |answer: LinkAnswer| {
        let to = first.lock().take();
        let Some(to) = to else { return };
        match answer {
            Ok(answer) => to.pass_on(method, &Ok(answer)),
            Err(Some(error)) => to.pass_on(method, &Err(error)),
            Err(None) => {
                let problem = format!("placement {id}: what was begun there ended before it answered");
                to.refuse(&TaskError::Placement(problem).into());
            }
        }
    });
    let client: Arc<dyn RuntimeClient> = Arc::new(PlaceCaller::new(caller));
    if let Err(error) = app.host.use_place(&client, (method, read), answer).await {
        let to = waiting.lock().take();
        if let Some(to) = to {
            to.refuse(&error.into());
        }
    }
}

/// A connection, as its runtimes in placements see it.
struct PlaceCaller {
    caller: Requester,
    room: Arc<Semaphore>,
}

impl PlaceCaller {
    fn new(caller: Requester) -> Self {
        Self { caller, room: Arc::new(Semaphore::new(WAITING_BYTES)) }
    }
}

impl RuntimeClient for PlaceCaller {
    fn id(&self) -> u64 {
        self.caller.id().0
    }

    fn is_gone(&self) -> bool {
        self.caller.connection.outbox.is_closed()
    }

    fn tell<'a>(&'a self, method: &'a str, params: Box<RawValue>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if !self.caller.connection.wants(method) {
                return;
            }
            let price = u32::try_from(params.get().len().clamp(1, WAITING_BYTES)).unwrap_or(u32::MAX);
            // Nobody closes it.
            let Ok(paid) = Arc::clone(&self.room).acquire_many_owned(price).await else { return };
            let _ = self.caller.connection.outbox.send(message(method, &params, paid)).await;
        })
    }
}

/// The permit travels with the message and is released when its line is encoded, just before it is written.
fn message(method: &str, params: &RawValue, paid: impl Send + Sync + 'static) -> OutgoingMessage {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A key of its own: whole messages cannot be joined.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let (key, method) =
        (DeltaKey { group: OrderGroup(number), stream: "placement".into() }, method.to_owned());
    let render = Arc::new(move |text: &str| {
        let _paid = &paid;
        let params: Option<&RawValue> = serde_json::from_str(text).ok();
        // A connection skips an empty line.
        rpc::notification(&method, &params).unwrap_or_default()
    });
    OutgoingMessage::Delta { key, text: params.get().to_owned(), render }
}
