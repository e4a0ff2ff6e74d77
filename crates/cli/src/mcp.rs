//! `oarlock mcp`: which MCP servers threads connect to.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Subcommand};
use mcp::{LoginOptions, McpServices};
use runtime::SystemClock;
use runtime::config::{
    LoadRequest, Loader, McpServer, McpServerProblem, McpTransport, ResolvedConfig, remove_mcp_server,
    write_mcp_server,
};

use crate::flags::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  oarlock mcp add search --env REGION=eu -- search-server --stdio
  oarlock mcp add tickets --url https://tickets.example/mcp --bearer-token-env-var TICKETS_TOKEN
  oarlock mcp login tickets                      for servers that want a login
  oarlock mcp list
  oarlock mcp remove files";

/// How long a login waits for the browser.
const LOGIN_LIMIT: Duration = Duration::from_secs(300);

#[derive(Debug, Args)]
pub(crate) struct McpOptions {
    #[command(subcommand)]
    command: McpCommand,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// List the configured servers, one line each.
    List,
    /// Show one server. Values of variables and headers are not shown.
    Get { name: String },
    /// Write a server into your config.toml. One of the same name is replaced.
    Add(AddArgs),
    /// Take a server out of your config.toml.
    Remove { name: String },
    /// Log in to a server: prints the address to open in a browser, and waits until that is done.
    Login {
        name: String,
        /// Scopes to ask for, separated by commas. Unset: those of your config.toml or of the server.
        #[arg(long, value_delimiter = ',')]
        scopes: Option<Vec<String>>,
    },
    /// Forget the tokens of a login.
    Logout { name: String },
}

#[derive(Debug, Args)]
struct AddArgs {
    /// Letters, digits, `-` and `_`.
    name: String,
    /// A variable for the server, as NAME=VALUE. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    env: Vec<String>,
    /// The address of a server that is reached by HTTP.
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// The variable that holds the token for that server.
    #[arg(long, value_name = "NAME", requires = "url")]
    bearer_token_env_var: Option<String>,
    /// The program to start, with its arguments, after `--`.
    #[arg(last = true)]
    command: Vec<String>,
}

pub(crate) fn run(options: McpOptions, root: Flags) -> Result<ExitCode> {
    let loader = root.then(options.flags).loader()?;
    let mut out = io::stdout().lock();
    match options.command {
        McpCommand::List => {
            let servers = servers(&loader)?;
            if servers.is_empty() {
                writeln!(out, "There is no MCP server; `oarlock mcp add NAME -- PROGRAM` adds one.")?;
            }
            for server in servers {
                match server {
                    Ok(server) => writeln!(out, "{}  {}", server.name, reached(&server.transport))?,
                    Err(problem) => writeln!(out, "{}  cannot be used: {}", problem.name, problem.message)?,
                }
            }
        }
        McpCommand::Get { name } => {
            show(&mut out, &server_named(&loader, &name)?)?;
        }
        McpCommand::Add(args) => {
            let (name, transport) = transport(args)?;
            write_mcp_server(loader.home(), &name, &transport)?;
            writeln!(out, "Written to {}.", loader.home().own_config_file().display())?;
        }
        McpCommand::Login { name, scopes } => {
            let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio.block_on(log_in(&loader, &name, scopes, &mut out))?;
        }
        McpCommand::Logout { name } => {
            let (server, services) =
                (server_named(&loader, &name)?, McpServices::new(loader.home(), Arc::new(SystemClock)));
            let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            match tokio.block_on(services.logins().log_out(&server))? {
                true => writeln!(out, "Logged out of `{name}`.")?,
                false => writeln!(out, "Nobody was logged in to `{name}`.")?,
            }
        }
        McpCommand::Remove { name } => {
            if !remove_mcp_server(loader.home(), &name)? {
                bail!("{} in {}", unknown(&name), loader.home().own_config_file().display());
            }
            writeln!(out, "Taken out of {}.", loader.home().own_config_file().display())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the address first: the user opens it while this waits.
async fn log_in(
    loader: &Loader,
    name: &str,
    scopes: Option<Vec<String>>,
    out: &mut impl Write,
) -> Result<()> {
    let server = server_named(loader, name)?;
    let port = load(loader)?.mcp_oauth_callback_port();
    let services = McpServices::new(loader.home(), Arc::new(SystemClock));
    let options = LoginOptions { scopes, limit: LOGIN_LIMIT, port };
    let login = services.logins().begin(&server, options).await?;
    writeln!(out, "Open this address in a browser to log in to `{name}`:\n\n{}\n", login.url)?;
    out.flush()?;
    tokio::select! {
        ended = login.ended => ended?,
        _ = tokio::signal::ctrl_c() => bail!("the login was given up"),
    }
    writeln!(out, "Logged in to `{name}`.")?;
    Ok(())
}

fn server_named(loader: &Loader, name: &str) -> Result<McpServer> {
    let found = servers(loader)?.into_iter().find(|server| name_of(server) == name);
    found.ok_or_else(|| unknown(name))?.map_err(|problem| anyhow!(problem.message))
}

fn servers(loader: &Loader) -> Result<Vec<Result<McpServer, McpServerProblem>>> {
    let config = load(loader)?;
    Ok(config.mcp_servers_with(plugins::mcp_servers(&config)))
}

fn load(loader: &Loader) -> Result<ResolvedConfig> {
    let request = LoadRequest { cwd: std::env::current_dir().ok(), ..LoadRequest::default() };
    Ok(loader.load(&request)?)
}

fn name_of(server: &Result<McpServer, McpServerProblem>) -> &str {
    match server {
        Ok(server) => &server.name,
        Err(problem) => &problem.name,
    }
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow!("there is no MCP server `{name}`")
}

fn reached(transport: &McpTransport) -> String {
    match transport {
        McpTransport::Stdio { command, args, .. } => {
            std::iter::once(command).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
        }
        // A query may hold a key.
        McpTransport::Http { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
    }
}

fn show(out: &mut impl Write, server: &McpServer) -> io::Result<()> {
    writeln!(out, "{}", server.name)?;
    writeln!(out, "  server: {}", reached(&server.transport))?;
    let names = |names: Vec<&String>| names.into_iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    match &server.transport {
        McpTransport::Stdio { env, env_vars, cwd, .. } => {
            let variables = names(env.keys().chain(env_vars).collect());
            if !variables.is_empty() {
                writeln!(out, "  variables: {variables}")?;
            }
            if let Some(cwd) = cwd {
                writeln!(out, "  folder: {}", cwd.display())?;
            }
        }
        McpTransport::Http { bearer_token_env_var, http_headers, env_http_headers, .. } => {
            if let Some(variable) = bearer_token_env_var {
                writeln!(out, "  token in: {variable}")?;
            }
            let headers = names(http_headers.keys().chain(env_http_headers.keys()).collect());
            if !headers.is_empty() {
                writeln!(out, "  headers: {headers}")?;
            }
        }
    }
    writeln!(out, "  startup timeout: {} s", server.startup_timeout.as_secs_f64())?;
    writeln!(out, "  tool timeout: {} s", server.tool_timeout.as_secs_f64())
}

fn transport(args: AddArgs) -> Result<(String, McpTransport)> {
    let AddArgs { name, env, url, bearer_token_env_var, command } = args;
    if let Some(url) = url {
        let (http_headers, env_http_headers) = Default::default();
        let oauth_resource = None;
        let http =
            McpTransport::Http { url, bearer_token_env_var, http_headers, env_http_headers, oauth_resource };
        return Ok((name, http));
    }
    let mut words = command.into_iter();
    let Some(command) = words.next() else {
        bail!("say what to start after `--`, or where the server is with --url");
    };
    let mut variables = BTreeMap::new();
    for pair in env {
        let Some((key, value)) = pair.split_once('=').filter(|(key, _)| !key.is_empty()) else {
            bail!("--env takes NAME=VALUE");
        };
        variables.insert(key.to_owned(), value.to_owned());
    }
    let (args, env_vars) = (words.collect(), Vec::new());
    Ok((name, McpTransport::Stdio { command, args, env: variables, env_vars, cwd: None }))
}
