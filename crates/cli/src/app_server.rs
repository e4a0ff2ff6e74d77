//! `oarlock app-server`: serves threads and turns to clients that speak JSON-RPC.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use protocol::{AbsolutePath, SessionSource};
use runtime::config::{Home, Loader, LoaderOptions, ProviderKind, Startup};
use runtime::{Catalogue, OwnListeners, Runtime, RuntimeOptions, SystemClock, TraceSettings};
use sandbox::SelfTest;
use server::{App, AuthFlags, HubAudience, Listen, ServerOptions, StopSignals, WsAuthMode};

use crate::logging;
use crate::service_args::{self, ServiceArgs};

#[derive(Debug, Args)]
pub(crate) struct AppServerArgs {
    /// Where to serve: `stdio://`, `ws://IP:PORT` (port 0 picks a free one), `unix://PATH`, or `fd://`, the socket that
    /// systemd passes.
    #[arg(long, value_name = "URL", default_value = "stdio://")]
    listen: String,
    /// The longest line or websocket message, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_line_bytes: usize,
    /// Accepted for compatibility: this program collects no statistics.
    #[arg(long, hide = true)]
    analytics_default_enabled: bool,
    /// Let anybody use a websocket that other machines can reach: without --ws-auth it is refused.
    #[arg(long)]
    allow_unauthenticated: bool,
    /// A file of whoever started this server, such as the store of a host: commands can neither read nor write it.
    #[arg(long, value_name = "FILE", hide = true)]
    off_limits: Vec<PathBuf>,
    /// A port of whoever started this server: commands cannot connect to it.
    #[arg(long, value_name = "PORT", hide = true)]
    closed_port: Vec<u16>,
    /// The workspace of a placement: where this program is root, commands run as the owner of that folder.
    #[arg(long, value_name = "FOLDER", hide = true)]
    command_user_of: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    #[command(flatten)]
    auth: WsAuthArgs,
}

/// Who may open a websocket.
#[derive(Debug, Args)]
#[command(next_help_heading = "Websocket authentication")]
struct WsAuthArgs {
    /// The token that clients must send as `Authorization: Bearer …`.
    #[arg(long, value_name = "KIND")]
    ws_auth: Option<WsAuthKind>,
    /// Absolute path of the file that holds the token (capability-token).
    #[arg(long, value_name = "FILE")]
    ws_token_file: Option<PathBuf>,
    /// Absolute path of the file that holds the secret, at least 32 bytes (signed-bearer-token).
    #[arg(long, value_name = "FILE")]
    ws_shared_secret_file: Option<PathBuf>,
    /// The issuer a token must name.
    #[arg(long, value_name = "NAME")]
    ws_issuer: Option<String>,
    /// The audience a token must name.
    #[arg(long, value_name = "NAME")]
    ws_audience: Option<String>,
    /// How far clocks may differ.
    #[arg(long, value_name = "SECONDS")]
    ws_max_clock_skew_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum WsAuthKind {
    /// A fixed secret.
    CapabilityToken,
    /// A JWT signed with a shared secret (HS256).
    SignedBearerToken,
}

/// `flags` are those of `-c`, split into key and value.
pub(crate) fn run(args: &AppServerArgs, flags: Vec<(String, String)>) -> Result<ExitCode> {
    let listen = Listen::parse(&args.listen)?;
    let inherited = service_args::inherited(&listen)?;
    let auth = args.auth.flags().load(Arc::new(SystemClock))?;
    let home = Home::from_env()?;
    if let Some(workspace) = &args.command_user_of {
        // Before there are other threads. Where it does not hold, the host is told, and shows it.
        sandbox::separate_commands(workspace, home.reading());
    }
    let codex_home = AbsolutePath::new(home.reading().to_string_lossy())
        .context("the home folder is not an absolute path")?;
    let loader = Loader::new(home, flags, LoaderOptions::default());
    let Startup { config, warnings } = loader.startup(std::env::current_dir().ok().as_deref());
    let catalogue = match &config.model.catalog_json {
        Some(file) => Catalogue::from_file(file)?,
        None => Catalogue::bundled(),
    };
    // Clients are offered the model they would get.
    let catalogue = match config.provider.kind {
        ProviderKind::Offline => catalogue.with_offline(),
        ProviderKind::OpenAi | ProviderKind::Compatible => catalogue,
    };
    let mut options = ServerOptions::new(listen, codex_home);
    options.auth = auth;
    options.max_line_bytes = args.max_line_bytes;
    options.allow_unauthenticated = args.allow_unauthenticated;
    options.drain_timeout = args.service.drain_timeout();
    options.config_warnings = warnings.into_iter().map(Into::into).collect();

    let landlock_only = crate::sandbox_check::is_sandboxed(&config.permissions.sandbox_policy)
        .then(|| config.features.enabled("use_legacy_landlock"));
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    if let Some(landlock_only) = landlock_only {
        tokio.spawn(try_sandbox(landlock_only));
    }
    let reason = tokio.block_on(async {
        let hub = server::Hub::new();
        let runtime = Runtime::new(RuntimeOptions {
            loader,
            audience: Arc::new(HubAudience(hub.clone())),
            clock: Arc::new(SystemClock),
            catalogue,
            source: SessionSource::Vscode,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            store: logging::store_options(),
            traces: TraceSettings::of_environment("app-server", env!("CARGO_PKG_VERSION")),
        });
        let mut listeners = OwnListeners::default();
        args.off_limits.iter().for_each(|file| listeners.add_file(file));
        listeners.ports.extend(&args.closed_port);
        runtime.add_listeners(listeners);
        let lease = runtime.clone();
        let app = Arc::new(App::new(hub.clone(), runtime));
        let signals = StopSignals::of_process().context("signals cannot be handled")?;
        let serving = async {
            if options.listen == Listen::Stdio {
                return anyhow::Ok(server::serve(options, app, hub, server::routes(), signals).await?);
            }
            let listener = server::open_listener(&options, inherited).await?;
            args.service.announce(&listener, &options.auth);
            let _announced = service::announce_ready(service_args::stopping(&hub));
            Ok(server::serve_listener(options, app, hub, server::routes(), signals, listener).await)
        };
        tokio::select! {
            reason = serving => anyhow::Ok(Some(reason?)),
            () = lease.lease_over() => Ok(None),
        }
    })?;
    let Some(reason) = reason else {
        // Nothing is put away: another host may have the threads by now, and commands end with this process.
        tracing::error!("the host has not renewed its lease; this runtime ends");
        tokio.shutdown_background();
        return Ok(ExitCode::FAILURE);
    };
    tracing::debug!(?reason, "the server stops");
    // A client that does not read must not keep the process.
    tokio.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// The first client is answered before the sandbox is tried.
const TRY_SANDBOX_AFTER: Duration = Duration::from_millis(500);

/// Says in the log that sandboxed commands will be refused, before the first of them is.
async fn try_sandbox(landlock_only: bool) {
    tokio::time::sleep(TRY_SANDBOX_AFTER).await;
    let missing = tokio::task::spawn_blocking(move || SelfTest::run().missing(landlock_only)).await;
    if let Ok(Some(why)) = missing {
        tracing::warn!("{why}; `oarlock doctor` says what to do");
    }
}

impl WsAuthArgs {
    fn flags(&self) -> AuthFlags {
        AuthFlags {
            mode: self.ws_auth.map(|kind| match kind {
                WsAuthKind::CapabilityToken => WsAuthMode::CapabilityToken,
                WsAuthKind::SignedBearerToken => WsAuthMode::SignedBearerToken,
            }),
            token_file: self.ws_token_file.clone(),
            shared_secret_file: self.ws_shared_secret_file.clone(),
            issuer: self.ws_issuer.clone(),
            audience: self.ws_audience.clone(),
            max_clock_skew_seconds: self.ws_max_clock_skew_seconds,
        }
    }
}
