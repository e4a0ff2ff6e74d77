//! The `oarlock` binary: reads the command line and calls the crate that does the work.

mod generate;

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
}

#[derive(Debug, Subcommand)]
enum AppServerCommand {
    /// Write the protocol as JSON Schema: one file per type and two bundles.
    GenerateJsonSchema(generate::Options),
    /// Write the protocol as a Python package of typed models.
    GeneratePython(generate::Options),
    /// Write the protocol as TypeScript: one file per type, an index, and maps from methods to payloads.
    GenerateTs(generate::Options),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::AppServer { command: AppServerCommand::GenerateJsonSchema(options) } => {
            generate::run(&options, protocol::export::json_schema)
        }
        Command::AppServer { command: AppServerCommand::GeneratePython(options) } => {
            generate::run(&options, protocol::export::python)
        }
        Command::AppServer { command: AppServerCommand::GenerateTs(options) } => {
            generate::run(&options, protocol::export::typescript)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oarlock: {error:#}");
            // Every failure here is about what the caller gave, which clap reports with 2 as well.
            ExitCode::from(2)
        }
    }
}
