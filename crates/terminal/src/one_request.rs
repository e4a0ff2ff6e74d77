//! One request to a server, for commands that ask and end.

use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::connection::{ServerAddress, ServerConnection};

/// An answer that takes longer is none.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// Connects, asks, and leaves. A refusal is an error in the server's own words.
pub async fn ask_once(address: &ServerAddress, version: &str, method: &str, params: &Value) -> Result<Value> {
    let mut connection = ServerConnection::open(address).await?;
    let asking = async {
        let client = json!({ "name": "oarlock_cli", "title": null, "version": version });
        let capabilities = json!({ "experimentalApi": true, "host": { "versions": [1] } });
        let initialize = json!({ "clientInfo": client, "capabilities": capabilities });
        answer(&mut connection, 1, "initialize", &initialize).await?;
        answer(&mut connection, 2, method, params).await
    };
    let answered = tokio::time::timeout(ANSWER_LIMIT, asking).await;
    connection.close().await;
    answered.unwrap_or_else(|_| bail!("no answer in {} s", ANSWER_LIMIT.as_secs()))
}

async fn answer(connection: &mut ServerConnection, id: u64, method: &str, params: &Value) -> Result<Value> {
    connection.send(&json!({ "id": id, "method": method, "params": params })).await;
    while let Some(mut message) = connection.incoming.recv().await {
        if message["id"] != id || message["method"].is_string() {
            continue;
        }
        if let Some(error) = message.get("error") {
            bail!("{}", error["message"].as_str().unwrap_or("refused"));
        }
        return Ok(message["result"].take());
    }
    bail!("the server ended the connection")
}
