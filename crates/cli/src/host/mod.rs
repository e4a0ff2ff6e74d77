//! `oarlock host`: keeps tasks, carries their model requests and asks people, for clients that speak as to an app-server.

pub(crate) mod client;
pub(crate) mod commands;
pub(crate) mod place_commands;
pub(crate) mod places;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::host::{CarriedProvider, HostOptions, ReplicaOptions, TaskHost, TaskTimes};
use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Home, Loader, LoaderOptions, ProviderKind, ResolvedConfig, Startup};
use runtime::{Catalogue, Runtime, RuntimeOptions, SystemClock};
use server::{
    App, ExitReason, HostApp, Hub, HubAudience, HubClients, Listen, ServerListener, ServerOptions,
    StopSignals, host_routes,
};
use store::{PostgresOptions, SqliteOptions, TaskStore};

use crate::logging;

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Where to serve beside the store's own socket: `stdio://`, `ws://IP:PORT` or `unix://PATH`.
    #[arg(long, value_name = "URL")]
    listen: Option<String>,
    /// Where tasks are kept: `sqlite:PATH`, or `postgres://USER@HOST/NAME`, which several hosts may share.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// The name of this host among those on the same Postgres; the name of this machine if left out.
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
    /// On Postgres: how long others wait, in seconds, before they take over the tasks of a host that was not heard of.
    #[arg(long, value_name = "SECONDS", default_value_t = 15, value_parser = clap::value_parser!(u64).range(2..=3_600))]
    lease: u64,
    /// The provider to carry model requests to; `offline` needs no key and no network.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// How long a runtime without a turn is kept, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle_after: u64,
    /// How long a runtime whose turn waits for a decision is kept, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    suspend_after: u64,
    #[command(flatten)]
    places: places::PlaceArgs,
}

/// How long work waits for a database that is away.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where tasks are kept.
#[derive(Debug)]
pub(crate) enum StoreChoice {
    Sqlite(PathBuf),
    /// The address, which may hold a password.
    Postgres(String),
}

impl StoreChoice {
    /// By what was asked for, or a file beside the configuration.
    pub(crate) fn parse(asked: Option<&str>, home: &Path) -> Result<Self> {
        let path = match asked {
            None => home.join("host.sqlite"),
            Some(text) if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
                return Ok(Self::Postgres(text.to_owned()));
            }
            Some(text) => match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
                Some(path) if !path.is_empty() => PathBuf::from(path),
                _ => {
                    // Only the scheme is shown: the rest may be an address with a password.
                    let kind = text.split(':').next().unwrap_or_default();
                    bail!("--store {kind}…: expected `sqlite:PATH` or `postgres://USER@HOST/NAME`");
                }
            },
        };
        Ok(Self::Sqlite(std::path::absolute(path)?))
    }

    /// The socket of the host that has it open on this machine.
    pub(crate) fn socket(&self, replica: &str, home: &Path) -> PathBuf {
        match self {
            Self::Sqlite(path) => TaskStore::socket_of(path),
            Self::Postgres(_) => home.join(format!("host-{replica}.sock")),
        }
    }

    async fn open(&self, lease: Duration) -> Result<TaskStore> {
        match self {
            Self::Sqlite(path) => {
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder)
                        .with_context(|| format!("cannot make {}", folder.display()))?;
                }
                let clock = Arc::new(|| jiff::Timestamp::now().as_millisecond());
                Ok(TaskStore::open_sqlite(&SqliteOptions { path: path.clone(), clock }).await?)
            }
            Self::Postgres(address) => {
                // Under a third of the lease, so that the host notices in time that it lost it.
                let wait_limit = (lease * 4 / 15).min(Duration::from_secs(4));
                let options = PostgresOptions::parse(address, wait_limit, PATIENCE)?;
                Ok(TaskStore::open_postgres(&options).await?)
            }
        }
    }

    /// Without a password.
    fn shown(&self) -> String {
        match self {
            Self::Sqlite(path) => path.display().to_string(),
            Self::Postgres(_) => "Postgres".to_owned(),
        }
    }
}

/// The name of this machine, which is what a host is called unless it is told otherwise.
pub(crate) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name: String =
        name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

fn replica_options(args: &HostArgs, store: &StoreChoice) -> Result<ReplicaOptions> {
    if let StoreChoice::Sqlite(_) = store {
        return Ok(ReplicaOptions::embedded());
    }
    let id = args.replica.clone().unwrap_or_else(machine_name);
    if id.is_empty() || id.contains('/') || id.len() > 100 {
        bail!("--replica {id}: expected a short name without `/`");
    }
    let (site, ttl) = (format!("local:{}", machine_name()), Duration::from_secs(args.lease));
    Ok(ReplicaOptions { id, site, ttl })
}

pub(crate) fn run(args: &HostArgs, mut flags: Vec<(String, String)>) -> Result<ExitCode> {
    let listen = args.listen.as_deref().map(Listen::parse).transpose()?;
    if let Some(provider) = &args.provider {
        flags.push(("model_provider".to_owned(), format!("{provider:?}")));
    }
    let home = Home::from_env()?;
    let home_path = home.reading().to_owned();
    let store = StoreChoice::parse(args.store.as_deref(), &home_path)?;
    let replica = args.replica.clone().unwrap_or_else(machine_name);
    let socket = store.socket(&replica, &home_path);
    if let Some(folder) = socket.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let loader = Loader::new(home, flags.clone(), LoaderOptions::default());
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let reason = tokio.block_on(serve(args, listen, loader, &flags, &store))?;
    tracing::debug!(?reason, "the host stops");
    // A client that does not read must not keep the process.
    tokio.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    args: &HostArgs,
    listen: Option<Listen>,
    loader: Loader,
    flags: &[(String, String)],
    chosen: &StoreChoice,
) -> Result<ExitReason> {
    let Startup { config, warnings } = loader.startup(std::env::current_dir().ok().as_deref());
    let codex_home = AbsolutePath::new(loader.home().reading().to_string_lossy())
        .context("the home folder is not an absolute path")?;
    let replica = replica_options(args, chosen)?;
    let store = chosen.open(replica.ttl).await?;
    let socket = chosen.socket(&replica.id, loader.home().reading());
    if let Some(folder) = socket.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let hub = Hub::new();
    let mut own_files = match chosen {
        StoreChoice::Sqlite(path) => TaskStore::files_of(path),
        StoreChoice::Postgres(_) => vec![socket.clone()],
    };
    let blobs = args.places.blobs(chosen, loader.home().reading());
    own_files.push(blobs.clone());
    let places = places::options(&args.places, &config, flags, &own_files, blobs)?;
    let runtime = local_runtime(loader, &hub, &config);
    let provider = carried(&runtime, &config)?;
    let seconds = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2);
    let options = HostOptions {
        replica,
        times: TaskTimes {
            idle_after_ms: seconds(args.idle_after),
            suspend_after_ms: seconds(args.suspend_after),
        },
        provider,
        launcher: Arc::new(places::launcher(&places)),
        places,
        address: format!("unix://{}", socket.display()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let clients = HubClients::new(hub.clone());
    let host = TaskHost::open(store, Arc::new(clients.clone()), options).await?;
    let local = App::new(hub.clone(), runtime);
    let app = Arc::new(HostApp::new(hub.clone(), &clients, host.clone(), local));
    // Only the host that holds the store, or the name, comes here: a socket that is there was left behind.
    let _ = std::fs::remove_file(&socket);
    let own = Listen::Unix(socket.clone());
    let listener = ServerListener::bind(&own).await?;
    tracing::info!(store = chosen.shown(), "the host is open");
    let recovered = host.recover().await?;
    if recovered > 0 {
        tracing::info!(recovered, "tasks go on");
    }
    let server_options = |listen: Listen| {
        let mut options = ServerOptions::new(listen, codex_home.clone());
        options.config_warnings = warnings.iter().cloned().map(Into::into).collect();
        options.grace_after_signal = Duration::from_secs(10);
        options
    };
    let signals = || StopSignals::of_process().context("signals cannot be handled");
    let beside = server::serve_listener(
        server_options(own),
        app.clone(),
        hub.clone(),
        host_routes(),
        signals()?,
        listener,
    );
    let asked = async {
        match listen {
            None => {
                eprintln!(
                    "oarlock host: tasks in {}, clients at unix://{}",
                    chosen.shown(),
                    socket.display()
                );
                std::future::pending().await
            }
            Some(listen) => {
                let stop = StopSignals::of_process().context("signals cannot be handled")?;
                Ok::<_, anyhow::Error>(
                    server::serve(server_options(listen), app, hub, host_routes(), stop).await?,
                )
            }
        }
    };
    let reason = tokio::select! {
        reason = beside => reason,
        reason = asked => reason?,
        name = host.replaced() => {
            bail!("another host was started as `{name}`; give each host on a database a name of its own with --replica");
        }
    };
    let _ = std::fs::remove_file(&socket);
    Ok(reason)
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
    })
}

pub(crate) fn carried(runtime: &Runtime, config: &ResolvedConfig) -> Result<CarriedProvider> {
    let is_openai = config.provider.kind == ProviderKind::OpenAi;
    let default_model = match config.provider.kind {
        ProviderKind::Offline => Some(model_http::OfflineModel::NAME.to_owned()),
        _ => config.model.name.clone().or_else(|| config.provider.default_model.clone()),
    };
    Ok(CarriedProvider {
        id: config.provider.id.clone(),
        transport: runtime.model_transport()?,
        default_model,
        hosted_tools: if is_openai { vec!["web_search".to_owned()] } else { Vec::new() },
        replays_reasoning: is_openai,
    })
}
