//! Messages of clients about the model requests that they carry.

use protocol::{
    ModelRequestId, ModelRequestRejectedParams, ModelStreamAbortedParams, ModelStreamEventParams,
    StreamAbortReason, ThreadId,
};
use task::{BatchResponder, ClientStreamError, StreamAbort, StreamBreak};

use crate::task_host::TaskHost;

impl TaskHost {
    /// Events of a client that carries a request. Acknowledged late when there is no credit to give.
    pub fn stream_event(&self, connection: u64, params: ModelStreamEventParams, responder: BatchResponder) {
        match self.shared.streams.find(connection, &params.thread_id, &params.model_request_id) {
            Ok(stream) => {
                stream.change(|stream| stream.take(params.seq, params.events, responder));
            }
            Err(error) => responder(Err(error)),
        }
    }

    /// As [`TaskHost::stream_event`], from a client that wants no answers.
    pub fn stream_event_unacknowledged(
        &self,
        connection: u64,
        params: ModelStreamEventParams,
    ) -> Result<(), ClientStreamError> {
        let stream = self.shared.streams.find(connection, &params.thread_id, &params.model_request_id)?;
        stream.change(|stream| stream.hear(params.seq, params.events))
    }

    /// The client ends a stream without a terminal event. One that is over stays as it is.
    pub fn stream_aborted(
        &self,
        connection: u64,
        params: ModelStreamAbortedParams,
    ) -> Result<(), ClientStreamError> {
        let ModelStreamAbortedParams {
            thread_id, model_request_id, reason, error, usage, replay_safe, ..
        } = params;
        let broken = match reason {
            // The task outlives its clients: it waits for the next one.
            StreamAbortReason::HostShutdown => StreamBreak::plain(StreamAbortReason::Disconnected, true),
            reason => StreamBreak::Aborted(StreamAbort { reason, error, usage, replay_safe }),
        };
        self.break_stream(connection, &thread_id, &model_request_id, broken)
    }

    /// The client found out late that it does not carry a request.
    pub fn request_rejected(
        &self,
        connection: u64,
        params: ModelRequestRejectedParams,
    ) -> Result<(), ClientStreamError> {
        let ModelRequestRejectedParams { thread_id, model_request_id, error } = params;
        self.break_stream(connection, &thread_id, &model_request_id, StreamBreak::Rejected(error))
    }

    fn break_stream(
        &self,
        connection: u64,
        thread: &ThreadId,
        request: &ModelRequestId,
        broken: StreamBreak,
    ) -> Result<(), ClientStreamError> {
        match self.shared.streams.find(connection, thread, request) {
            Ok(stream) => stream.end(broken),
            // The answer to a cancellation.
            Err(ClientStreamError::StaleRequest(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The connection ended, and every stream of it.
    pub fn carrier_left(&self, connection: u64) {
        self.shared.streams.disconnect(connection);
    }
}
