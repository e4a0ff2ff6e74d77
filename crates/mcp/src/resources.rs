//! The tools by which a model reads the resources of servers.

use std::sync::Arc;
use std::time::Duration;

use engine::{Gate, ToolKind, ToolOutcome, ToolPayload, ToolSpec};
use protocol::{OperationType, ToolEffects};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tools::{ToolCx, ToolError};

use crate::McpError;
use crate::call::{Shown, arguments_of};
use crate::server::{LiveServer, Server, list};

const LIST: &str = "list_mcp_resources";
const TEMPLATES: &str = "list_mcp_resource_templates";
const READ: &str = "read_mcp_resource";
pub(crate) const TOOLS: [&str; 3] = [LIST, TEMPLATES, READ];

/// Limit of a resource's text.
const MAX_TEXT: usize = 4 * 1024 * 1024;

#[derive(Debug, Deserialize)]
struct ListArgs {
    server: Option<String>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ReadArgs {
    server: String,
    uri: String,
}

pub(crate) fn specs() -> Vec<ToolSpec> {
    let server =
        json!({"type": "string", "description": "Name of one MCP server. Without it, all are asked."});
    let cursor =
        json!({"type": "string", "description": "The nextCursor of the page before. Needs `server`."});
    let listing = json!({"type": "object", "properties": {"server": server, "cursor": cursor},
        "additionalProperties": false});
    let reading = json!({"type": "object", "properties": {
        "server": {"type": "string", "description": "Name of the MCP server, as the lists give it."},
        "uri": {"type": "string", "description": "URI of the resource, as the lists give it."}},
        "required": ["server", "uri"], "additionalProperties": false});
    vec![
        spec(
            LIST,
            "List what MCP servers offer to read: files, database schemas, anything that gives context. Prefer it \
            to searching the web.",
            &listing,
        ),
        spec(
            TEMPLATES,
            "List the resource templates of MCP servers: URIs with places to fill in, for \
            read_mcp_resource.",
            &listing,
        ),
        spec(READ, "Read one resource of an MCP server.", &reading),
    ]
}

fn spec(name: &str, about: &str, parameters: &Value) -> ToolSpec {
    let json = json!({"type": "function", "name": name, "description": about, "strict": false,
        "parameters": parameters});
    ToolSpec {
        namespace: None,
        name: name.to_owned(),
        kind: ToolKind::Builtin,
        json: Some(Arc::new(json)),
        parallel: true,
        gate: Gate::Open,
        effects: ToolEffects::Readonly,
    }
}

pub(crate) async fn run(
    servers: Vec<Arc<Server>>,
    payload: ToolPayload,
    cx: Arc<ToolCx>,
) -> Result<ToolOutcome, ToolError> {
    let name = cx.name().to_owned();
    let mut arguments = arguments_of(&payload)?;
    if arguments.is_null() {
        arguments = json!({});
    }
    let server = arguments.get("server").and_then(Value::as_str).unwrap_or("codex").to_owned();
    let shown = Shown::new(cx.clone(), &server, &name, arguments.clone());
    let work = async {
        match name.as_str() {
            READ => read(&servers, serde_json::from_value(arguments)?).await,
            _ => list_all(&servers, &name, serde_json::from_value(arguments)?).await,
        }
    };
    let proposal = shown.proposal(0, OperationType::Mcp, ToolEffects::Readonly);
    if !cx.propose(proposal).await.is_approved() {
        return Ok(shown.failed("the call was refused; do not try it again".to_owned()));
    }
    Ok(match work.await {
        Ok(found) => shown.told(found.to_string()),
        Err(error) => shown.failed(format!("{name} failed: {error}")),
    })
}

async fn list_all(servers: &[Arc<Server>], tool: &str, args: ListArgs) -> Result<Value, ToolError> {
    let (method, key) = match tool {
        LIST => ("resources/list", "resources"),
        _ => ("resources/templates/list", "resourceTemplates"),
    };
    let Some(name) = args.server else {
        if args.cursor.is_some() {
            return Err(ToolError::Failed("cursor can only be used when a server is named".to_owned()));
        }
        let mut all = Vec::new();
        for server in servers {
            // A server without a connection offers nothing.
            let Ok(live) = server.live() else { continue };
            if !live.has_resources {
                continue;
            }
            let found = timed(server, list(&live.peer, method, key)).await;
            match found {
                Ok(entries) => all.extend(entries.into_iter().map(|entry| named(server.name(), entry))),
                Err(error) => tracing::warn!(server = server.name(), %error, "{method} failed"),
            }
        }
        return Ok(json!({key: all}));
    };
    let (server, live) = find(servers, &name)?;
    let params = args.cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    let mut page = timed(server, live.peer.request(method, params)).await.map_err(|error| failed(&error))?;
    let entries = match page.get_mut(key).map(Value::take) {
        Some(Value::Array(entries)) => entries,
        _ => return Err(ToolError::Failed(format!("{method} gave no list"))),
    };
    let entries: Vec<Value> = entries.into_iter().map(|entry| named(&name, entry)).collect();
    let mut result = json!({"server": name, key: entries});
    if let Some(next) = page.get("nextCursor").filter(|next| next.is_string()) {
        result["nextCursor"] = next.clone();
    }
    Ok(result)
}

async fn read(servers: &[Arc<Server>], args: ReadArgs) -> Result<Value, ToolError> {
    let (server, live) = find(servers, &args.server)?;
    let reading = live.peer.request("resources/read", json!({"uri": args.uri}));
    let mut found = timed(server, reading).await.map_err(|error| failed(&error))?;
    let contents = found.get_mut("contents").map(Value::take).filter(Value::is_array);
    let contents = contents.ok_or_else(|| ToolError::Failed("resources/read gave no contents".to_owned()))?;
    if contents.to_string().len() > MAX_TEXT {
        return Err(ToolError::Failed(format!("the resource is larger than {MAX_TEXT} bytes")));
    }
    Ok(json!({"server": args.server, "uri": args.uri, "contents": contents}))
}

fn find<'a>(servers: &'a [Arc<Server>], name: &str) -> Result<(&'a Arc<Server>, Arc<LiveServer>), ToolError> {
    let server = servers.iter().find(|server| server.name() == name);
    let server = server.ok_or_else(|| ToolError::Failed(format!("there is no MCP server `{name}`")))?;
    Ok((server, server.live().map_err(|error| failed(&error))?))
}

async fn timed<T>(server: &Server, work: impl Future<Output = Result<T, McpError>>) -> Result<T, McpError> {
    let limit: Duration = server.options.tool_timeout;
    tokio::time::timeout(limit, work).await.unwrap_or(Err(McpError::Timeout(limit)))
}

fn failed(error: &McpError) -> ToolError {
    ToolError::Failed(error.to_string())
}

/// An entry with the name of its server.
fn named(server: &str, entry: Value) -> Value {
    let mut with_server = Map::from_iter([("server".to_owned(), json!(server))]);
    if let Value::Object(entry) = entry {
        with_server.extend(entry.into_iter().filter(|(key, _)| key != "server"));
    }
    Value::Object(with_server)
}
