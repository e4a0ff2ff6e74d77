//! `oarlock responses-bridge`: lets a runtime use a model provider without ever seeing the key. Owns the bridge and its
//! options. Must not know anything of threads and turns.

mod answer;
mod gate;
mod headers;
mod serve;
mod translate;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use model_http::{ClientOptions, Provider, Relay, Secret, Translator, Wire};
use serde_json::json;
use tokio::net::TcpListener;

use self::serve::{ResponsesBridge, serve};

pub const EXAMPLES: &str = "\
Only POST /v1/responses and POST /v1/responses/compact get through; everything else is answered with 403.
The runtime is pointed at the bridge by `thread/start.sdkDelegation.bridgeUrl`: the printed address and `/v1`.

Examples:
  oarlock responses-bridge --key-env OPENAI_API_KEY
  oarlock responses-bridge --listen 127.0.0.1:8080 --upstream https://host/v1 --key-env KEY --json
  oarlock responses-bridge --upstream https://api.anthropic.com/v1 --upstream-wire messages \\
      --upstream-name anthropic --key-env ANTHROPIC_API_KEY
  oarlock responses-bridge --key-env KEY --token-env TOKEN    with bridgeUrl http://x:TOKEN@127.0.0.1:PORT/v1";

#[derive(Debug, Args)]
pub struct ResponsesBridgeOptions {
    /// Address to listen on; port 0 takes a free one. The line printed says which.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The provider: requests go to `URL/responses`.
    #[arg(long, value_name = "URL", default_value = "https://api.openai.com/v1")]
    upstream: String,
    /// The wire of the provider. Requests and answers are translated where it is not the Responses API.
    #[arg(long, value_name = "WIRE", value_enum, default_value = "responses")]
    upstream_wire: UpstreamWire,
    /// The provider by its name in docs/models.md, where it differs from others of its wire.
    #[arg(long, value_name = "NAME", default_value = "upstream")]
    upstream_name: String,
    /// The environment variable that holds the provider's key.
    #[arg(long, value_name = "NAME")]
    key_env: String,
    /// The environment variable that holds what the runtime has to present: as a bearer token, or as the password of
    /// the bridge's URL.
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    /// Listen on an address that other machines can reach. Needs `--token-env`.
    #[arg(long)]
    allow_remote: bool,
    /// The largest request body.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    max_body_bytes: usize,
    /// How many requests may be under way at once.
    #[arg(long, value_name = "COUNT", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    max_requests: u16,
    /// Say the address as a JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum UpstreamWire {
    Responses,
    Chat,
    Messages,
}

/// Serves until a signal ends it.
pub fn run(options: &ResponsesBridgeOptions) -> Result<()> {
    let relay = options.relay()?;
    let token = options.token()?;
    options.check_reach(token.is_some())?;
    if relay.is_exposed() {
        tracing::warn!(upstream = relay.shown_url(), "the key is sent without encryption");
    }
    let bridge =
        ResponsesBridge::new(relay, token, options.max_body_bytes, usize::from(options.max_requests))
            .translating(options.translator()?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(until_stopped(options, Arc::new(bridge)))
}

impl ResponsesBridgeOptions {
    fn relay(&self) -> Result<Relay> {
        let (provider, options) = self.provider()?;
        Relay::new(&provider, &options).context("--upstream or its key cannot be used")
    }

    /// Where the provider speaks another wire.
    fn translator(&self) -> Result<Option<Translator>> {
        if self.upstream_wire == UpstreamWire::Responses {
            return Ok(None);
        }
        let (provider, options) = self.provider()?;
        Translator::new(&provider, &options).map(Some).context("--upstream or its key cannot be used")
    }

    fn provider(&self) -> Result<(Provider, ClientOptions)> {
        let mut provider = Provider::new(&self.upstream_name, &self.upstream);
        provider.wire = match self.upstream_wire {
            UpstreamWire::Responses => Wire::Responses,
            UpstreamWire::Chat => Wire::Chat,
            UpstreamWire::Messages => Wire::Messages,
        };
        // Whoever asked decides whether to ask again.
        provider.request_max_retries = 0;
        provider.api_key = Some(secret("--key-env", &self.key_env)?);
        let mut options = ClientOptions::new("oarlock", concat!("oarlock/", env!("CARGO_PKG_VERSION")));
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let proxy = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        options.proxy = proxy.into_iter().find_map(text).map(Secret::new);
        options.no_proxy = ["NO_PROXY", "no_proxy"].into_iter().find_map(text).unwrap_or_default();
        Ok((provider, options))
    }

    fn token(&self) -> Result<Option<Secret>> {
        self.token_env.as_deref().map(|name| secret("--token-env", name)).transpose()
    }

    /// Whoever can reach the bridge spends the key's money.
    fn check_reach(&self, has_token: bool) -> Result<()> {
        if self.listen.ip().is_loopback() {
            return Ok(());
        }
        if !self.allow_remote {
            bail!(
                "--listen {} can be reached from other machines; say --allow-remote if it must",
                self.listen
            );
        }
        if !has_token {
            bail!("--allow-remote needs --token-env, or everybody could use the key");
        }
        Ok(())
    }
}

/// Read once. The process is sealed by then, so no other program of this user can read the variable from it.
fn secret(flag: &str, name: &str) -> Result<Secret> {
    let value = std::env::var(name).map(Secret::new).unwrap_or_else(|_| Secret::new(""));
    if value.reveal().trim().is_empty() {
        bail!("{flag}: the environment variable {name} is not set");
    }
    Ok(value)
}

/// Until Ctrl-C or SIGTERM.
async fn until_stopped(options: &ResponsesBridgeOptions, bridge: Arc<ResponsesBridge>) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = TcpListener::bind(options.listen)
        .await
        .with_context(|| format!("cannot listen on {}", options.listen))?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let address = format!("http://{}", listener.local_addr()?);
    let line = match options.json {
        true => json!({ "listening": address, "bridgeUrl": format!("{address}/v1") }).to_string(),
        false => format!("listening on {address}"),
    };
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).context("standard output is closed")?;
    let stop = async {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    };
    serve(listener, bridge, stop).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(listen: &str, allow_remote: bool) -> ResponsesBridgeOptions {
        ResponsesBridgeOptions {
            listen: listen.parse().expect("an address"),
            upstream: "https://host/v1".to_owned(),
            upstream_wire: UpstreamWire::Responses,
            upstream_name: "upstream".to_owned(),
            key_env: "OARLOCK_TEST_NO_SUCH_KEY".to_owned(),
            token_env: None,
            allow_remote,
            max_body_bytes: 1,
            max_requests: 1,
            json: false,
        }
    }

    #[test]
    fn other_machines_are_let_in_only_on_purpose_and_with_a_token() {
        let told = |listen: &str, allowed: bool, has_token: bool| {
            options(listen, allowed).check_reach(has_token).err().map(|error| error.to_string())
        };
        assert_eq!(told("127.0.0.1:0", false, false), None);
        assert_eq!(told("[::1]:0", false, false), None);
        assert!(told("0.0.0.0:0", false, true).is_some_and(|text| text.contains("--allow-remote")));
        assert!(told("0.0.0.0:0", true, false).is_some_and(|text| text.contains("--token-env")));
        assert_eq!(told("0.0.0.0:0", true, true), None);
    }

    #[test]
    fn a_key_that_is_not_there_is_named() {
        let error = options("127.0.0.1:0", false).relay().expect_err("no key");
        assert_eq!(
            error.to_string(),
            "--key-env: the environment variable OARLOCK_TEST_NO_SUCH_KEY is not set"
        );
    }
}
