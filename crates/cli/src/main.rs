//! The `oarlock` binary: reads the command line and calls the crate that does the work.

mod app_server;
mod complete;
mod completions;
mod config_command;
mod config_parts;
mod debug;
mod demo;
mod doctor;
#[cfg(test)]
mod documents;
mod earlier_rules;
mod exec;
mod flags;
mod generate;
mod host;
mod interactive;
mod local_servers;
mod logging;
mod login;
mod mcp;
mod mcp_server;
mod models;
mod offline_model;
mod plugins;
mod policy_check;
mod private_folder;
mod sandbox_check;
mod sandbox_run;
mod service_args;
mod session;
mod status;
mod terminal;
mod threads;
mod trust;

mod wording;
mod workplace;

use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::flags::Flags;
use crate::terminal::clean;

/// An agent runtime: one prompt at the terminal, or threads and turns over JSON-RPC.
#[derive(Debug, Parser)]
#[command(name = "oarlock", version, after_help = EXAMPLES)]
struct Cli {
    /// Begin an interactive session with this; in a terminal, `oarlock` alone begins one without.
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    #[command(flatten)]
    interactive: interactive::InteractiveOptions,
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Option<CliCommand>,
}

const EXAMPLES: &str = "\
Examples:
  oarlock                                        an interactive session, in a terminal
  oarlock demo                                   see it work, without a key and without a network
  oarlock exec \"explain this folder\"             one prompt, one answer
  oarlock exec --provider offline \"say hello\"    the same with the model inside this program
  git diff | oarlock exec \"review this\"          what is piped in goes with the prompt
  oarlock exec resume --last \"now fix it\"        go on with the last thread of this folder
  oarlock threads                                what there is to go on with
  oarlock models                                 what can be asked for with --model
  oarlock config set model NAME                  change a setting; comments stay
  oarlock doctor                                 what is set up, and what to do about the rest
  oarlock debug prompt                           what the model would be told next
  oarlock policy check -- git push               would that run, and which rule says so?
  oarlock sandbox -- ls /                        run a command of your own in the sandbox
  oarlock host                                   keep tasks that survive restarts; `oarlock pending` shows what waits
  oarlock app-server                             serve an editor or another client on standard input and output

Environment:
  OARLOCK_HOME    settings and records; else CODEX_HOME, else ~/.oarlock
  OPENAI_API_KEY  the key of the provider `openai`
  RUST_LOG        which log lines to write to standard error; LOG_FORMAT=json writes them as JSON";

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Run one turn and print the answer.
    #[command(after_help = EXEC_EXAMPLES)]
    Exec(Box<exec::ExecArgs>),
    /// Go on with an earlier thread in an interactive session.
    Resume(Box<interactive::ResumeOptions>),
    /// List, show, find, name, archive and delete stored threads.
    Threads(Box<threads::ThreadsOptions>),
    /// List the models that can be asked for.
    Models(models::ModelsOptions),
    /// Log in with a ChatGPT account or an API key.
    #[command(after_help = login::EXAMPLES)]
    Login(login::AccountLoginOptions),
    /// Forget the login.
    Logout(login::LogoutOptions),
    /// Read and change settings.
    #[command(after_help = config_command::EXAMPLES)]
    Config(config_command::ConfigOptions),
    /// Serve threads and turns to clients that speak JSON-RPC, or write the protocol to files.
    #[command(args_conflicts_with_subcommands = true)]
    AppServer(AppServer),
    /// Keep tasks: durable threads that survive the end of every process, and wait for people as long as it takes.
    #[command(args_conflicts_with_subcommands = true)]
    Host(HostOptionsWithFlags),
    /// Show what a running host or app-server does: connections, threads, turns, what waits.
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusOptions),
    /// List the tasks of a running host.
    Tasks(host::tasks::TasksOptions),
    /// List what waits for a decision in a running host.
    #[command(after_help = host::commands::EXAMPLES)]
    Pending(host::commands::PendingOptions),
    /// Let something run that waits.
    Approve(host::commands::ApproveOptions),
    /// Do not let it run.
    Reject(host::commands::RejectOptions),
    /// Run nothing, and give the model this result.
    Respond(host::commands::RespondOptions),
    /// Run something again whose outcome is unknown.
    Retry(host::commands::DecideOptions),
    /// Show, suspend, resume or delete a task of a running host.
    Task(host::tasks::TaskOptions),
    /// List the placements of a running host, or keep, suspend, give up or remove one.
    Placements(host::place_commands::PlacementsOptions),
    /// Sum up what the tasks of a running host used, and what it cost.
    Usage(host::usage::UsageOptions),
    /// Show a real turn, with files and all, that needs no key and no network.
    Demo(demo::DemoOptions),
    /// Run a command in the sandbox that the model's commands get.
    #[command(after_help = sandbox_run::EXAMPLES)]
    Sandbox(Box<sandbox_run::SandboxRunOptions>),
    /// Ask the rules about a command.
    Policy(policy_check::PolicyOptions),
    /// Trust a project, after a look at what its settings ask for.
    Trust(trust::TrustOptions),
    /// List, add and remove MCP servers.
    #[command(after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpOptions),
    /// Serve as an MCP server: other agents begin threads here and go on with them.
    #[command(after_help = mcp_server::EXAMPLES)]
    McpServer(mcp_server::McpServerOptions),
    /// List, install and remove plugins.
    #[command(after_help = plugins::EXAMPLES)]
    Plugins(plugins::PluginsOptions),
    /// Look at what the model is told.
    Debug(debug::DebugOptions),
    /// Check what is set up, and say what to do about the rest.
    Doctor(doctor::DoctorOptions),
    /// Try the sandbox of this machine, and say as JSON what of it holds.
    #[command(hide = true)]
    SandboxCheck(sandbox_check::SandboxCheckArgs),
    /// Print what makes a shell complete this program's commands.
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsOptions),
    /// Print the words that fit at the end of a command line, for completions.
    #[command(hide = true)]
    Complete(complete::CompleteOptions),
    /// Serve the offline model as a Responses endpoint, for tests of programs that need a model.
    ///
    /// The offline model is a small deterministic test double inside this binary. It needs no key and no network, and
    /// its answers say what it is.
    OfflineModel(offline_model::OfflineModelOptions),
    /// Lend a model provider to a runtime without giving it the key.
    #[command(after_help = responses_bridge::EXAMPLES)]
    ResponsesBridge(responses_bridge::ResponsesBridgeOptions),
}

const EXEC_EXAMPLES: &str = "\
The answer goes to standard output, everything else to standard error.
The exit code is 0 when the turn completed, 1 when it failed, and 130 after Ctrl-C.

Examples:
  oarlock exec \"what does this project do?\"
  oarlock exec -C ../other -s workspace-write \"add a licence file\"
  oarlock exec --output-schema answer.schema.json -i shot.png \"read the numbers\"
  oarlock exec -m NAME -c model_reasoning_effort=high -o answer.md - < question.txt
  oarlock exec resume --last \"and now in French\"
  oarlock exec review --uncommitted
  oarlock exec review --base main --json
  oarlock exec resume 0199c0de-0000-7000-8000-000000000000 \"go on\"";

#[derive(Debug, clap::Args)]
struct HostOptionsWithFlags {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    args: host::HostArgs,
    #[command(subcommand)]
    command: Option<HostSubcommand>,
}

#[derive(Debug, Subcommand)]
enum HostSubcommand {
    /// Remove placements that no task uses, and what a host made and no longer knows of.
    Gc(host::place_commands::GcOptions),
    /// Show who decided, started and stopped what, newest first, in UTC.
    Audit(host::audit::AuditOptions),
}

#[derive(Debug, clap::Args)]
struct AppServer {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    args: app_server::AppServerArgs,
    #[command(subcommand)]
    command: Option<Generate>,
}

#[derive(Debug, Subcommand)]
enum Generate {
    /// Write the protocol as JSON Schema: one file per type and two bundles.
    #[command(name = "generate-json-schema")]
    JsonSchema(generate::GenerateOptions),
    /// Write the protocol as a Python package of typed models.
    #[command(name = "generate-python")]
    Python(generate::GenerateOptions),
    /// Write the protocol as TypeScript: one file per type, an index, and maps from methods to payloads.
    #[command(name = "generate-ts")]
    TypeScript(generate::GenerateOptions),
}

fn main() -> ExitCode {
    service::abort_on_panic();
    let Cli { prompt, interactive, flags, command } = match command_line() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    let Some(command) = command else {
        return converse(&interactive, prompt, &flags);
    };
    if interactive.is_used() {
        return usage("options of an interactive session stand without a command, or after `resume`");
    }
    dispatch(command, flags)
}

/// Reads the arguments on a thread of its own: the description of all commands fills a quarter of a megabyte of
/// stack, which the main thread would never give back.
fn command_line() -> clap::error::Result<Cli> {
    let reader = std::thread::Builder::new().name("arguments".to_owned()).spawn(Cli::try_parse);
    reader.ok().and_then(|reader| reader.join().ok()).unwrap_or_else(Cli::try_parse)
}

/// Without a command: an interactive session, or how to use this program where nobody sits.
fn converse(options: &interactive::InteractiveOptions, prompt: Option<String>, flags: &Flags) -> ExitCode {
    match &prompt {
        // A word alone is more likely a command that does not exist.
        Some(word) if !word.contains(char::is_whitespace) => {
            let near = near_command(word).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            usage(&format!("there is no command `{word}`{near}"))
        }
        None if !interactive::has_terminal() => {
            eprint!("{}", Cli::command().render_help());
            ExitCode::from(2)
        }
        _ => {
            seal();
            exit(interactive::start(options, prompt, flags), 1)
        }
    }
}

/// Prints help where that was asked for. A first word that is nearly a command was meant to be one, whatever follows it.
fn not_understood(error: &clap::Error) -> ExitCode {
    let word = std::env::args().nth(1);
    let near = word.as_deref().filter(|_| error.kind() == ErrorKind::UnknownArgument).and_then(near_command);
    match near.zip(word).filter(|(near, word)| near != word) {
        Some((near, word)) => usage(&format!("there is no command `{word}`; did you mean `{near}`?")),
        None => error.exit(),
    }
}

fn usage(problem: &str) -> ExitCode {
    eprintln!("oarlock: {}\n\nFor more information, try '--help'.", clean(problem));
    ExitCode::from(2)
}

/// The command that differs least, if it is a typing error away.
fn near_command(word: &str) -> Option<String> {
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    runtime::config::nearest(word, names).map(str::to_owned)
}

fn dispatch(command: CliCommand, flags: Flags) -> ExitCode {
    match command {
        CliCommand::Resume(options) => {
            seal();
            exit(interactive::resume(*options, flags), 1)
        }
        CliCommand::Exec(args) => {
            seal();
            exit(exec::run(*args, flags), 1)
        }
        CliCommand::Threads(options) => exit(threads::run(*options, flags), 1),
        CliCommand::Models(options) => {
            seal();
            exit(models::run(options, flags), 1)
        }
        CliCommand::Login(options) => {
            seal();
            exit(login::run(options, flags), 1)
        }
        CliCommand::Logout(options) => exit(login::log_out(options, flags), 1),
        CliCommand::Config(options) => exit(config_command::run(options, flags), 1),
        CliCommand::Mcp(options) => {
            seal();
            exit(mcp::run(options, flags), 1)
        }
        CliCommand::McpServer(options) => {
            seal();
            exit(mcp_server::run(options, flags), 1)
        }
        CliCommand::Plugins(options) => exit(plugins::run(options, flags), 1),
        // A generator fails because of its arguments, which clap reports with 2 as well.
        CliCommand::AppServer(AppServer { command: Some(command), .. }) => exit(write_protocol(&command), 2),
        CliCommand::AppServer(server) => {
            seal();
            exit(serve(server, flags), 1)
        }
        CliCommand::Host(HostOptionsWithFlags { command: Some(HostSubcommand::Gc(options)), .. }) => {
            exit(host::place_commands::gc(&options), 1)
        }
        CliCommand::Host(HostOptionsWithFlags { command: Some(HostSubcommand::Audit(options)), .. }) => {
            exit(host::audit::audit(&options), 1)
        }
        CliCommand::Host(options) => {
            seal();
            exit(keep_tasks(options, flags), 1)
        }
        CliCommand::Status(options) => exit(status::run(&options), 1),
        CliCommand::Tasks(options) => exit(host::tasks::tasks(&options), 1),
        CliCommand::Pending(options) => exit(host::commands::pending(&options), 1),
        CliCommand::Approve(options) => exit(host::commands::approve(&options), 1),
        CliCommand::Reject(options) => exit(host::commands::reject(&options), 1),
        CliCommand::Respond(options) => exit(host::commands::respond(&options), 1),
        CliCommand::Retry(options) => exit(host::commands::retry(&options), 1),
        CliCommand::Task(options) => exit(host::tasks::task(&options), 1),
        CliCommand::Placements(options) => exit(host::place_commands::placements(&options), 1),
        CliCommand::Usage(options) => exit(host::usage::usage(&options), 1),
        CliCommand::Demo(options) => exit(demo::run(&options), 1),
        CliCommand::Sandbox(options) => sandbox_run::run(*options, flags),
        CliCommand::Policy(options) => exit(policy_check::run(options, flags), 1),
        CliCommand::Trust(options) => exit(trust::run(options, flags), 1),
        CliCommand::Debug(options) => exit(debug::run(options, flags), 1),
        CliCommand::Doctor(options) => exit(doctor::run(options, flags), 1),
        CliCommand::SandboxCheck(args) => exit(args.run(), 1),
        CliCommand::Completions(options) => exit(completions::run::<Cli>(&options), 1),
        CliCommand::Complete(options) => exit(complete::run(&options, &flags), 1),
        CliCommand::OfflineModel(options) => {
            exit(offline_model::run(&options).map(|()| ExitCode::SUCCESS), 1)
        }
        CliCommand::ResponsesBridge(options) => {
            seal();
            service::init_logging(LevelFilter::WARN);
            exit(responses_bridge::run(&options).map(|()| ExitCode::SUCCESS), 1)
        }
    }
}

/// Before a key is read: what the agent's commands start must not be able to look into this process.
fn seal() {
    if let Err(error) = sandbox::seal_process() {
        eprintln!("oarlock: other programs of this user could look into this one: {error}");
    }
}

fn keep_tasks(options: HostOptionsWithFlags, root: Flags) -> Result<ExitCode> {
    let flags = root.then(options.flags).pairs()?;
    options.args.service.start_logging();
    if let Err(error) = sandbox::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    host::run(&options.args, flags)
}

fn serve(server: AppServer, root: Flags) -> Result<ExitCode> {
    let flags = root.then(server.flags).pairs()?;
    server.args.service.start_logging();
    // A thread in memory holds two files, and there may be many.
    if let Err(error) = sandbox::raise_open_files() {
        tracing::warn!(%error, "the limit on open files stays as it is");
    }
    app_server::run(&server.args, flags)
}

fn write_protocol(command: &Generate) -> Result<ExitCode> {
    let written = match command {
        Generate::JsonSchema(options) => generate::run(options, protocol_export::json_schema),
        Generate::Python(options) => generate::run(options, protocol_export::python),
        Generate::TypeScript(options) => generate::run(options, protocol_export::typescript),
    };
    written.map(|()| ExitCode::SUCCESS)
}

fn exit(result: Result<ExitCode>, failure: u8) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("oarlock: {}", clean(&format!("{error:#}")));
            ExitCode::from(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_commands_are_found() {
        assert_eq!(near_command("exce").as_deref(), Some("exec"));
        assert_eq!(near_command("threds").as_deref(), Some("threads"));
        assert_eq!(near_command("doctor").as_deref(), Some("doctor"));
        assert_eq!(near_command("explain"), None);
    }

    #[test]
    fn a_prompt_and_a_command_are_told_apart() {
        let read = |line: &[&str]| Cli::try_parse_from([&["oarlock"], line].concat());
        assert!(read(&["explain this"]).is_ok_and(|cli| cli.prompt.is_some() && cli.command.is_none()));
        assert!(read(&["threads"]).is_ok_and(|cli| cli.prompt.is_none() && cli.command.is_some()));
        assert!(read(&["-m", "x", "say hello"]).is_ok_and(|cli| cli.interactive.is_used()));
        assert!(
            read(&["resume", "--last"]).is_ok_and(|cli| matches!(cli.command, Some(CliCommand::Resume(_))))
        );
        assert!(read(&["--ws-token-file", "x"]).is_err(), "a token is for a remote server");
    }
}
