//! The server as a value: what all connections share, and the loops over them.

use std::sync::Arc;

use rpc::{FrameLimits, FrameReader, Outbox, drain};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use crate::application::ServerApplication;
use crate::handshake::Greeting;
use crate::hub::{ConnectionIdentity, Hub, WhenFull};
use crate::lanes::RequestLanes;
use crate::options::ServerOptions;
use crate::router::Router;
use crate::session::ConnectionSession;
use transport::Newcomers;

pub(crate) struct ServerState<A> {
    pub(crate) options: ServerOptions,
    pub(crate) app: Arc<A>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) router: Router<A>,
    pub(crate) greeting: Greeting,
    pub(crate) lanes: Arc<RequestLanes>,
    /// Requests that may still be accepted, of all connections.
    pub(crate) requests: Arc<Semaphore>,
    /// Connections that have not sent `initialize`.
    uninitialized: Arc<Newcomers>,
}

impl<A: ServerApplication> ServerState<A> {
    pub(crate) fn new(options: ServerOptions, app: Arc<A>, hub: Arc<Hub>, router: Router<A>) -> Arc<Self> {
        let greeting = Greeting::new(&options);
        let requests = Arc::new(Semaphore::new(options.max_requests.min(Semaphore::MAX_PERMITS)));
        let uninitialized = Newcomers::new(options.max_uninitialized);
        Arc::new(Self { options, app, hub, router, greeting, lanes: Arc::default(), requests, uninitialized })
    }

    /// Serves one client that speaks in lines, until it ends, is disconnected, or `stop` ends.
    pub(crate) async fn lines(
        self: Arc<Self>,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        when_full: WhenFull,
        stop: impl Future<Output = ()>,
    ) -> ConnectionEnd {
        self.lines_of(ConnectionIdentity::local(), input, output, when_full, stop).await
    }

    /// As `lines`, for a client that somebody else knows.
    pub(crate) async fn lines_of(
        self: Arc<Self>,
        identity: ConnectionIdentity,
        input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send + 'static,
        when_full: WhenFull,
        stop: impl Future<Output = ()>,
    ) -> ConnectionEnd {
        let (outbox, backlog) = Outbox::open(self.options.outbox);
        let connection = self.hub.connect(outbox, when_full, identity);
        let mut session = ConnectionSession::new(self.clone(), connection.clone());
        let mut writer = tokio::spawn(drain(backlog, output));
        // The process at the other end of standard input has started this one, and may send what it likes.
        let is_guarded = when_full == WhenFull::Disconnect;
        let ending = tokio::select! {
            ending = self.read_all(input, &mut session, is_guarded) => ending,
            () = connection.kicked() => ConnectionEnd::Disconnected,
            _ = &mut writer => ConnectionEnd::Disconnected,
            () = stop => ConnectionEnd::Stopped,
        };
        let grace = match ending {
            ConnectionEnd::EndOfInput => self.options.grace,
            ConnectionEnd::Stopped => self.options.grace_after_signal,
            ConnectionEnd::Disconnected => std::time::Duration::ZERO,
        };
        let abort = writer.abort_handle();
        let written = async {
            if !writer.is_finished() {
                let _ = writer.await;
            }
        };
        session.end(written, grace).await;
        abort.abort();
        ending
    }

    async fn read_all(
        &self,
        input: impl AsyncRead + Unpin,
        session: &mut ConnectionSession<A>,
        is_guarded: bool,
    ) -> ConnectionEnd {
        let limits = FrameLimits { max_frame_bytes: self.options.max_line_bytes };
        let mut reader = FrameReader::new(input, limits);
        if is_guarded {
            reader.set_limit(self.options.max_first_bytes.min(limits.max_frame_bytes));
            match self.first_words(read_lines(&mut reader, session, Until::Initialized)).await {
                None => return ConnectionEnd::Disconnected,
                Some(ReadEnd::EndOfInput) => return ConnectionEnd::EndOfInput,
                Some(ReadEnd::Initialized) => reader.set_limit(limits.max_frame_bytes),
            }
        }
        read_lines(&mut reader, session, Until::End).await;
        ConnectionEnd::EndOfInput
    }

    /// Runs what waits for `initialize`. `None` when that took too long, or when too many others came after it.
    pub(crate) async fn first_words<T>(&self, reading: impl Future<Output = T>) -> Option<T> {
        let mut newcomer = self.uninitialized.enter();
        tokio::select! {
            read = reading => Some(read),
            () = newcomer.dropped() => {
                tracing::warn!("a connection was closed for another one: it has not sent `initialize`");
                None
            }
            () = tokio::time::sleep(self.options.initialize_within) => {
                tracing::info!("a connection was closed: it has not sent `initialize` in time");
                None
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Initialized,
    End,
}

enum ReadEnd {
    Initialized,
    EndOfInput,
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    EndOfInput,
    /// It did not read, or could not be written to.
    Disconnected,
    Stopped,
}

async fn read_lines<A: ServerApplication>(
    reader: &mut FrameReader<impl AsyncRead + Unpin>,
    session: &mut ConnectionSession<A>,
    until: Until,
) -> ReadEnd {
    while let Some(frame) = reader.next().await {
        let taken = match frame.map_err(rpc::FrameError::into_bad_message) {
            Ok(frame) => session.take(frame).await,
            Err(Ok(bad)) => session.refuse(&bad).await,
            Err(Err(error)) => {
                tracing::warn!(%error, "reading failed");
                break;
            }
        };
        if taken.is_err() {
            break;
        }
        if until == Until::Initialized && session.is_initialized() {
            return ReadEnd::Initialized;
        }
    }
    ReadEnd::EndOfInput
}
