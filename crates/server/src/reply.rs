//! The answer to one request, typed.

use std::marker::PhantomData;

use protocol::{
    CommandExec, ExperimentalGate, FsUnwatch, FuzzyFileSearchSessionStop, RequestMethod, ThreadArchive,
    ThreadDelete, ThreadResume, ThreadRollback, ThreadUnsubscribe,
};
use rpc::{EncodeError, EncodedLine, ErrorObject, Id, ReplySlot};
use serde_json::value::RawValue;

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
    ThreadDelete::METHOD,
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

    /// Answers with what another replica answered.
    pub(crate) fn pass_on(self, method: &'static str, answer: &Result<Box<RawValue>, ErrorObject>) {
        let line = match answer {
            Ok(result) => rpc::response(&self.id, result),
            Err(error) => rpc::error(Some(&self.id), error.code, &error.message, &error.data),
        };
        self.queue(method, line);
    }

    /// Not generic: the program would have it once for every method.
    fn queue(self, method: &'static str, line: Result<EncodedLine, EncodeError>) {
        let line = line.unwrap_or_else(|error| {
            tracing::error!(method, %error, "an answer is lost");
            WireError::unanswered().to_line(&self.id)
        });
        let sent = match ANSWERED_IN_ORDER.contains(&method) {
            true => self.slot.reply(line),
            false => self.slot.reply_now(line),
        };
        if sent.is_err() {
            tracing::debug!(method, "the caller did not wait for its answer");
        }
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
        // Borrowed: a long answer takes a while to drop, and is on its way by then.
        let line = match &mut answer {
            Ok(response) => {
                if !self.to.is_experimental {
                    response.strip_experimental();
                }
                rpc::response(&self.to.id, response)
            }
            Err(error) => Ok(error.to_line(&self.to.id)),
        };
        self.to.queue(M::METHOD, line);
    }

    /// Waits until answers that were not read leave room: for a large one, before it is made.
    pub async fn room(&self) {
        self.to.slot.room().await;
    }
}
