//! Shared state of the tests' handlers, and servers to run them in.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use oarlock_server::{
    ClientRole, ConnectionId, ExitReason, Hub, Listen, MethodReply, Pipes, Requester, Router, ServeError,
    ServerApplication, ServerListener, ServerOptions, StopSignals, WireError, serve, serve_listener,
    serve_pipes,
};
use protocol::{
    AbsolutePath, AgentMessageDeltaNotification, DelegationProgress, DelegationProgressNotification,
    GitDiffToRemote, GitDiffToRemoteParams, HostDelegationAgreed, InitializeParams, LogoutAccount,
    LogoutAccountResponse, MockExperimentalMethod, MockExperimentalMethodParams,
    MockExperimentalMethodResponse, NoParams, ServerCapabilities, ServerNotification, ThreadArchive,
    ThreadArchiveParams, ThreadArchiveResponse, ThreadCompactStart, ThreadCompactStartParams,
    ThreadCompactStartResponse, ThreadId, ThreadLoadedList, ThreadLoadedListParams, ThreadLoadedListResponse,
    ThreadSetName, ThreadSetNameParams, ThreadSetNameResponse, ThreadUnsubscribe, ThreadUnsubscribeParams,
    ThreadUnsubscribeResponse, ThreadUnsubscribeStatus, TurnStart, TurnStartParams, TurnStartResponse,
};
use runtime::OwnListeners;
use serde_json::{Value, json};
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use crate::client::{Lines, Peer};

#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) hub: Arc<Hub>,
    log: Mutex<Vec<String>>,
    listeners: Mutex<OwnListeners>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
    pub(crate) idle: Semaphore,
    /// Shutting down waits for it.
    pub(crate) may_shut_down: Semaphore,
    pub(crate) is_shut_down: AtomicBool,
    pub(crate) gone: mpsc::UnboundedSender<ConnectionId>,
}

impl TestApp {
    pub(crate) fn note(&self, text: String) {
        self.log.lock().unwrap().push(text);
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn listeners(&self) -> OwnListeners {
        self.listeners.lock().unwrap().clone()
    }

    fn gate(&self, name: &str) -> Arc<Semaphore> {
        self.gates
            .lock()
            .unwrap()
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(0)))
            .clone()
    }

    /// Lets the handler of a `thread/name/set` with this name go on.
    pub(crate) fn release(&self, name: &str) {
        self.gate(name).add_permits(1);
    }
}

impl ServerApplication for TestApp {
    fn negotiate(
        &self,
        params: &InitializeParams,
        _: ClientRole,
    ) -> Result<Option<ServerCapabilities>, WireError> {
        let offer = params.capabilities.as_ref().and_then(|wanted| wanted.host_delegation.as_ref());
        let Some(offer) = offer else { return Ok(None) };
        if !offer.versions.contains(&1) {
            return Err(WireError::invalid_params("no version in common"));
        }
        let features = offer.features.clone();
        let agreed = HostDelegationAgreed { version: 1, features, runtime_instance_id: "this".to_owned() };
        Ok(Some(ServerCapabilities { host_delegation: Some(agreed), host: None }))
    }

    fn listens(&self, listeners: OwnListeners) {
        *self.listeners.lock().unwrap() = listeners;
    }

    async fn disconnected(&self, connection: ConnectionId) {
        let _ = self.gone.send(connection);
    }

    async fn drain(&self, _: std::time::Duration) {
        self.idle.acquire().await.unwrap().forget();
    }

    async fn shutdown(&self) {
        self.may_shut_down.acquire().await.unwrap().forget();
        self.is_shut_down.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn router() -> Router<TestApp> {
    Router::new()
        .on(ThreadLoadedList, loaded)
        .on(MockExperimentalMethod, echo)
        .on(LogoutAccount, logout)
        .on(ThreadSetName, name)
        .on(TurnStart, turn)
        .on(ThreadArchive, panicking)
        .on(ThreadUnsubscribe, leave)
        .deferred(ThreadCompactStart, join)
        .deferred(GitDiffToRemote, forget_to_answer)
        .hear(DelegationProgress, |_| None, progress)
}

async fn loaded(
    _: Arc<TestApp>,
    _: Requester,
    _: ThreadLoadedListParams,
) -> Result<ThreadLoadedListResponse, WireError> {
    Ok(ThreadLoadedListResponse { data: Vec::new(), next_cursor: None })
}

async fn echo(
    _: Arc<TestApp>,
    _: Requester,
    params: MockExperimentalMethodParams,
) -> Result<MockExperimentalMethodResponse, WireError> {
    Ok(MockExperimentalMethodResponse { echoed: params.value })
}

async fn logout(_: Arc<TestApp>, _: Requester, _: NoParams) -> Result<LogoutAccountResponse, WireError> {
    Ok(LogoutAccountResponse {})
}

/// A name that begins with `wait` waits for its release.
async fn name(
    app: Arc<TestApp>,
    _: Requester,
    params: ThreadSetNameParams,
) -> Result<ThreadSetNameResponse, WireError> {
    let name = params.name;
    app.note(format!("start {name}"));
    if name.starts_with("wait") {
        app.gate(&name).acquire().await.unwrap().forget();
    }
    app.note(format!("end {name}"));
    Ok(ThreadSetNameResponse {})
}

async fn turn(_: Arc<TestApp>, _: Requester, _: TurnStartParams) -> Result<TurnStartResponse, WireError> {
    Err(WireError::invalid_params("reached").with_data(json!({"reached": true})))
}

async fn panicking(
    _: Arc<TestApp>,
    _: Requester,
    params: ThreadArchiveParams,
) -> Result<ThreadArchiveResponse, WireError> {
    panic!("a defect in the handler for {}", params.thread_id)
}

/// Says something about the thread, then answers: the answer must come behind.
async fn leave(
    app: Arc<TestApp>,
    caller: Requester,
    params: ThreadUnsubscribeParams,
) -> Result<ThreadUnsubscribeResponse, WireError> {
    app.hub.notify_thread(&params.thread_id, delta(&params.thread_id, "last words")).await;
    app.hub.leave(&params.thread_id, caller.id());
    Ok(ThreadUnsubscribeResponse { status: ThreadUnsubscribeStatus::Unsubscribed })
}

async fn join(
    app: Arc<TestApp>,
    caller: Requester,
    params: ThreadCompactStartParams,
    reply: MethodReply<ThreadCompactStart>,
) {
    reply.send(Ok(ThreadCompactStartResponse {}));
    app.hub.join(&params.thread_id, caller.id()).await;
}

async fn forget_to_answer(
    _: Arc<TestApp>,
    _: Requester,
    _: GitDiffToRemoteParams,
    reply: MethodReply<GitDiffToRemote>,
) {
    drop(reply);
}

async fn progress(app: Arc<TestApp>, _: Requester, params: DelegationProgressNotification) {
    app.note(format!("heard {}", params.message.unwrap_or_default()));
}

pub(crate) fn delta(thread: &ThreadId, text: &str) -> ServerNotification {
    ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
        thread_id: thread.clone(),
        turn_id: "turn".into(),
        item_id: "item".into(),
        delta: text.to_owned(),
    })
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) app: Arc<TestApp>,
    pub(crate) gone: mpsc::UnboundedReceiver<ConnectionId>,
    pub(crate) signals: mpsc::Sender<()>,
    pub(crate) ended: JoinHandle<ExitReason>,
    pub(crate) address: Option<SocketAddr>,
}

impl Running {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address.unwrap()
    }
}

pub(crate) fn options(listen: Listen) -> ServerOptions {
    let mut options = ServerOptions::new(listen, AbsolutePath::new("/folder/of/oarlock").unwrap());
    options.originator = None;
    options
}

fn test_app() -> (Arc<TestApp>, mpsc::UnboundedReceiver<ConnectionId>) {
    let (gone, left) = mpsc::unbounded_channel();
    let app = TestApp {
        hub: Hub::new(),
        log: Mutex::default(),
        listeners: Mutex::default(),
        gates: Mutex::default(),
        idle: Semaphore::new(0),
        may_shut_down: Semaphore::new(1),
        is_shut_down: AtomicBool::new(false),
        gone,
    };
    (Arc::new(app), left)
}

/// One client over two pipes, as over standard input and output.
pub(crate) fn over_pipes(change: impl FnOnce(&mut ServerOptions)) -> (Lines, Running) {
    let mut options = options(Listen::Stdio);
    change(&mut options);
    let (app, gone) = test_app();
    let (to_server, input) = pipe::pipe().unwrap();
    let (output, from_server) = pipe::pipe().unwrap();
    let (signals, requests) = mpsc::channel(4);
    let serving = serve_pipes(
        options,
        app.clone(),
        app.hub.clone(),
        router(),
        StopSignals::manual(requests),
        Pipes { input, output },
    );
    let ended = tokio::spawn(serving);
    (Lines::new(from_server, to_server), Running { app, gone, signals, ended, address: None })
}

pub(crate) async fn over(listen: Listen, change: impl FnOnce(&mut ServerOptions)) -> Running {
    let mut options = options(listen);
    change(&mut options);
    let (app, gone) = test_app();
    let listener = ServerListener::bind(&options.listen).await.unwrap();
    let address = listener.address();
    let (signals, requests) = mpsc::channel(4);
    let serving = serve_listener(
        options,
        app.clone(),
        app.hub.clone(),
        router(),
        StopSignals::manual(requests),
        listener,
    );
    Running { gone, signals, ended: tokio::spawn(serving), address, app }
}

/// Why the server does not start there.
pub(crate) async fn refused_to_serve(listen: Listen) -> ServeError {
    let (app, _gone) = test_app();
    let (_signals, requests) = mpsc::channel(1);
    let hub = app.hub.clone();
    serve(options(listen), app, hub, router(), StopSignals::manual(requests)).await.unwrap_err()
}

pub(crate) async fn over_unix(path: &Path) -> Running {
    over(Listen::Unix(path.to_owned()), |_| {}).await
}

pub(crate) async fn over_websockets(change: impl FnOnce(&mut ServerOptions)) -> Running {
    over(Listen::parse("ws://127.0.0.1:0").unwrap(), change).await
}

/// A server with clients that are initialized with these capabilities.
pub(crate) async fn clients<const N: usize>(
    capabilities: [Value; N],
) -> (tempfile::TempDir, Running, [Lines; N]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let server = over_unix(&path).await;
    let mut clients = Vec::new();
    for capabilities in capabilities {
        let mut client = Lines::connect(&path).await;
        client.initialize(capabilities).await;
        // Initialized counts when the next request is answered.
        client.call(1, "thread/loaded/list", json!({})).await;
        clients.push(client);
    }
    (folder, server, clients.try_into().unwrap_or_else(|_| panic!("as many clients")))
}
