//! From options to an end: opening the port, serving, and stopping in good order.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::application::ServerApplication;
use crate::hub::{Hub, WhenFull};
use crate::listener::{ServerListener, accept, is_exposed};
use crate::options::ServerOptions;
use crate::router::Router;
use crate::server::{ConnectionEnd, ServerState};
use crate::signals::StopSignals;
use transport::ServeError;
use transport::{Listen, Stdin};

/// How long turns may take to be suspended, once the time to end by themselves is over.
const DRAIN_SLACK: Duration = Duration::from_secs(3);

/// Why the server stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// The only client left.
    EndOfInput,
    /// A signal asked, and every thread was shut down.
    Stopped,
    /// A second signal insisted; threads were not shut down.
    Forced,
}

/// Serves until the client leaves or a signal comes. Standard output carries the protocol and nothing else. The caller
/// ends the process afterwards without waiting for what may still be written to a client that does not read.
pub async fn serve<A: ServerApplication>(
    options: ServerOptions,
    app: Arc<A>,
    hub: Arc<Hub>,
    router: Router<A>,
    signals: StopSignals,
) -> Result<ExitReason, ServeError> {
    if options.listen == Listen::Stdio {
        let input = Stdin::open().map_err(ServeError::Stdin)?;
        let client = Pipes { input, output: tokio::io::stdout() };
        return Ok(serve_pipes(options, app, hub, router, signals, client).await);
    }
    let listener = open_listener(&options, None).await?;
    listener.announce(&options.auth);
    Ok(serve_listener(options, app, hub, router, signals, listener).await)
}

/// Opens what the options name, or takes over `inherited`. Whoever serves it announces it first.
pub async fn open_listener(
    options: &ServerOptions,
    inherited: Option<OwnedFd>,
) -> Result<ServerListener, ServeError> {
    let check = |address: SocketAddr| match is_exposed(address, &options.auth) {
        true if !options.allow_unauthenticated => Err(ServeError::Exposed(address)),
        _ => Ok(()),
    };
    let listener = match (inherited, &options.listen) {
        (Some(socket), _) => ServerListener::adopt(socket)?,
        (None, Listen::Ws(address)) => {
            check(*address)?;
            ServerListener::bind(&options.listen).await?
        }
        (None, listen) => ServerListener::bind(listen).await?,
    };
    listener.address().map_or(Ok(()), check)?;
    Ok(listener)
}

/// The two directions of a client that is connected already.
#[derive(Debug)]
pub struct Pipes<R, W> {
    pub input: R,
    pub output: W,
}

/// Serves one client over a pair of streams, as over standard input and output.
pub async fn serve_pipes<A: ServerApplication>(
    options: ServerOptions,
    app: Arc<A>,
    hub: Arc<Hub>,
    router: Router<A>,
    mut signals: StopSignals,
    client: Pipes<impl AsyncRead + Unpin, impl AsyncWrite + Unpin + Send + 'static>,
) -> ExitReason {
    let shared = ServerState::new(options, app, hub, router);
    let stop = signals.next();
    let ending = shared.clone().lines(client.input, client.output, WhenFull::Wait, stop).await;
    let ending = match ending {
        ConnectionEnd::EndOfInput | ConnectionEnd::Disconnected if shared.options.stays_for_others => {
            tokio::select! {
                () = shared.hub.deserted() => ConnectionEnd::EndOfInput,
                () = signals.next() => ConnectionEnd::Stopped,
            }
        }
        ending => ending,
    };
    let (reason, grace) = match ending {
        ConnectionEnd::EndOfInput | ConnectionEnd::Disconnected => {
            (ExitReason::EndOfInput, shared.options.grace)
        }
        ConnectionEnd::Stopped => (ExitReason::Stopped, shared.options.grace_after_signal),
    };
    tokio::select! {
        () = shut_down(&*shared.app, grace) => reason,
        () = signals.next() => ExitReason::Forced,
    }
}

/// Serves whoever connects. The first signal lets turns finish, with everybody still served; the second does not.
pub async fn serve_listener<A: ServerApplication>(
    options: ServerOptions,
    app: Arc<A>,
    hub: Arc<Hub>,
    router: Router<A>,
    mut signals: StopSignals,
    listener: ServerListener,
) -> ExitReason {
    app.listens(listener.facts(&options.auth));
    let shared = ServerState::new(options, app, hub, router);
    let stop = watch::Sender::new(false);
    let mut clients = JoinSet::new();
    {
        let serving = accept(&shared, &listener, &stop, &mut clients);
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => {}
            () = unload_departed(&shared) => {}
            () = signals.next() => {}
        }
        shared.hub.stop();
        let limit = shared.options.drain_timeout;
        tracing::info!(limit = limit.as_secs(), "stopping as soon as no turn runs");
        let drained = timeout(limit + DRAIN_SLACK, shared.app.drain(limit));
        tokio::select! {
            () = &mut serving => {}
            drained = drained => {
                if drained.is_err() {
                    tracing::warn!(limit = limit.as_secs(), "some turns did not end in time");
                }
            }
            () = signals.next() => return ExitReason::Forced,
        }
    }
    drop(listener);
    stop.send_replace(true);
    let put_away = async {
        let grace = shared.options.grace;
        if timeout(grace, async { while clients.join_next().await.is_some() {} }).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
        shut_down(&*shared.app, grace).await;
    };
    tokio::select! {
        () = put_away => ExitReason::Stopped,
        () = signals.next() => ExitReason::Forced,
    }
}

/// Puts threads away whose clients are gone, for ever.
async fn unload_departed<A: ServerApplication>(shared: &Arc<ServerState<A>>) {
    let ServerOptions { unload_after, max_departed, .. } = shared.options;
    loop {
        for thread in shared.hub.departed(unload_after, max_departed).await {
            // Requests about it wait, so that a client that comes back finds it as it was or opens it anew.
            let mut place = shared.lanes.enter(thread.as_str());
            place.reached().await;
            shared.hub.take_departed(&thread);
            if !shared.app.unload_idle(thread.clone()).await {
                shared.hub.keep_departed(&thread);
            }
        }
    }
}

async fn shut_down(app: &impl ServerApplication, grace: Duration) {
    if timeout(grace, app.shutdown()).await.is_err() {
        tracing::error!("threads were left open: shutting them down took too long");
    }
}
