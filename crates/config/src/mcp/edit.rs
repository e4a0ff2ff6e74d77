//! Changes of `[mcp_servers]` in the user's own file.

use toml_edit::{Array, Item, Table, value};

use crate::edit::edit;
use crate::{ConfigError, Home, McpTransport};

/// Stores that a server's tool needs no approval from now on.
pub fn approve_mcp_tool(home: &Home, server: &str, tool: &str) -> Result<(), ConfigError> {
    edit(home, |document| {
        let mut table = document.as_table_mut();
        for key in ["mcp_servers", server, "tools", tool] {
            table = inner(table, key)?;
        }
        table.insert("approval_mode", value("approve"));
        Ok(())
    })
}

/// Writes a server, replacing one of the same name.
pub fn write_mcp_server(home: &Home, name: &str, transport: &McpTransport) -> Result<(), ConfigError> {
    super::servers::check_name(name).map_err(ConfigError::value)?;
    edit(home, |document| {
        let servers = inner(document.as_table_mut(), "mcp_servers")?;
        servers.insert(name, Item::Table(table_of(transport)));
        Ok(())
    })
}

/// Removes a server from the file. Returns whether it was there.
pub fn remove_mcp_server(home: &Home, name: &str) -> Result<bool, ConfigError> {
    edit(home, |document| {
        let servers = document.get_mut("mcp_servers").and_then(Item::as_table_like_mut);
        Ok(servers.and_then(|servers| servers.remove(name)).is_some())
    })
}

fn table_of(transport: &McpTransport) -> Table {
    let mut table = Table::new();
    let mut set = |key: &str, item: Item| drop(table.insert(key, item));
    let list = |texts: &[String]| value(texts.iter().collect::<Array>());
    let map = |pairs: &std::collections::BTreeMap<String, String>| {
        value(pairs.iter().collect::<toml_edit::InlineTable>())
    };
    match transport {
        McpTransport::Stdio { command, args, env, env_vars, cwd } => {
            set("command", value(command));
            if !args.is_empty() {
                set("args", list(args));
            }
            if !env.is_empty() {
                set("env", map(env));
            }
            if !env_vars.is_empty() {
                set("env_vars", list(env_vars));
            }
            if let Some(cwd) = cwd {
                set("cwd", value(cwd.to_string_lossy().into_owned()));
            }
        }
        McpTransport::Http { url, bearer_token_env_var, http_headers, env_http_headers, .. } => {
            set("url", value(url));
            if let Some(variable) = bearer_token_env_var {
                set("bearer_token_env_var", value(variable));
            }
            if !http_headers.is_empty() {
                set("http_headers", map(http_headers));
            }
            if !env_http_headers.is_empty() {
                set("env_http_headers", map(env_http_headers));
            }
        }
    }
    table
}

fn inner<'a>(table: &'a mut Table, key: &str) -> Result<&'a mut Table, ConfigError> {
    let mut made = Table::new();
    made.set_implicit(true);
    let item = table.entry(key).or_insert(Item::Table(made));
    if let Item::Value(toml_edit::Value::InlineTable(inline)) = item {
        *item = Item::Table(inline.clone().into_table());
    }
    item.as_table_mut().ok_or_else(|| ConfigError::value(format!("`{key}` is not a table")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_written_and_taken_out() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::at(dir.path().join("home"));
        let stdio = McpTransport::Stdio {
            command: "srv".to_owned(),
            args: vec!["a b".to_owned()],
            env: [("K".to_owned(), "v".to_owned())].into(),
            env_vars: Vec::new(),
            cwd: None,
        };
        write_mcp_server(&home, "one", &stdio).expect("written");
        let text = std::fs::read_to_string(home.own_config_file()).expect("readable");
        assert_eq!(text, "[mcp_servers.one]\ncommand = \"srv\"\nargs = [\"a b\"]\nenv = { K = \"v\" }\n");
        assert!(write_mcp_server(&home, "not a name", &stdio).is_err());
        assert!(remove_mcp_server(&home, "one").expect("written"));
        assert!(!remove_mcp_server(&home, "one").expect("written"));
    }

    #[test]
    fn an_approval_is_written_beside_what_is_there() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::at(dir.path().join("home"));
        home.create_state().expect("made");
        let file = home.own_config_file();
        std::fs::write(&file, "# mine\n[mcp_servers.s]\ncommand = \"x\" # the program\n").expect("written");
        approve_mcp_tool(&home, "s", "a.b").expect("written");
        approve_mcp_tool(&home, "s", "a.b").expect("written again");
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(text.starts_with("# mine\n[mcp_servers.s]\ncommand = \"x\" # the program\n"), "{text}");
        let table: toml::Table = text.parse().expect("TOML");
        assert_eq!(table["mcp_servers"]["s"]["tools"]["a.b"]["approval_mode"].as_str(), Some("approve"));
    }
}
