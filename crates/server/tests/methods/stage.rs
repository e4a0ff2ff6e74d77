//! What a test plays on: a home folder, a scripted model behind a loopback port, and servers one after the other.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model_http::Script;
use oarlock_server::{
    App, Hub, HubAudience, Listen, Listener, Pipes, ServerOptions, Signals, routes, serve_listener,
    serve_pipes,
};
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Env, Home, Loader, LoaderOptions, Startup};
use runtime::{Catalogue, Clock, Runtime, RuntimeOptions, Stamp, StoreOptions, SystemClock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::Client;

/// A secret in the environment of every server. Nobody may ever be told it.
pub(crate) const PLANTED: &str = "planted-secret-7f3a";

/// A step of the model that begins a message and never ends it.
pub(crate) fn endless(text: &str) -> Value {
    let item =
        json!({"type": "message", "id": "m1", "role": "assistant", "status": "in_progress", "content": []});
    let place = json!({"item_id": "m1", "output_index": 0, "content_index": 0});
    let mut delta = json!({"type": "response.output_text.delta", "delta": text});
    delta.as_object_mut().expect("an object").extend(place.as_object().expect("an object").clone());
    let events = json!([
        {"type": "response.created", "response": {"id": "r1"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        delta,
    ]);
    json!({"events": events, "hang": true})
}

/// The real clock, until a test sets it or breaks it.
#[derive(Debug, Default)]
pub(crate) struct TestClock {
    fixed_ms: AtomicI64,
    breaks: AtomicBool,
}

impl TestClock {
    pub(crate) fn set(&self, now_ms: i64) {
        self.fixed_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Whoever looks next panics; after that all is well again.
    pub(crate) fn break_once(&self) {
        self.breaks.store(true, Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn stamp(&self) -> Stamp {
        assert!(!self.breaks.swap(false, Ordering::SeqCst), "the test broke the clock");
        let stamp = SystemClock.stamp();
        match self.fixed_ms.load(Ordering::SeqCst) {
            0 => stamp,
            now_ms => Stamp { now_ms, ..stamp },
        }
    }
}

pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) model: Script,
    pub(crate) clock: Arc<TestClock>,
    source: Mutex<SessionSource>,
    port: u16,
    serving_model: JoinHandle<std::io::Result<()>>,
}

impl Stage {
    /// With the steps of a model.
    pub(crate) async fn new(steps: Value) -> Self {
        Self::configured(steps, "").await
    }

    /// With more top-level keys in the user's configuration.
    pub(crate) async fn configured(steps: Value, keys: &str) -> Self {
        let model = Script::from_json(&steps.to_string()).expect("a script");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving_model = tokio::spawn(model_http::serve(listener, Arc::new(model.clone())));
        let stage = Self {
            folder: TempDir::new().expect("a folder"),
            model,
            clock: Arc::default(),
            source: Mutex::new(SessionSource::Vscode),
            port,
            serving_model,
        };
        std::fs::create_dir(stage.cwd()).expect("a folder");
        std::fs::create_dir(stage.home()).expect("a folder");
        stage.configure(keys);
        stage
    }

    /// Writes the user's configuration anew, with more top-level keys.
    pub(crate) fn configure(&self, keys: &str) {
        self.configure_port(self.port, keys);
    }

    /// As [`Stage::configure`], with the model behind another port.
    pub(crate) fn configure_port(&self, port: u16, keys: &str) {
        let model = if keys.contains("model =") { "" } else { "model = \"mock-model\"\n" };
        let provider = |name: &str, retries: u32| {
            format!(
                "[model_providers.{name}]\nname = \"{name}\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\n\
                 request_max_retries = 0\nstream_max_retries = {retries}\n"
            )
        };
        let chosen = if keys.contains("model_provider =") { "" } else { "model_provider = \"mock\"\n" };
        let providers = [provider("mock", 0), provider("other", 0), provider("patient", 1)].concat();
        let text = format!("{model}{chosen}{keys}\n{providers}");
        std::fs::write(self.home().join("config.toml"), text).expect("a file");
    }

    /// Writes a file of the machine's: `system.toml` is below the user's, `managed.toml` above, and
    /// `requirements.toml` limits them all.
    pub(crate) fn write_machine(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A folder to work in.
    pub(crate) fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Says what threads of the next server are started by.
    pub(crate) fn set_source(&self, source: SessionSource) {
        *self.source.lock().expect("not poisoned") = source;
    }

    /// A server with one client that has the experimental capability.
    pub(crate) async fn open(&self) -> (Server, Client) {
        let (server, mut client) = self.open_raw(None);
        client.initialize(json!({"experimentalApi": true})).await;
        (server, client)
    }

    /// A server with one client that has said nothing yet.
    pub(crate) fn open_raw(&self, originator: Option<&str>) -> (Server, Client) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let ((input, output), (from, to)) = (tokio::io::split(far), tokio::io::split(near));
        let (mut options, parts) = self.parts(Listen::Stdio);
        options.originator = originator.map(str::to_owned);
        let server = Server::run(None, |signals| {
            let (hub, app) = parts.wire();
            serve_pipes(options, app, hub, routes(), signals, Pipes { input, output })
        });
        (server, Client::new(from, to))
    }

    /// A server that several clients can connect to.
    pub(crate) fn listen(&self) -> Server {
        self.listen_with(|_| ())
    }

    /// As [`Stage::listen`], with other options.
    pub(crate) fn listen_with(&self, change: impl FnOnce(&mut ServerOptions)) -> Server {
        let socket = self.folder.path().join("socket");
        let listen = Listen::Unix(socket.clone());
        let (mut options, parts) = self.parts(listen.clone());
        change(&mut options);
        Server::run(Some(socket), |signals| async move {
            let (hub, app) = parts.wire();
            let listener = Listener::bind(&listen).await.expect("a socket");
            serve_listener(options, app, hub, routes(), signals, listener).await
        })
    }

    /// A server that several clients can connect to over websockets, and where.
    pub(crate) async fn listen_for_websockets(&self) -> (Server, SocketAddr) {
        let listen = Listen::Ws(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (options, parts) = self.parts(listen.clone());
        let (told, address) = oneshot::channel();
        let server = Server::run(None, |signals| async move {
            let (hub, app) = parts.wire();
            let listener = Listener::bind(&listen).await.expect("a port");
            told.send(listener.address().expect("an address")).expect("somebody waits");
            serve_listener(options, app, hub, routes(), signals, listener).await
        });
        (server, address.await.expect("an address"))
    }

    fn parts(&self, listen: Listen) -> (ServerOptions, Parts) {
        let environment = Env::fixed([
            ("HOME", self.folder.path().as_os_str()),
            ("SOME_API_KEY", PLANTED.as_ref()),
            ("SOME_TOKEN", PLANTED.as_ref()),
        ]);
        let machine = |name: &str| Some(self.folder.path().join(name)).filter(|file| file.exists());
        let options = LoaderOptions {
            system_file: machine("system.toml"),
            managed_file: machine("managed.toml"),
            requirements_file: machine("requirements.toml"),
            environment,
        };
        let loader = Loader::new(Home::at(self.home()), Vec::new(), options);
        let Startup { warnings, .. } = loader.startup(None);
        let home = AbsolutePath::new(self.home().to_string_lossy()).expect("absolute");
        let mut options = ServerOptions::new(listen, home);
        options.originator = None;
        options.config_warnings = warnings.into_iter().map(Into::into).collect();
        let source = self.source.lock().expect("not poisoned").clone();
        (options, Parts { loader, clock: self.clock.clone(), source })
    }

    /// A stored thread, as a server of its own reads it.
    pub(crate) async fn read(&self, thread: &str) -> Value {
        let (server, mut client) = self.open().await;
        let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
        server.stop().await;
        read["thread"].clone()
    }

    /// Every step was taken and every request fitted.
    pub(crate) fn assert_played(&self) {
        if let Err(leftover) = self.model.finish() {
            panic!("{leftover}");
        }
    }

    /// The requests the model got, as JSON.
    pub(crate) fn asked(&self) -> Vec<Value> {
        let bodies = self.model.requests();
        bodies.iter().map(|body| serde_json::to_value(body).expect("JSON")).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.serving_model.abort();
    }
}

/// What the application is made of, to be put together on the server's own threads.
struct Parts {
    loader: Loader,
    clock: Arc<TestClock>,
    source: SessionSource,
}

impl Parts {
    fn wire(self) -> (Arc<Hub>, Arc<App>) {
        let hub = Hub::new();
        let runtime = Runtime::new(RuntimeOptions {
            loader: self.loader,
            audience: Arc::new(HubAudience(hub.clone())),
            clock: self.clock,
            catalogue: Catalogue::bundled(),
            source: self.source,
            version: "1.2.3".to_owned(),
            store: StoreOptions::default(),
        });
        (hub.clone(), Arc::new(App::new(hub, runtime)))
    }
}

/// A server on threads of its own, so that all of it can be stopped in the middle.
pub(crate) struct Server {
    threads: Option<tokio::runtime::Runtime>,
    serving: Option<JoinHandle<oarlock_server::ExitReason>>,
    stop: mpsc::Sender<()>,
    socket: Option<PathBuf>,
}

impl Server {
    fn run<F>(socket: Option<PathBuf>, serve: impl FnOnce(Signals) -> F + Send + 'static) -> Self
    where
        F: Future<Output = oarlock_server::ExitReason> + Send + 'static,
    {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let threads = builder.worker_threads(1).enable_all().build().expect("threads");
        let (stop, requests) = mpsc::channel(2);
        let signals = Signals::manual(requests);
        let serving = threads.spawn(async move { serve(signals).await });
        Self { threads: Some(threads), serving: Some(serving), stop, socket }
    }

    /// One more client, which has said nothing yet.
    pub(crate) async fn connect_raw(&self) -> Client {
        let socket = self.socket.as_deref().expect("a server that listens");
        let (input, output) = connect(socket).await.into_split();
        Client::new(input, output)
    }

    /// One more client with these capabilities.
    pub(crate) async fn connect_with(&self, capabilities: Value) -> Client {
        let mut client = self.connect_raw().await;
        client.initialize(capabilities).await;
        client
    }

    pub(crate) async fn connect(&self) -> Client {
        self.connect_with(json!({"experimentalApi": true})).await
    }

    /// Ends as by a signal, in good order.
    pub(crate) async fn stop(mut self) {
        self.stop.send(()).await.expect("it runs");
        let serving = self.serving.take().expect("it runs");
        tokio::time::timeout(Duration::from_secs(20), serving).await.expect("in time").expect("no panic");
    }

    /// Ends as by a power cut: no task gets to say or write anything more.
    pub(crate) async fn kill(mut self) {
        let threads = self.threads.take().expect("it runs");
        let cut = move || threads.shutdown_timeout(Duration::from_secs(20));
        tokio::task::spawn_blocking(cut).await.expect("no panic");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// The socket is there a moment after the server was started.
async fn connect(socket: &Path) -> UnixStream {
    let trying = async {
        loop {
            match UnixStream::connect(socket).await {
                Ok(stream) => return stream,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), trying).await.expect("a socket in time")
}
