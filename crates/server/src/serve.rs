//! From options to an end: opening the port, serving, and stopping in good order.

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
use crate::serve_error::ServeError;
use crate::server::{ConnectionEnd, ServerState};
use crate::signals::StopSignals;
use crate::transport::{Listen, Stdin};

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
    if let Listen::Ws(address) = options.listen
        && is_exposed(address, &options.auth)
        && !options.allow_unauthenticated
    {
        return Err(ServeError::Exposed(address));
    }
    let listener = ServerListener::bind(&options.listen).await?;
    listener.announce(&options.auth);
    Ok(serve_listener(options, app, hub, router, signals, listener).await)
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
        tracing::info!("stopping as soon as no turn runs");
        tokio::select! {
            () = &mut serving => {}
            () = shared.app.idle() => {}
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
