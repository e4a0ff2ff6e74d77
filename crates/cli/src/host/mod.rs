//! `oarlock host`: keeps tasks, carries their model requests and asks people, for clients that speak as to an app-server.

pub(crate) mod client;
pub(crate) mod commands;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::host::{CarriedProvider, HostOptions, LocalLauncher, TaskHost, TaskTimes};
use anyhow::{Context, Result, bail};
use clap::Args;
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Home, Loader, LoaderOptions, ProviderKind, ResolvedConfig, Startup};
use runtime::{Catalogue, Runtime, RuntimeOptions, SystemClock};
use server::{
    App, ExitReason, HostApp, Hub, HubAudience, HubClients, Listen, ServerListener, ServerOptions,
    StopSignals, host_routes,
};
use store::{SqliteOptions, TaskStore};

use crate::logging;

#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Where to serve beside the store's own socket: `stdio://`, `ws://IP:PORT` or `unix://PATH`.
    #[arg(long, value_name = "URL")]
    listen: Option<String>,
    /// Where tasks are kept: `sqlite:PATH`.
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// The provider to carry model requests to; `offline` needs no key and no network.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// How long a runtime without a turn is kept, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle_after: u64,
    /// How long a runtime whose turn waits for a decision is kept, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    suspend_after: u64,
}

/// The longest line a runtime reads: a whole history comes in one.
const RUNTIME_LINE_BYTES: &str = "536870912";

/// Variables that a runtime gets of the host's environment. No key is among them.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "OARLOCK_HOME",
    "CODEX_HOME",
    "RUST_LOG",
    "LOG_FORMAT",
];

/// The file of a `sqlite:` store, by what was asked for or beside the configuration.
pub(crate) fn store_path(asked: Option<&str>, home: &Path) -> Result<PathBuf> {
    let path = match asked {
        None => home.join("host.sqlite"),
        Some(text) => match text.strip_prefix("sqlite:").map(|path| path.trim_start_matches("//")) {
            Some(path) if !path.is_empty() => PathBuf::from(path),
            _ => bail!("--store {text}: expected `sqlite:PATH`"),
        },
    };
    Ok(std::path::absolute(path)?)
}

pub(crate) fn run(args: &HostArgs, mut flags: Vec<(String, String)>) -> Result<ExitCode> {
    let listen = args.listen.as_deref().map(Listen::parse).transpose()?;
    if let Some(provider) = &args.provider {
        flags.push(("model_provider".to_owned(), format!("{provider:?}")));
    }
    let home = Home::from_env()?;
    let home_path = home.reading().to_owned();
    let path = store_path(args.store.as_deref(), &home_path)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let launcher = launcher(&flags, &path)?;
    let loader = Loader::new(home, flags, LoaderOptions::default());
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let reason = tokio.block_on(serve(args, listen, loader, launcher, &path))?;
    tracing::debug!(?reason, "the host stops");
    // A client that does not read must not keep the process.
    tokio.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// This very program, as an app-server with the same settings. Whoever can write the store can decide in it, so its
/// commands cannot reach it, wherever it is.
fn launcher(flags: &[(String, String)], store: &Path) -> Result<LocalLauncher> {
    let mut arguments: Vec<OsString> =
        ["app-server", "--max-line-bytes", RUNTIME_LINE_BYTES].map(OsString::from).to_vec();
    for (key, value) in flags {
        arguments.extend(["-c".into(), format!("{key}={value}").into()]);
    }
    for file in TaskStore::files_of(store) {
        arguments.extend(["--off-limits".into(), file.into()]);
    }
    let environment =
        PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    Ok(LocalLauncher {
        program: std::env::current_exe().context("this program cannot find itself")?,
        arguments,
        environment: environment.collect(),
    })
}

async fn serve(
    args: &HostArgs,
    listen: Option<Listen>,
    loader: Loader,
    launcher: LocalLauncher,
    path: &Path,
) -> Result<ExitReason> {
    let Startup { config, warnings } = loader.startup(std::env::current_dir().ok().as_deref());
    let codex_home = AbsolutePath::new(loader.home().reading().to_string_lossy())
        .context("the home folder is not an absolute path")?;
    let clock = Arc::new(|| jiff::Timestamp::now().as_millisecond());
    let store = TaskStore::open_sqlite(&SqliteOptions { path: path.to_owned(), clock }).await?;
    let socket = TaskStore::socket_of(path);
    let hub = Hub::new();
    let runtime = local_runtime(loader, &hub, &config);
    let provider = carried(&runtime, &config)?;
    let seconds = |seconds: u64| i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2);
    let options = HostOptions {
        times: TaskTimes {
            idle_after_ms: seconds(args.idle_after),
            suspend_after_ms: seconds(args.suspend_after),
        },
        provider,
        launcher: Arc::new(launcher),
        address: format!("unix://{}", socket.display()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let clients = HubClients::new(hub.clone());
    let host = TaskHost::open(store, Arc::new(clients.clone()), options).await?;
    let local = App::new(hub.clone(), runtime);
    let app = Arc::new(HostApp::new(hub.clone(), &clients, host.clone(), local));
    // Only the host that holds the store comes here, so a socket that is there was left behind.
    let _ = std::fs::remove_file(&socket);
    let own = Listen::Unix(socket.clone());
    let listener = ServerListener::bind(&own).await?;
    tracing::info!(store = %path.display(), "the host is open");
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
    let reason = match listen {
        None => {
            eprintln!("oarlock host: tasks in {}, clients at unix://{}", path.display(), socket.display());
            beside.await
        }
        Some(listen) => {
            let chosen = server::serve(server_options(listen), app, hub, host_routes(), signals()?);
            tokio::select! {
                reason = beside => reason,
                reason = chosen => reason?,
            }
        }
    };
    let _ = std::fs::remove_file(&socket);
    Ok(reason)
}

/// Answers what is about this machine and its configuration; opens no thread.
fn local_runtime(loader: Loader, hub: &Arc<Hub>, config: &ResolvedConfig) -> Runtime {
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

fn carried(runtime: &Runtime, config: &ResolvedConfig) -> Result<CarriedProvider> {
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
