//! Settings that are understood and have no effect yet. Whoever sets one expects something, so it is said.

use toml::{Table, Value};

use crate::keys::Keys;
use crate::{Config, ConfigWarning};

pub(super) fn warnings(keys: &Keys) -> impl Iterator<Item = ConfigWarning> + use<> {
    let servers: Vec<String> = enabled(&keys.mcp_servers).map(|(name, _)| name.clone()).collect();
    let servers = (!servers.is_empty()).then(|| {
        ConfigWarning::with_details(
            "MCP servers are not supported yet, so none is started.",
            format!("[mcp_servers] names {}.", servers.join(", ")),
        )
    });
    let notify = keys
        .notify
        .as_ref()
        .filter(|command| !command.is_empty())
        .map(|_| ConfigWarning::new("notify is not supported yet, so no program is run after a turn."));
    servers.into_iter().chain(notify)
}

impl Config {
    /// The MCP servers without which no thread is to be opened.
    pub fn required_mcp_servers(&self) -> Vec<String> {
        let servers = self.merged.get("mcp_servers").and_then(Value::as_table);
        let enabled = servers.into_iter().flat_map(enabled);
        let required = enabled.filter(|(_, server)| is(server, "required", false));
        required.map(|(name, _)| name.clone()).collect()
    }
}

fn enabled(servers: &Table) -> impl Iterator<Item = (&String, &Value)> {
    servers.iter().filter(|(_, server)| is(server, "enabled", true))
}

fn is(server: &Value, key: &str, default: bool) -> bool {
    server.get(key).and_then(Value::as_bool).unwrap_or(default)
}
