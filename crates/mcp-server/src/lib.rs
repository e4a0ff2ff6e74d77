//! The runtime as a server of tools for other agents, over standard input and output. Owns what is said as an MCP
//! server. Must not know anything of the command line.

mod approval;
mod call;
mod limits;
mod peer;
mod threads;
mod tools;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use core_api::ThreadManager;
use runtime::config::{Home, Loader, LoaderOptions};
use serde_json::{Value, json};
use tokio::io::BufReader;

use limits::CallLimits;
use peer::{ClientLine, ClientPeer, read_message};
use threads::OpenThreads;

/// The revisions of MCP that are spoken, the newest first.
const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const METHOD_NOT_FOUND: i64 = -32601;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

/// Serves until the client closes our input. `flags` set keys of the configuration.
pub fn run(flags: Vec<(String, String)>) -> Result<ExitCode> {
    let limits = CallLimits::new(Loader::new(Home::from_env()?, flags.clone(), LoaderOptions::default()));
    let mut builder = ThreadManager::builder().client_name("oarlock_mcp_server");
    for (key, value) in flags {
        builder = builder.flag(key, value);
    }
    let manager = builder.build()?;
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    tokio.block_on(serve(manager, limits));
    Ok(ExitCode::SUCCESS)
}

/// Until the client closes our input. Calls that run then are interrupted.
async fn serve(manager: ThreadManager, limits: CallLimits) {
    let (peer, writing) = ClientPeer::start(tokio::io::stdout());
    let threads = Arc::new(OpenThreads::new(manager, limits));
    let mut input = BufReader::new(tokio::io::stdin());
    while let Some(message) = read_message(&mut input).await {
        match message {
            ClientLine::TooLong => peer.fail(&Value::Null, INVALID_REQUEST, "the message is too long").await,
            ClientLine::Garbage => peer.fail(&Value::Null, PARSE_ERROR, "the message is not JSON").await,
            ClientLine::Message(message) => take(&peer, &threads, message).await,
        }
    }
    threads.shut_down().await;
    drop(peer);
    let _ = writing.await;
}

async fn take(peer: &Arc<ClientPeer>, threads: &Arc<OpenThreads>, message: Value) {
    let method = message.get("method").and_then(Value::as_str);
    let id = message.get("id").filter(|id| id.is_string() || id.is_number()).cloned();
    let params = message.get("params").cloned().unwrap_or(Value::Null);
    match (method, id) {
        (Some("tools/call"), Some(id)) => threads.spawn_call(peer.clone(), id, params),
        (Some(method), Some(id)) => answer(peer, method, &id, &params).await,
        (Some("notifications/cancelled"), None) => {
            if let Some(id) = params.get("requestId") {
                threads.cancel(id);
            }
        }
        (Some(_), None) => {}
        (None, Some(id)) => peer.answered(&id, message),
        (None, None) => {
            peer.fail(&Value::Null, INVALID_REQUEST, "the message is neither a request nor a response").await;
        }
    }
}

async fn answer(peer: &ClientPeer, method: &str, id: &Value, params: &Value) {
    match method {
        "initialize" => {
            peer.learn(params.pointer("/capabilities/elicitation").is_some());
            let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
            let revision = REVISIONS.into_iter().find(|known| *known == asked).unwrap_or(REVISIONS[0]);
            let version = env!("CARGO_PKG_VERSION");
            let hello = json!({
                "protocolVersion": revision,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "oarlock-mcp-server", "title": "Oarlock", "version": version},
            });
            peer.succeed(id, hello).await;
        }
        "ping" => peer.succeed(id, json!({})).await,
        "tools/list" => peer.succeed(id, json!({"tools": tools::list()})).await,
        other => {
            let problem = format!("there is no method `{}`", other.chars().take(64).collect::<String>());
            peer.fail(id, METHOD_NOT_FOUND, &problem).await;
        }
    }
}
