//! What a host sends about the requests it carries.

use std::sync::Arc;

use protocol::{
    ModelRequestId, ModelRequestRejectedParams, ModelStreamAbortedParams, ModelStreamEventParams,
    ModelStreamEventResponse, ThreadId,
};

use super::error::DelegationError;
use super::failure;
use super::host::HostId;
use super::stream::Stream;
use crate::error::RuntimeError;
use crate::handle::Answer;
use crate::ids::check_thread_id;
use crate::runtime::Runtime;

impl Runtime {
    /// Takes a batch of events. The answer is given before the turn sees any of them, and late when there is no credit
    /// to give with it.
    pub fn stream_event(
        &self,
        from: HostId,
        params: &ModelStreamEventParams,
        answer: Answer<ModelStreamEventResponse>,
    ) {
        match self.delegated(from, &params.thread_id, &params.model_request_id) {
            Ok((stream, is_newest)) => {
                let id = params.model_request_id.clone();
                let answer = Answer::new(move |taken: Result<_, RuntimeError>| {
                    answer.give(taken.map_err(|error| match error {
                        RuntimeError::Delegation(DelegationError::StreamClosed { .. }) if !is_newest => {
                            DelegationError::StaleRequest(id).into()
                        }
                        error => error,
                    }));
                });
                stream.take(params.seq, &params.events, answer);
            }
            Err(error) => answer.give(Err(error)),
        }
    }

    /// As [`Runtime::stream_event`], from a host that wants no answers.
    pub fn stream_event_unacknowledged(
        &self,
        from: HostId,
        params: &ModelStreamEventParams,
    ) -> Result<(), RuntimeError> {
        let (stream, _) = self.delegated(from, &params.thread_id, &params.model_request_id)?;
        Ok(stream.hear(params.seq, &params.events)?)
    }

    /// A stream ended without a terminal event. One that has ended stays as it is.
    pub fn stream_aborted(
        &self,
        from: HostId,
        params: &ModelStreamAbortedParams,
    ) -> Result<(), RuntimeError> {
        let (stream, _) = self.delegated(from, &params.thread_id, &params.model_request_id)?;
        stream.end(failure::of_abort(params));
        Ok(())
    }

    /// The host found out late that it does not carry a request. One that has ended stays as it is.
    pub fn request_rejected(
        &self,
        from: HostId,
        params: &ModelRequestRejectedParams,
    ) -> Result<(), RuntimeError> {
        let (stream, _) = self.delegated(from, &params.thread_id, &params.model_request_id)?;
        stream.end(failure::of_error(&params.error));
        Ok(())
    }

    fn delegated(
        &self,
        from: HostId,
        thread: &ThreadId,
        request: &ModelRequestId,
    ) -> Result<(Arc<Stream>, bool), RuntimeError> {
        let thread = check_thread_id(thread)?;
        let unknown = || DelegationError::UnknownRequest(request.clone());
        let seat = self.inner.delegation.seat(&thread).ok_or_else(unknown)?;
        Ok(seat.stream(from, request)?)
    }
}
