//! The answer to one request, typed.

use std::marker::PhantomData;

use protocol::{
    CommandExec, ExperimentalGate, FsUnwatch, FuzzyFileSearchSessionStop, RequestMethod, ThreadArchive,
    ThreadResume, ThreadRollback, ThreadUnsubscribe,
};
use rpc::{Id, ReplySlot};

use crate::wire_error::WireError;

/// Methods whose answer sums up what earlier messages told, or says that no more follow, so it must not pass them. Every
/// other answer passes what waits for a slow reader.
const ANSWERED_IN_ORDER: &[&str] = &[
    CommandExec::METHOD,
    FsUnwatch::METHOD,
    FuzzyFileSearchSessionStop::METHOD,
    ThreadResume::METHOD,
    ThreadRollback::METHOD,
    ThreadArchive::METHOD,
    ThreadUnsubscribe::METHOD,
];

/// Where an answer goes, before its type is known.
#[derive(Debug)]
pub(crate) struct ReplyTo {
    pub(crate) slot: ReplySlot,
    pub(crate) id: Id,
    pub(crate) is_experimental: bool,
}

impl ReplyTo {
    pub(crate) fn refuse(self, error: &WireError) {
        // When the connection is gone, nobody is left to tell.
        let _ = self.slot.reply_now(error.to_line(&self.id));
    }
}

/// Answers one request, exactly once. It may be kept and moved; dropped unused, it answers an internal error.
#[must_use = "dropping it answers the request with an error"]
#[derive(Debug)]
pub struct MethodReply<M: RequestMethod> {
    to: ReplyTo,
    method: PhantomData<fn(M)>,
}

impl<M: RequestMethod> MethodReply<M> {
    pub(crate) fn new(to: ReplyTo) -> Self {
        Self { to, method: PhantomData }
    }

    /// Queues the answer without waiting: what is sent afterwards arrives afterwards.
    pub fn send(self, mut answer: Result<M::Response, WireError>) {
        let ReplyTo { slot, id, is_experimental } = self.to;
        // Borrowed: a long answer takes a while to drop, and is on its way by then.
        let line = match &mut answer {
            Ok(response) => {
                if !is_experimental {
                    response.strip_experimental();
                }
                rpc::response(&id, response).unwrap_or_else(|error| {
                    tracing::error!(method = M::METHOD, %error, "an answer is lost");
                    WireError::unanswered().to_line(&id)
                })
            }
            Err(error) => error.to_line(&id),
        };
        let sent =
            if ANSWERED_IN_ORDER.contains(&M::METHOD) { slot.reply(line) } else { slot.reply_now(line) };
        if sent.is_err() {
            tracing::debug!(method = M::METHOD, "the caller did not wait for its answer");
        }
    }

    /// Waits until answers that were not read leave room: for a large one, before it is made.
    pub async fn room(&self) {
        self.to.slot.room().await;
    }
}
