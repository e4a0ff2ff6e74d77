//! `[mcp_servers.<name>]`: which MCP servers a thread connects to, and how.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml::{Table, Value};

use crate::ResolvedConfig;
use crate::typed::typed;

/// One enabled server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub name: String,
    /// No thread is opened without it.
    pub required: bool,
    pub startup_timeout: Duration,
    /// For calls and for reading resources.
    pub tool_timeout: Duration,
    /// Only these tools, by the server's names. Unset: all.
    pub enabled_tools: Option<BTreeSet<String>>,
    /// Excludes these.
    pub disabled_tools: BTreeSet<String>,
    /// Scopes of an OAuth login.
    pub scopes: Option<Vec<String>>,
    /// By the server's name of the tool.
    pub approval: BTreeMap<String, McpApprovalMode>,
    pub transport: McpTransport,
    /// The plugin that contains it.
    pub plugin: Option<String>,
    /// Folders that commands can write, in which its program is not searched.
    pub writable_roots: Vec<PathBuf>,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum McpTransport {
    /// A program that is started for each thread, connected by its standard streams.
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        /// Names of inherited variables.
        env_vars: Vec<String>,
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        url: String,
        /// The variable with the token.
        bearer_token_env_var: Option<String>,
        http_headers: BTreeMap<String, String>,
        /// Headers with values from variables.
        env_http_headers: BTreeMap<String, String>,
        oauth_resource: Option<String>,
    },
}

/// When a client is asked about a tool's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpApprovalMode {
    /// Unless the tool declares that it only reads.
    #[default]
    Auto,
    /// Each time.
    Prompt,
    /// Never.
    Approve,
}

/// A server with an invalid configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerProblem {
    pub name: String,
    pub required: bool,
    pub message: String,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct ServerKeys {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    env_vars: Option<Vec<String>>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    bearer_token: Option<Value>,
    bearer_token_env_var: Option<String>,
    http_headers: Option<BTreeMap<String, String>>,
    env_http_headers: Option<BTreeMap<String, String>>,
    oauth_resource: Option<String>,
    startup_timeout_sec: Option<f64>,
    startup_timeout_ms: Option<u64>,
    tool_timeout_sec: Option<f64>,
    required: bool,
    enabled_tools: Option<BTreeSet<String>>,
    disabled_tools: BTreeSet<String>,
    scopes: Option<Vec<String>>,
    tools: BTreeMap<String, McpToolKeys>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpToolKeys {
    approval_mode: McpApprovalMode,
}

const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
const TOOL_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum of a configured wait.
const LONGEST: f64 = 24.0 * 3600.0;

impl ResolvedConfig {
    /// The port of login redirects. Unset: any free one.
    pub fn mcp_oauth_callback_port(&self) -> Option<u16> {
        let port = self.merged.get("mcp_oauth_callback_port").and_then(Value::as_integer)?;
        u16::try_from(port).ok().filter(|port| *port != 0)
    }

    /// The enabled servers, by name. An invalid one comes with the reason.
    pub fn mcp_servers(&self) -> Vec<Result<McpServer, McpServerProblem>> {
        self.mcp_servers_with(Vec::new())
    }

    /// Like [`Self::mcp_servers`], with servers of plugins: name, table and plugin. A configured server overrides one
    /// of the same name, even if it is disabled.
    pub fn mcp_servers_with(
        &self,
        of_plugins: Vec<(String, Table, String)>,
    ) -> Vec<Result<McpServer, McpServerProblem>> {
        let own = self.merged.get("mcp_servers").and_then(Value::as_table);
        let more = of_plugins.into_iter().filter(|(name, ..)| own.is_none_or(|own| !own.contains_key(name)));
        let more = more.map(|(name, table, plugin)| (name, Value::Table(table), Some(plugin)));
        let own = own.into_iter().flatten().map(|(name, server)| (name.clone(), server.clone(), None));
        let (allowed, roots) = (self.requirements.mcp_servers.as_ref(), self.writable_roots());
        let mut servers: Vec<_> = own
            .chain(more)
            .filter(|(_, server, _)| is(server, "enabled", true))
            .map(|(name, server, plugin)| {
                let required = is(&server, "required", false);
                let problem = |message| McpServerProblem { name: name.clone(), required, message };
                check_allowed(allowed, &name, &server)
                    .and_then(|()| McpServer::read(&name, &server))
                    .map(|server| McpServer { plugin, writable_roots: roots.clone(), ..server })
                    .map_err(problem)
            })
            .collect();
        servers.sort_by(|a, b| name_of(a).cmp(name_of(b)));
        servers
    }
}

impl McpServer {
    fn read(name: &str, server: &Value) -> Result<Self, String> {
        check_name(name)?;
        let table = server.as_table().ok_or_else(|| format!("mcp_servers.{name} is not a table"))?;
        let keys: ServerKeys =
            typed(table).map_err(|misfit| format!("mcp_servers.{name}: {}", misfit.sentence()))?;
        let seconds = |value: Option<f64>| {
            value
                .filter(|seconds| *seconds > 0.0)
                .map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST)))
        };
        let startup_timeout = seconds(keys.startup_timeout_sec)
            .or(keys.startup_timeout_ms.map(Duration::from_millis))
            .unwrap_or(STARTUP_TIMEOUT);
        Ok(Self {
            name: name.to_owned(),
            required: keys.required,
            startup_timeout,
            tool_timeout: seconds(keys.tool_timeout_sec).unwrap_or(TOOL_TIMEOUT),
            enabled_tools: keys.enabled_tools.clone(),
            disabled_tools: keys.disabled_tools.clone(),
            scopes: keys.scopes.clone(),
            approval: keys.tools.iter().map(|(tool, keys)| (tool.clone(), keys.approval_mode)).collect(),
            transport: transport(name, keys)?,
            plugin: None,
            writable_roots: Vec::new(),
        })
    }
}

fn transport(name: &str, keys: ServerKeys) -> Result<McpTransport, String> {
    let misplaced = |key: &str, other: &str| format!("mcp_servers.{name}.{key} does not go with `{other}`");
    if keys.bearer_token.is_some() {
        return Err(format!(
            "mcp_servers.{name}.bearer_token is not supported; put the token into a variable and name it in \
             bearer_token_env_var"
        ));
    }
    match (keys.command, keys.url) {
        (Some(command), None) => {
            let of_http = [
                ("bearer_token_env_var", keys.bearer_token_env_var.is_some()),
                ("http_headers", keys.http_headers.is_some()),
                ("env_http_headers", keys.env_http_headers.is_some()),
                ("oauth_resource", keys.oauth_resource.is_some()),
            ];
            if let Some((key, _)) = of_http.into_iter().find(|(_, is_set)| *is_set) {
                return Err(misplaced(key, "command"));
            }
            Ok(McpTransport::Stdio {
                command,
                args: keys.args.unwrap_or_default(),
                env: keys.env.unwrap_or_default(),
                env_vars: keys.env_vars.unwrap_or_default(),
                cwd: keys.cwd,
            })
        }
        (None, Some(url)) => {
            let of_stdio = [
                ("args", keys.args.is_some()),
                ("env", keys.env.is_some()),
                ("env_vars", keys.env_vars.is_some()),
                ("cwd", keys.cwd.is_some()),
            ];
            if let Some((key, _)) = of_stdio.into_iter().find(|(_, is_set)| *is_set) {
                return Err(misplaced(key, "url"));
            }
            Ok(McpTransport::Http {
                url,
                bearer_token_env_var: keys.bearer_token_env_var,
                http_headers: keys.http_headers.unwrap_or_default(),
                env_http_headers: keys.env_http_headers.unwrap_or_default(),
                oauth_resource: keys.oauth_resource,
            })
        }
        (Some(_), Some(_)) => Err(misplaced("command", "url")),
        (None, None) => Err(format!("mcp_servers.{name} has neither `command` nor `url`")),
    }
}

/// Only servers that an administrator lists may run, exactly as listed.
fn check_allowed(allowed: Option<&Table>, name: &str, server: &Value) -> Result<(), String> {
    let Some(allowed) = allowed else { return Ok(()) };
    let identity = allowed.get(name).and_then(|entry| entry.get("identity"));
    let is_it = ["command", "url"].iter().any(|key| {
        let wanted = identity.and_then(|identity| identity.get(key)).and_then(Value::as_str);
        wanted.is_some() && wanted == server.get(key).and_then(Value::as_str)
    });
    match is_it {
        true => Ok(()),
        false => {
            Err(format!("the administrator's requirements do not allow the MCP server `{name}` as it is"))
        }
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "the name `{name}` is not valid; use letters, digits, `-` and `_` in [mcp_servers.<name>]"
        )),
    }
}

fn name_of(server: &Result<McpServer, McpServerProblem>) -> &str {
    match server {
        Ok(server) => &server.name,
        Err(problem) => &problem.name,
    }
}

fn is(server: &Value, key: &str, default: bool) -> bool {
    server.get(key).and_then(Value::as_bool).unwrap_or(default)
}

impl std::fmt::Debug for McpTransport {
    /// Neither variables nor headers: both may contain keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, .. } => {
                f.debug_struct("Stdio").field("command", command).finish_non_exhaustive()
            }
            Self::Http { .. } => f.debug_struct("Http").finish_non_exhaustive(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Result<McpServer, String> {
        McpServer::read(name, &Value::Table(text.parse().expect("TOML")))
    }

    #[test]
    fn a_program_with_everything() {
        let text = r#"
            command = "srv"
            args = ["-v"]
            env = {A = "1"}
            env_vars = ["TOKEN"]
            cwd = "/tmp"
            startup_timeout_sec = 2.5
            startup_timeout_ms = 9
            tool_timeout_sec = 7
            required = true
            enabled_tools = ["a", "b"]
            disabled_tools = ["b"]
            name = "ignored"
            tools.a.approval_mode = "approve"
        "#;
        let server = read("x-1_y", text).expect("it is right");
        assert_eq!(
            (server.startup_timeout, server.tool_timeout),
            (Duration::from_millis(2500), Duration::from_secs(7))
        );
        assert!(server.required && server.disabled_tools.contains("b"));
        assert_eq!(server.enabled_tools.map(|tools| tools.len()), Some(2));
        assert_eq!(server.approval["a"], McpApprovalMode::Approve);
        let McpTransport::Stdio { command, args, env, env_vars, cwd } = server.transport else { panic!() };
        assert_eq!((command.as_str(), args, env["A"].as_str()), ("srv", vec!["-v".to_owned()], "1"));
        assert_eq!((env_vars, cwd), (vec!["TOKEN".to_owned()], Some("/tmp".into())));
    }

    #[test]
    fn limits_have_defaults() {
        let server = read("x", "url = 'https://h/mcp'\nstartup_timeout_ms = 1500").expect("it is right");
        assert_eq!(
            (server.startup_timeout, server.tool_timeout),
            (Duration::from_millis(1500), TOOL_TIMEOUT)
        );
        let server = read("x", "url = 'https://h/mcp'\nstartup_timeout_sec = -1").expect("it is right");
        assert_eq!(server.startup_timeout, STARTUP_TIMEOUT);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (name, text, expected) in [
            ("x", "", "mcp_servers.x has neither `command` nor `url`"),
            ("x", "command = 'a'\nurl = 'b'", "mcp_servers.x.command does not go with `url`"),
            ("x", "url = 'b'\nargs = []", "mcp_servers.x.args does not go with `url`"),
            (
                "x",
                "command = 'b'\nhttp_headers = {}",
                "mcp_servers.x.http_headers does not go with `command`",
            ),
            ("x", "url = 'b'\nbearer_token = 's'", "mcp_servers.x.bearer_token is not supported"),
            ("x y", "command = 'a'", "the name `x y` is not valid"),
            ("x", "command = 5", "mcp_servers.x: "),
        ] {
            let problem = read(name, text).expect_err("it is wrong");
            assert!(problem.starts_with(expected), "{problem}");
        }
    }

    #[test]
    fn servers_of_plugins_stand_behind_those_of_the_configuration() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings =
            "[mcp_servers.a]\ncommand = 'mine'\n[mcp_servers.off]\ncommand = 'x'\nenabled = false\n";
        std::fs::write(dir.path().join("config.toml"), settings).expect("written");
        let loader =
            crate::Loader::new(crate::Home::at(dir.path()), Vec::new(), crate::LoaderOptions::default());
        let config = loader.load(&crate::LoadRequest::default()).expect("plain");
        let table = |text: &str| text.parse::<Table>().expect("TOML");
        let brought = ["a", "b", "off", "bad name"]
            .map(|name| (name.to_owned(), table("command = 'theirs'"), "p".to_owned()));
        let shown: Vec<String> = config
            .mcp_servers_with(brought.to_vec())
            .into_iter()
            .map(|server| match server {
                Ok(server) => format!("{} {:?} {:?}", server.name, server.transport, server.plugin),
                Err(problem) => problem.message,
            })
            .collect();
        assert_eq!(shown.len(), 3, "{shown:?}");
        assert_eq!(shown[0], "a Stdio { command: \"mine\", .. } None");
        assert_eq!(shown[1], "b Stdio { command: \"theirs\", .. } Some(\"p\")");
        assert!(shown[2].contains("the name `bad name` is not valid"), "{shown:?}");
    }

    #[test]
    fn requirements_name_the_servers_that_may_run() {
        let allowed: Table =
            "a.identity.command = 'srv'\nb.identity.url = 'https://h'".parse().expect("TOML");
        let server = |text: &str| Value::Table(text.parse().expect("TOML"));
        for (name, text, is_allowed) in [
            ("a", "command = 'srv'", true),
            ("a", "command = 'other'", false),
            ("b", "url = 'https://h'", true),
            ("c", "command = 'srv'", false),
        ] {
            assert_eq!(check_allowed(Some(&allowed), name, &server(text)).is_ok(), is_allowed, "{name}");
            assert!(check_allowed(None, name, &server(text)).is_ok());
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let server =
            read("x", "url = 'https://h/?k=s3cret'\nhttp_headers = {A = 's3cret'}").expect("it is right");
        assert!(!format!("{server:?}").contains("s3cret"));
    }
}
