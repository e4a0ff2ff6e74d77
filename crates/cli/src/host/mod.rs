//! `oarlock host`: keeps tasks, carries their model requests and asks people, for clients that speak as to an app-server.

pub(crate) mod audit;
pub(crate) mod chosen;
pub(crate) mod client;
pub(crate) mod commands;
mod host_table;
mod notify;
mod peers;
pub(crate) mod place_commands;
pub(crate) mod places;
pub(crate) mod tasks;
mod transports;
pub(crate) mod usage;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::host::{CarriedProvider, HostOptions, ReplicaOptions, TaskHost, TaskTimes};
use anyhow::{Context, Result, bail};
use clap::Args;
use futures_util::future::OptionFuture;
use model_http::{Capabilities, Wire};
use protocol::{AbsolutePath, ModelCapabilities, ModelWire, ReasoningReplay, SessionSource};
use runtime::config::{Home, Loader, LoaderOptions, ProviderKind, ResolvedConfig, Startup, WireApi};
use runtime::{Catalogue, Runtime, RuntimeOptions, SystemClock, TraceSettings};
use server::{
    App, ExitReason, HostApp, Hub, HubAudience, HubClients, Listen, ServerListener, ServerOptions,
    StopSignals, WsAuth, host_routes,
};
use service::OPEN_TARGET;
pub(crate) use store::StoreChoice;
use store::TaskStore;

use self::host_table::HostTable;
use self::places::OwnEndpoints;
use crate::logging;
use crate::private_folder::make_private;
use crate::service_args::{self, ServiceArgs};

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Where to serve beside the store's own socket: `stdio://`, `ws://IP:PORT`, `unix://PATH`, or `fd://`, the socket that
    /// systemd passes.
    #[arg(long, value_name = "URL")]
    listen: Option<String>,
    /// Where tasks are kept: `sqlite:PATH`, or `postgres://USER@HOST/NAME`, which several hosts may share; else the
    /// variable OARLOCK_STORE. Put passwords into PGPASSWORD or a file (`?passfile=FILE`), not here.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// The SQLite store is thrown away with the host: commits do not wait for the disk, and a crash of the machine may
    /// take the last ones along.
    #[arg(long)]
    scratch: bool,
    /// The name of this host among those on the same Postgres; the name of this machine if left out.
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
    /// On Postgres: how long others wait, in seconds, before they take over the tasks of a host that was not heard of.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(2..=3_600))]
    lease: u64,
    /// The provider to carry model requests to; `offline` needs no key and no network.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// The tokens of websocket clients: lines of `NAME ROLES sha256:HEX`. Also `tokens` in `[host]`.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// With `--listen stdio://`: when standard input ends, serve the clients of the store's socket until the last has left.
    #[arg(long)]
    stay_for_others: bool,
    /// Leave tasks that nobody runs as they are, until a client opens them or decides in them.
    #[arg(long)]
    no_adopt: bool,
    /// How long a runtime without a turn is kept, in seconds; else `idle_after` in `[host]`, else 60.
    #[arg(long, value_name = "SECONDS")]
    idle_after: Option<u64>,
    /// How long a runtime whose turn waits for a decision is kept, in seconds; else `suspend_after` in `[host]`, else 600.
    #[arg(long, value_name = "SECONDS")]
    suspend_after: Option<u64>,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    #[command(flatten)]
    places: places::PlaceArgs,
}

/// In seconds.
const IDLE_AFTER: u64 = 60;
const SUSPEND_AFTER: u64 = 600;

/// How often old tasks are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);

/// The name of this machine, which is what a host is called unless it is told otherwise.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

fn replica_options(args: &HostArgs, store: &StoreChoice) -> Result<ReplicaOptions> {
    if let StoreChoice::Sqlite(_) = store {
        return Ok(ReplicaOptions { adopts: !args.no_adopt, ..ReplicaOptions::embedded() });
    }
    let id = args.replica.clone().unwrap_or_else(machine_name);
    if id.is_empty() || id.contains('/') || id.len() > 100 {
        bail!("--replica {id}: expected a short name without `/`");
    }
    let (site, ttl) = (format!("local:{}", machine_name()), Duration::from_secs(args.lease));
    Ok(ReplicaOptions { id, site, ttl, adopts: !args.no_adopt })
}

pub(crate) fn run(args: &HostArgs, mut flags: Vec<(String, String)>) -> Result<ExitCode> {
    let listen = args.listen.as_deref().map(Listen::parse).transpose()?;
    let inherited = listen.as_ref().map(service_args::inherited).transpose()?.flatten();
    if let Some(provider) = &args.provider {
        flags.push(("model_provider".to_owned(), format!("{provider:?}")));
    }
    let home = Home::from_env()?;
    let home_path = home.reading().to_owned();
    let store = StoreChoice::parse(args.store.as_deref(), &home_path)?;
    if args.store.as_deref().is_some_and(StoreChoice::holds_password) {
        eprintln!(
            "oarlock host: every user of this machine can read the password in --store; put it into PGPASSWORD or into a \
             file, and name that with `?passfile=FILE`"
        );
    }
    let replica = args.replica.clone().unwrap_or_else(machine_name);
    let socket = store.socket(&replica, &home_path);
    if let Some(folder) = socket.parent() {
        make_private(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let loader = Loader::new(home, flags.clone(), LoaderOptions::default());
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let reason = tokio.block_on(serve(args, (listen, inherited), loader, &flags, &store))?;
    tracing::debug!(?reason, "the host stops");
    // A client that does not read must not keep the process.
    tokio.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    args: &HostArgs,
    (listen, inherited): (Option<Listen>, Option<OwnedFd>),
    loader: Loader,
    flags: &[(String, String)],
    chosen: &StoreChoice,
) -> Result<ExitReason> {
    let Startup { config, warnings } = loader.startup(std::env::current_dir().ok().as_deref());
    let own = loader.startup(None).config;
    let table = HostTable::read(&own)?;
    let codex_home = AbsolutePath::new(loader.home().reading().to_string_lossy())
        .context("the home folder is not an absolute path")?;
    let replica = replica_options(args, chosen)?;
    let store = chosen.open(replica.ttl, !args.scratch).await?;
    let socket = chosen.socket(&replica.id, loader.home().reading());
    let hub = Hub::new();
    let server_options = |listen: Listen| {
        let mut options = ServerOptions::new(listen, codex_home.clone());
        options.config_warnings = warnings.iter().cloned().map(Into::into).collect();
        options.grace_after_signal = Duration::from_secs(10);
        options.drain_timeout = args.service.drain_timeout();
        options
    };
    let is_socket_alone = listen.is_none();
    let asked = match listen {
        Some(listen) => {
            let auth = websocket_auth(args, &table)?;
            let stays_for_others = args.stay_for_others;
            let options = ServerOptions { auth, stays_for_others, ..server_options(listen) };
            Some(AskedListener::open(options, inherited, args.service.clone()).await?)
        }
        None => None,
    };
    let blobs = args.places.blobs(chosen, loader.home().reading());
    let peers = peers::open(&table, chosen, &replica.id).await?;
    let mut endpoints = own_endpoints(chosen, &socket, &blobs, (args, &table, asked.as_ref()));
    endpoints.ports.extend(peers.as_ref().and_then(peers::PeerSetup::port_number));
    let places = places::options(&args.places, &config, flags, &endpoints, blobs)?;
    let records = loader.home().reading().join("tasks");
    let runtime = local_runtime(loader, &hub, &config);
    let provider = carried(&runtime, &config).await?;
    let seconds = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2);
    let name = replica.id.clone();
    let options = HostOptions {
        replica,
        times: TaskTimes {
            idle_after_ms: seconds(args.idle_after.or(table.idle_after).unwrap_or(IDLE_AFTER)),
            suspend_after_ms: seconds(args.suspend_after.or(table.suspend_after).unwrap_or(SUSPEND_AFTER)),
        },
        provider,
        launcher: Arc::new(places::launcher(&places)),
        places,
        address: peers
            .as_ref()
            .map_or_else(|| format!("unix://{}", socket.display()), |peers| peers.address.clone()),
        limits: table.limits(&own),
        records,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        clock: Arc::new(SystemClock),
        tracer: runtime.tracer().clone(),
    };
    let clients = HubClients::new(hub.clone());
    let host = TaskHost::open(store, Arc::new(clients.clone()), options).await?;
    let local = App::new(hub.clone(), runtime);
    let app = Arc::new(HostApp::new(hub.clone(), &clients, host.clone(), local));
    if let Some(peers) = &peers {
        app.relay_to_peers(peers.secret.clone(), &name);
    }
    // Only the host that holds the store, or the name, comes here: a socket that is there was left behind.
    let _ = std::fs::remove_file(&socket);
    let own = Listen::Unix(socket.clone());
    let listener = ServerListener::bind(&own).await?;
    tracing::info!(store = chosen.shown(), "the host is open");
    keep_house(&host, &table);
    let recovered = host.recover().await?;
    if recovered > 0 {
        tracing::info!(recovered, "tasks go on");
    }
    if is_socket_alone {
        let (store, socket) = (chosen.shown(), socket.display());
        match args.service.logs_json() {
            true => {
                tracing::info!(target: OPEN_TARGET, store, address = %format!("unix://{socket}"), "the server is open");
            }
            false => eprintln!("oarlock host: tasks in {store}, clients at unix://{socket}"),
        }
    }
    let relayed = peers.map(|peers| {
        peers.port.serve(server_options(Listen::Stdio), app.clone(), hub.clone(), host_routes())
    });
    let relayed = async {
        match relayed {
            Some(relayed) => relayed.await,
            None => std::future::pending().await,
        }
    };
    let reason = tokio::select! {
        reason = serve_clients(app, hub, (server_options(own), listener), asked) => reason?,
        () = relayed => bail!("other hosts cannot be served any more"),
        name = host.replaced() => {
            bail!("another host was started as `{name}`; give each host on a database a name of its own with --replica");
        }
    };
    let _ = std::fs::remove_file(&socket);
    Ok(reason)
}

/// Where clients may come from beside the store's own socket.
struct AskedListener {
    options: ServerOptions,
    /// None for standard input and output.
    port: Option<ServerListener>,
    service: ServiceArgs,
}

impl AskedListener {
    /// Opened before any task goes on: commands of tasks are told which port is closed to them.
    async fn open(options: ServerOptions, inherited: Option<OwnedFd>, service: ServiceArgs) -> Result<Self> {
        let port = match options.listen {
            Listen::Stdio => None,
            _ => Some(server::open_listener(&options, inherited).await?),
        };
        Ok(Self { options, port, service })
    }
}

/// Files and ports that commands of tasks must not reach: whoever writes the store or the tokens, or connects, can decide.
fn own_endpoints(
    chosen: &StoreChoice,
    socket: &Path,
    blobs: &Path,
    (args, table, asked): (&HostArgs, &HostTable, Option<&AskedListener>),
) -> OwnEndpoints {
    let mut own = OwnEndpoints {
        files: match chosen {
            StoreChoice::Sqlite(path) => TaskStore::files_of(path),
            StoreChoice::Postgres(_) => vec![socket.to_owned()],
        },
        is_temporary: args.scratch,
        has_blobs: args.places.has_blobs(chosen),
        ports: Vec::new(),
    };
    own.files.push(blobs.to_owned());
    own.files.extend(chosen.password_files());
    own.files.extend(tokens_file(args, table).cloned());
    own.files.extend(peers::secret_file(table));
    if let Some(port) = asked.and_then(|asked| asked.port.as_ref()) {
        own.ports.extend(port.address().map(|address| address.port()));
        own.files.extend(port.socket_file().map(Path::to_owned));
    }
    // Runtimes start in the folders of their tasks.
    for file in &mut own.files {
        *file = std::path::absolute(&*file).unwrap_or_else(|_| std::mem::take(file));
    }
    own
}

/// Serves on the socket beside the store, and where else clients may come from.
async fn serve_clients(
    app: Arc<HostApp>,
    hub: Arc<Hub>,
    (own, listener): (ServerOptions, ServerListener),
    asked: Option<AskedListener>,
) -> Result<ExitReason> {
    let signals = || StopSignals::of_process().context("signals cannot be handled");
    let _announced = service::announce_ready(service_args::stopping(&hub));
    let beside = server::serve_listener(own, app.clone(), hub.clone(), host_routes(), signals()?, listener);
    let asked = async {
        match asked {
            None => std::future::pending().await,
            Some(AskedListener { options, port: Some(port), service }) => {
                service.announce(&port, &options.auth);
                Ok(server::serve_listener(options, app, hub, host_routes(), signals()?, port).await)
            }
            Some(AskedListener { options, port: None, .. }) => {
                Ok::<_, anyhow::Error>(server::serve(options, app, hub, host_routes(), signals()?).await?)
            }
        }
    };
    tokio::select! {
        reason = beside => Ok(reason),
        reason = asked => reason,
    }
}

fn tokens_file<'a>(args: &'a HostArgs, table: &'a HostTable) -> Option<&'a PathBuf> {
    args.tokens.as_ref().or(table.tokens.as_ref())
}

fn websocket_auth(args: &HostArgs, table: &HostTable) -> Result<WsAuth> {
    match tokens_file(args, table) {
        Some(file) => Ok(WsAuth::tokens(file)?),
        None => Ok(WsAuth::default()),
    }
}

/// Starts what goes on beside the tasks, for as long as the process.
fn keep_house(host: &TaskHost, table: &HostTable) {
    if let Some(target) = table.notify.clone() {
        tokio::spawn(notify::notify_people(host.clone(), target, table.notify_after));
    }
    let age_ms = |days: Option<u32>| days.map(|days| i64::from(days) * 86_400_000);
    let (tasks, entries) = (age_ms(table.retention_days), age_ms(table.audit_retention_days));
    if tasks.or(entries).is_some() {
        tokio::spawn(remove_old(host.clone(), tasks, entries));
    }
}

async fn remove_old(host: TaskHost, tasks_ms: Option<i64>, entries_ms: Option<i64>) {
    loop {
        for (kind, removed) in [
            ("tasks", OptionFuture::from(tasks_ms.map(|age_ms| host.remove_older_than(age_ms))).await),
            (
                "audit",
                OptionFuture::from(entries_ms.map(|age_ms| host.forget_audit_older_than(age_ms))).await,
            ),
        ] {
            match removed {
                None | Some(Ok(0)) => {}
                Some(Ok(removed)) => tracing::info!(removed, kind, "what is old was removed"),
                Some(Err(error)) => tracing::warn!(%error, kind, "what is old cannot be removed"),
            }
        }
        tokio::time::sleep(SWEEP_EVERY).await;
    }
}

/// Answers what is about this machine and its configuration; opens no thread.
pub(crate) fn local_runtime(loader: Loader, hub: &Arc<Hub>, config: &ResolvedConfig) -> Runtime {
    let catalogue = match config.provider.kind {
        ProviderKind::Offline => Catalogue::bundled().with_offline(),
        ProviderKind::OpenAi | ProviderKind::Compatible => Catalogue::bundled(),
    };
    Runtime::new(RuntimeOptions {
        loader,
        audience: Arc::new(HubAudience(hub.clone())),
        clock: Arc::new(SystemClock),
        catalogue,
        source: SessionSource::AppServer,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: logging::store_options(),
        traces: TraceSettings::of_environment("host", env!("CARGO_PKG_VERSION")),
    })
}

pub(crate) async fn carried(runtime: &Runtime, config: &ResolvedConfig) -> Result<CarriedProvider> {
    let default_model = match config.provider.kind {
        ProviderKind::Offline => Some(model_http::OfflineModel::NAME.to_owned()),
        _ => match config.model.name.clone().or_else(|| config.provider.default_model.clone()) {
            // Runtimes cannot ask: they reach the provider through this host alone.
            None => runtime.model_directory().first_model(&config.provider).await,
            named => named,
        },
    };
    Ok(CarriedProvider {
        id: config.provider.id.clone(),
        transports: Arc::new(transports::TransportsByClient::new(runtime.clone())?),
        stream_max_retries: config.provider.stream_max_retries,
        default_model,
        capabilities: capabilities(config),
    })
}

/// The capabilities of the provider, as a runtime that asks it directly would see them.
fn capabilities(config: &ResolvedConfig) -> ModelCapabilities {
    let (wire, api) = match config.provider.wire {
        WireApi::Responses => (Wire::Responses, ModelWire::Responses),
        WireApi::Chat => (Wire::Chat, ModelWire::Chat),
        WireApi::Messages => (Wire::Messages, ModelWire::Messages),
    };
    let able = Capabilities::of(&config.provider.id, wire);
    let is_openai = config.provider.kind == ProviderKind::OpenAi;
    ModelCapabilities {
        wire: api,
        tools: true,
        parallel_tool_calls: able.parallel_calls,
        freeform_tools: wire == Wire::Responses,
        namespaced_tools: true,
        hosted_tools: if is_openai { vec!["web_search".to_owned()] } else { Vec::new() },
        images_in: able.images,
        // Each wire wraps what has to go back, and leaves out what its provider does not take.
        reasoning_replay: ReasoningReplay::Opaque,
        json_schema_output: able.json_schema,
        server_state: false,
        context_window: config.model.context_window.and_then(|window| u64::try_from(window).ok()),
        max_output_tokens: config.provider.max_output_tokens.map(u64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(config: &str) -> ModelCapabilities {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("config.toml"), config).expect("written");
        let own = |name: &str| (name == "OARLOCK_HOME").then(|| folder.path().as_os_str().to_owned());
        let home = Home::find(&own).expect("a home");
        capabilities(&Loader::new(home, Vec::new(), LoaderOptions::default()).startup(None).config)
    }

    #[test]
    fn a_host_says_of_its_provider_what_a_thread_here_would_find() {
        let able = of("model_provider = \"deepseek\"\nmodel_context_window = 64000");
        assert_eq!((able.wire, able.context_window), (ModelWire::Chat, Some(64_000)));
        assert!(!able.images_in && !able.json_schema_output && !able.parallel_tool_calls);
        assert!(!able.freeform_tools && able.namespaced_tools);
        let able = of("model_provider = \"anthropic\"");
        assert_eq!((able.wire, able.context_window), (ModelWire::Messages, None));
        assert!(able.images_in && able.json_schema_output && !able.freeform_tools);
        assert_eq!(able.reasoning_replay, ReasoningReplay::Opaque);
        let able = of("model_provider = \"openai\"");
        assert_eq!((able.wire, able.hosted_tools), (ModelWire::Responses, vec!["web_search".to_owned()]));
        assert!(able.freeform_tools);
    }
}
