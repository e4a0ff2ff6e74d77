//! Reviews: as a turn of the thread, or in a copy of it.

use std::sync::Arc;

use protocol::{ReviewDelivery, ReviewStart, ReviewStartParams, ReviewStartResponse, Thread};
use runtime::{Responder, RuntimeError, SettingsChange};

use crate::app::App;
use crate::handlers::thread_open::{announce, joined, notify_all, opener};
use crate::hub::Requester;
use crate::reply::MethodReply;

/// The thread of a detached review is announced before the answer that names it.
pub(crate) async fn start(
    app: Arc<App>,
    caller: Requester,
    params: ReviewStartParams,
    reply: MethodReply<ReviewStart>,
) {
    reply.room().await;
    let ReviewStartParams { thread_id, target, delivery } = params;
    let (review_thread_id, change) = match delivery.unwrap_or(ReviewDelivery::Inline) {
        ReviewDelivery::Inline => (thread_id, SettingsChange::default()),
        ReviewDelivery::Detached => {
            let opener = opener(&app, &caller);
            match app.runtime.fork_for_review(&thread_id, &target, opener).await {
                Ok((mut opened, change)) => {
                    let notices = opened.take_notices();
                    // The copy says itself what it has; whoever wants its turns reads them.
                    let thread = Thread { turns: Vec::new(), ..joined(&app, &caller, &opened).await };
                    let id = thread.id.clone();
                    app.runtime.skills_watched(&id).await;
                    announce(&app, thread).await;
                    notify_all(&app, &id, notices).await;
                    (id, change)
                }
                Err(error) => return reply.send(Err(error.into())),
            }
        }
    };
    let id = review_thread_id.clone();
    let answer = Responder::new(move |turn: Result<_, RuntimeError>| {
        reply.send(turn.map(|turn| ReviewStartResponse { turn, review_thread_id }).map_err(Into::into));
    });
    app.runtime.start_review(&id, &target, change, answer).await;
}
