//! `oarlock debug`: looking at what is otherwise between the runtime and its model.

mod prompt;
mod sheet;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::flags::Flags;

#[derive(Debug, Args)]
pub(crate) struct DebugOptions {
    #[command(subcommand)]
    command: DebugCommand,
}

#[derive(Debug, Subcommand)]
enum DebugCommand {
    /// Show what the next request would tell the model, piece by piece. Nothing is sent and nothing is written.
    #[command(after_help = prompt::EXAMPLES)]
    Prompt(Box<prompt::PromptOptions>),
}

pub(crate) fn run(options: DebugOptions, root: Flags) -> Result<ExitCode> {
    let DebugCommand::Prompt(options) = options.command;
    prompt::run(&options, root)
}
