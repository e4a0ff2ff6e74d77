//! The `oarlock` binary: reads the command line and calls the crate that does the work.

mod generate;
mod offline_model;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// An agent runtime commanded over JSON-RPC.
#[derive(Debug, Parser)]
#[command(name = "oarlock", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The exports of the app-server protocol. The server itself is not part of this release yet.
    #[command(arg_required_else_help = true)]
    AppServer {
        #[command(subcommand)]
        command: AppServerCommand,
    },
    /// Serve the offline model as a Responses endpoint, for tests of programs that need a model.
    ///
    /// The offline model is a small deterministic test double inside this binary. It needs no key and no network, and
    /// its answers say what it is.
    OfflineModel(offline_model::Options),
}

#[derive(Debug, Subcommand)]
enum AppServerCommand {
    /// Write the protocol as JSON Schema: one file per type and two bundles.
    #[command(name = "generate-json-schema")]
    JsonSchema(generate::Options),
    /// Write the protocol as a Python package of typed models.
    #[command(name = "generate-python")]
    Python(generate::Options),
    /// Write the protocol as TypeScript: one file per type, an index, and maps from methods to payloads.
    #[command(name = "generate-ts")]
    TypeScript(generate::Options),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        // What a generator cannot do is about what the caller gave, which clap reports with 2 as well.
        Command::AppServer { command } => exit(app_server(&command), 2),
        Command::OfflineModel(options) => exit(offline_model::run(&options), 1),
    }
}

fn app_server(command: &AppServerCommand) -> anyhow::Result<()> {
    match command {
        AppServerCommand::JsonSchema(options) => generate::run(options, protocol::export::json_schema),
        AppServerCommand::Python(options) => generate::run(options, protocol::export::python),
        AppServerCommand::TypeScript(options) => generate::run(options, protocol::export::typescript),
    }
}

fn exit(result: anyhow::Result<()>, failure: u8) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oarlock: {error:#}");
            ExitCode::from(failure)
        }
    }
}
