//! Serves the offline model, or a script, as a Responses endpoint for other programs' tests.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args;
use model_http::{ModelScript, OfflineModel, OfflineResponder, serve};
use tokio::net::TcpListener;

#[derive(Debug, Args)]
pub(crate) struct OfflineModelOptions {
    /// Address to listen on; port 0 takes a free one. The first line printed says which.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Answer by this JSON script instead, one step per request. Unused steps make the exit code 1.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

pub(crate) fn run(options: &OfflineModelOptions) -> Result<()> {
    let script = options.script.as_ref().map(|path| {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read --script {}", path.display()))?;
        ModelScript::from_json(&text).with_context(|| format!("--script {}", path.display()))
    });
    let script = script.transpose()?;
    let model: Arc<dyn OfflineResponder> = match &script {
        Some(script) => Arc::new(script.clone()),
        None => Arc::new(OfflineModel),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(until_stopped(options.listen, model))?;
    if let Some(Err(leftover)) = script.map(|script| script.finish()) {
        bail!("{leftover}");
    }
    Ok(())
}

/// Until Ctrl-C or SIGTERM, which are how a test ends it.
async fn until_stopped(address: SocketAddr, model: Arc<dyn OfflineResponder>) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    println!("http://{}/v1", listener.local_addr()?);
    std::io::stdout().flush()?;
    tokio::select! {
        served = serve(listener, model) => served.context("the endpoint stopped"),
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    }
}
