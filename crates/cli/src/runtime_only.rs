//! `oarlock-runtime`: the app-server and nothing else, for places that a host copies it to.
#![allow(dead_code, reason = "the modules are those of the whole program")]

mod app_server;
mod flags;
mod logging;
mod private_folder;
mod sandbox_check;
mod service_args;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::flags::Flags;

/// The runtime of a host's tasks.
#[derive(Debug, Parser)]
#[command(name = "oarlock-runtime", version, arg_required_else_help = true)]
struct RuntimeCli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: RuntimeCommand,
}

#[derive(Debug, Subcommand)]
enum RuntimeCommand {
    /// Serve threads and turns to clients that speak JSON-RPC.
    AppServer(app_server::AppServerArgs),
    /// Try the sandbox of this machine, and say as JSON what of it holds.
    SandboxCheck(sandbox_check::SandboxCheckArgs),
}

fn main() -> ExitCode {
    service::abort_on_panic();
    let RuntimeCli { flags, command } = RuntimeCli::parse();
    if let Err(error) = sandbox::seal_process() {
        eprintln!("oarlock: other programs of this user could look into this one: {error}");
    }
    let ended = match command {
        RuntimeCommand::SandboxCheck(args) => args.run(),
        RuntimeCommand::AppServer(args) => flags.pairs().and_then(|flags| {
            args.service.start_logging();
            if let Err(error) = sandbox::raise_open_files() {
                tracing::warn!(%error, "the limit on open files stays as it is");
            }
            app_server::run(&args, flags)
        }),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("oarlock: {error:#}");
        ExitCode::FAILURE
    })
}
