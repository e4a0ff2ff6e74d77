//! Messages of a host about the requests it carries.

use std::sync::Arc;

use protocol::{
    ModelRequestId, ModelRequestRejectedParams, ModelStreamAbortedParams, ModelStreamEventParams,
    ModelStreamEventResponse, ThreadId,
};

use super::Delegation;
use super::error::DelegationError;
use super::failure;
use super::host::HostId;
use super::stream::Stream;
use support::Responder;

impl Delegation {
    /// Takes a batch of events. Responds before the turn gets any of them, and later when there is no credit to grant.
    pub fn stream_event(
        &self,
        from: HostId,
        thread: &ThreadId,
        params: &ModelStreamEventParams,
        responder: Responder<ModelStreamEventResponse, DelegationError>,
    ) {
        match self.delegated(from, thread, &params.model_request_id) {
            Ok((stream, is_newest)) => {
                let id = params.model_request_id.clone();
                let responder = Responder::new(move |taken: Result<_, DelegationError>| {
                    let stale = |error| match error {
                        DelegationError::StreamClosed { .. } if !is_newest => {
                            DelegationError::StaleRequest(id)
                        }
                        error => error,
                    };
                    responder.respond(taken.map_err(stale));
                });
                stream.take(params.seq, &params.events, responder);
            }
            Err(error) => responder.respond(Err(error)),
        }
    }

    /// Like [`Delegation::stream_event`], for a host that wants no responses.
    pub fn stream_event_unacknowledged(
        &self,
        from: HostId,
        thread: &ThreadId,
        params: &ModelStreamEventParams,
    ) -> Result<(), DelegationError> {
        let (stream, _) = self.delegated(from, thread, &params.model_request_id)?;
        stream.hear(params.seq, &params.events)
    }

    /// A stream ended without a terminal event. No effect on a stream that has ended.
    pub fn stream_aborted(
        &self,
        from: HostId,
        thread: &ThreadId,
        params: &ModelStreamAbortedParams,
    ) -> Result<(), DelegationError> {
        let (stream, _) = self.delegated(from, thread, &params.model_request_id)?;
        stream.end(failure::of_abort(params));
        Ok(())
    }

    /// The host reports late that it does not carry a request. No effect on a stream that has ended.
    pub fn request_rejected(
        &self,
        from: HostId,
        thread: &ThreadId,
        params: &ModelRequestRejectedParams,
    ) -> Result<(), DelegationError> {
        let (stream, _) = self.delegated(from, thread, &params.model_request_id)?;
        stream.end(failure::of_error(&params.error));
        Ok(())
    }

    fn delegated(
        &self,
        from: HostId,
        thread: &ThreadId,
        request: &ModelRequestId,
    ) -> Result<(Arc<Stream>, bool), DelegationError> {
        let unknown = || DelegationError::UnknownRequest(request.clone());
        let session = self.session(thread).ok_or_else(unknown)?;
        session.stream(from, request)
    }
}
