//! The stage of a test: a home folder, a scripted model behind a loopback port, and servers one after another.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use model_http::ModelScript;
use parking_lot::Mutex;
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Env, Home, Loader, LoaderOptions, Startup};
use runtime::{Catalogue, Runtime, RuntimeOptions, StoreOptions};
use serde_json::{Value, json};
use server::{
    App, Hub, HubAudience, Listen, Pipes, ServerListener, ServerOptions, StopSignals, routes, serve_listener,
    serve_pipes,
};
use tempfile::TempDir;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::client::TestClient;
use crate::clock::TestClock;
use crate::deadline::{WAIT_LIMIT, within};
use crate::host::ScriptedHost;
use crate::redact::Redactor;

/// A secret in the environment of every server, which must never be exposed.
pub const PLANTED: &str = "planted-secret-7f3a";

/// A step of the model that starts a message and never ends it.
pub fn endless(text: &str) -> Value {
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

/// Everything a test of the whole server needs, isolated from this machine.
#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    pub model: ModelScript,
    pub clock: Arc<TestClock>,
    source: Mutex<SessionSource>,
    issuer: Mutex<String>,
    port: u16,
    serving_model: JoinHandle<std::io::Result<()>>,
}

impl Stage {
    /// With the steps of a model.
    pub async fn new(steps: Value) -> Self {
        Self::configured(steps, "").await
    }

    /// With more top-level keys in the user's configuration.
    pub async fn configured(steps: Value, keys: &str) -> Self {
        let model = ModelScript::from_json(&steps.to_string()).expect("a script");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving_model = tokio::spawn(model_http::serve(listener, Arc::new(model.clone())));
        let stage = Self {
            folder: TempDir::new().expect("a folder"),
            model,
            clock: Arc::default(),
            source: Mutex::new(SessionSource::Vscode),
            issuer: Mutex::default(),
            port,
            serving_model,
        };
        std::fs::create_dir(stage.cwd()).expect("a folder");
        std::fs::create_dir(stage.home()).expect("a folder");
        stage.configure(keys);
        stage
    }

    /// Writes the user's configuration anew, with more top-level keys.
    pub fn configure(&self, keys: &str) {
        self.configure_port(self.port, keys);
    }

    /// As [`Stage::configure`], with the model behind another port.
    pub fn configure_port(&self, port: u16, keys: &str) {
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
    pub fn write_machine(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A folder to work in.
    pub fn cwd(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Says what threads of the next server are started by.
    pub fn set_source(&self, source: SessionSource) {
        *self.source.lock() = source;
    }

    /// Says where users of the next server log in.
    pub fn set_issuer(&self, address: &str) {
        address.clone_into(&mut self.issuer.lock());
    }

    /// A server with one client that has the experimental capability.
    pub async fn open(&self) -> (TestServer, TestClient) {
        let (server, mut client) = self.open_raw(None);
        client.initialize(json!({"experimentalApi": true})).await;
        (server, client)
    }

    /// A server with one client that has said nothing yet.
    pub fn open_raw(&self, originator: Option<&str>) -> (TestServer, TestClient) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let ((input, output), (from, to)) = (tokio::io::split(far), tokio::io::split(near));
        let (mut options, parts) = self.parts(Listen::Stdio);
        options.originator = originator.map(str::to_owned);
        let server = TestServer::run(None, |signals| {
            let (hub, app) = parts.wire();
            serve_pipes(options, app, hub, routes(), signals, Pipes { input, output })
        });
        (server, TestClient::new(from, to))
    }

    /// A server with one scripted host.
    pub fn open_host(&self) -> (TestServer, ScriptedHost) {
        let (near, far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        far.set_nonblocking(true).expect("a socket");
        near.set_write_timeout(Some(WAIT_LIMIT)).expect("a socket");
        let (options, parts) = self.parts(Listen::Stdio);
        let server = TestServer::run(None, |signals| async move {
            let (input, output) = UnixStream::from_std(far).expect("a socket").into_split();
            let (hub, app) = parts.wire();
            serve_pipes(options, app, hub, routes(), signals, Pipes { input, output }).await
        });
        (server, ScriptedHost::over(near.try_clone().expect("a socket"), near))
    }

    /// A server that several clients can connect to.
    pub fn listen(&self) -> TestServer {
        self.listen_with(|_| ())
    }

    /// As [`Stage::listen`], with other options.
    pub fn listen_with(&self, change: impl FnOnce(&mut ServerOptions)) -> TestServer {
        let socket = self.folder.path().join("socket");
        let listen = Listen::Unix(socket.clone());
        let (mut options, parts) = self.parts(listen.clone());
        change(&mut options);
        TestServer::run(Some(socket), |signals| async move {
            let (hub, app) = parts.wire();
            let listener = ServerListener::bind(&listen).await.expect("a socket");
            serve_listener(options, app, hub, routes(), signals, listener).await
        })
    }

    /// A server that several clients can connect to over websockets, and where.
    pub async fn listen_for_websockets(&self) -> (TestServer, SocketAddr) {
        let listen = Listen::Ws(SocketAddr::from(([127, 0, 0, 1], 0)));
        let (options, parts) = self.parts(listen.clone());
        let (told, address) = oneshot::channel();
        let server = TestServer::run(None, |signals| async move {
            let (hub, app) = parts.wire();
            let listener = ServerListener::bind(&listen).await.expect("a port");
            told.send(listener.address().expect("an address")).expect("somebody waits");
            serve_listener(options, app, hub, routes(), signals, listener).await
        });
        (server, within("the address of the server", address).await.expect("an address"))
    }

    /// Reads the configuration as a server on this stage does.
    pub fn loader(&self) -> Loader {
        let issuer = self.issuer.lock().clone();
        let environment = Env::fixed([
            ("OARLOCK_LOGIN_ISSUER", issuer.as_ref()),
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
        Loader::new(Home::at(self.home()), Vec::new(), options)
    }

    fn parts(&self, listen: Listen) -> (ServerOptions, Parts) {
        let loader = self.loader();
        let Startup { warnings, .. } = loader.startup(None);
        let home = AbsolutePath::new(self.home().to_string_lossy()).expect("absolute");
        let mut options = ServerOptions::new(listen, home);
        options.originator = None;
        options.config_warnings = warnings.into_iter().map(Into::into).collect();
        let source = self.source.lock().clone();
        (options, Parts { loader, clock: self.clock.clone(), source })
    }

    /// A stored thread, as a server of its own reads it.
    pub async fn read(&self, thread: &str) -> Value {
        let (server, mut client) = self.open().await;
        let read = client.ask("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
        server.stop().await;
        read["thread"].clone()
    }

    /// For transcripts of clients on this stage.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(&self.folder.path().to_string_lossy())
    }

    /// Every step was taken and every request fitted.
    pub fn assert_played(&self) {
        if let Err(leftover) = self.model.finish() {
            panic!("{leftover}");
        }
    }

    /// The requests the model got, as JSON.
    pub fn asked(&self) -> Vec<Value> {
        let bodies = self.model.requests();
        bodies.iter().map(|body| serde_json::to_value(body).expect("JSON")).collect()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.serving_model.abort();
    }
}

/// The parts of the application, to be put together on the server's own threads.
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
            traces: None,
        });
        (hub.clone(), Arc::new(App::new(hub, runtime)))
    }
}

/// A server on threads of its own, so that all of it can be stopped in the middle.
#[derive(Debug)]
pub struct TestServer {
    threads: Option<tokio::runtime::Runtime>,
    serving: Option<JoinHandle<server::ExitReason>>,
    stop: mpsc::Sender<()>,
    socket: Option<PathBuf>,
}

impl TestServer {
    fn run<F>(socket: Option<PathBuf>, serve: impl FnOnce(StopSignals) -> F + Send + 'static) -> Self
    where
        F: Future<Output = server::ExitReason> + Send + 'static,
    {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let threads = builder.worker_threads(1).enable_all().build().expect("threads");
        let (stop, requests) = mpsc::channel(2);
        let signals = StopSignals::manual(requests);
        let serving = threads.spawn(async move { serve(signals).await });
        Self { threads: Some(threads), serving: Some(serving), stop, socket }
    }

    /// One more client, which has said nothing yet.
    pub async fn connect_raw(&self) -> TestClient {
        let socket = self.socket.as_deref().expect("a server that listens");
        let (input, output) = connect(socket).await.into_split();
        TestClient::new(input, output)
    }

    /// One more client with these capabilities.
    pub async fn connect_with(&self, capabilities: Value) -> TestClient {
        let mut client = self.connect_raw().await;
        client.initialize(capabilities).await;
        client
    }

    pub async fn connect(&self) -> TestClient {
        self.connect_with(json!({"experimentalApi": true})).await
    }

    /// Ends as by a signal, in good order.
    pub async fn stop(mut self) {
        within("the server to hear that it is to stop", self.stop.send(())).await.expect("it runs");
        let serving = self.serving.take().expect("it runs");
        within("the server to stop", serving).await.expect("no panic");
    }

    /// Ends as by a power cut: no task gets to say or write anything more.
    pub async fn kill(mut self) {
        let threads = self.threads.take().expect("it runs");
        let cut = move || threads.shutdown_timeout(WAIT_LIMIT);
        tokio::task::spawn_blocking(cut).await.expect("no panic");
    }
}

impl Drop for TestServer {
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
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    };
    within("the socket of the server", trying).await
}
