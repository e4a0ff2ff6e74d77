//! `oarlock mcp-server`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tracing_subscriber::filter::LevelFilter;

use crate::flags::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock mcp-server                             two tools: codex begins a thread, codex-reply goes on with it
  oarlock mcp-server -c model_provider=offline   the same without a key and without a network";

#[derive(Debug, Args)]
pub(crate) struct McpServerOptions {
    #[command(flatten)]
    flags: Flags,
}

pub(crate) fn run(options: McpServerOptions, root: Flags) -> Result<ExitCode> {
    let flags = root.then(options.flags).pairs()?;
    service::init_logging(LevelFilter::WARN);
    mcp_server::run(flags)
}
