//! `oarlock plugins`: what marketplaces offer, and which of it is installed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use plugins::{MarketplaceSearch, PluginId, find_plugin, install, list_marketplaces, uninstall};
use protocol::{PluginInstallPolicy, PluginSummary};
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions};

use crate::flags::Flags;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock plugins list
  oarlock plugins install greetings@samples
  oarlock plugins uninstall greetings@samples

Marketplaces are files .agents/plugins/marketplace.json in your home folder and in the project around the current one.";

#[derive(Debug, Args)]
pub(crate) struct PluginsOptions {
    #[command(subcommand)]
    command: PluginsCommand,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum PluginsCommand {
    /// List what is offered and what is installed.
    List,
    /// Copy a plugin and switch it on. Nothing of it runs.
    Install {
        /// `<plugin>@<marketplace>`, as the list has it.
        id: String,
    },
    /// Remove a plugin.
    Uninstall {
        /// `<plugin>@<marketplace>`, as the list has it.
        id: String,
    },
}

pub(crate) fn run(options: PluginsOptions, root: Flags) -> Result<ExitCode> {
    let flags = root.then(options.flags).pairs()?;
    let loader = Loader::new(Home::from_env()?, flags, LoaderOptions::default());
    let cwd = std::env::current_dir().context("the current folder cannot be found")?;
    let search = MarketplaceSearch { user: loader.user_home(), cwds: vec![cwd] };
    let config = loader.load(&LoadRequest::default())?;
    let mut out = io::stdout().lock();
    match options.command {
        PluginsCommand::List => {
            let (marketplaces, errors) = list_marketplaces(&config, &search);
            let mut plugins = marketplaces.iter().flat_map(|marketplace| &marketplace.plugins).peekable();
            if plugins.peek().is_none() {
                writeln!(out, "No marketplace offers a plugin here; see docs/plugins.md.")?;
            }
            for plugin in plugins {
                writeln!(out, "{}  {}", plugin.id, state(plugin))?;
            }
            for error in errors {
                eprintln!("oarlock: {}", error.message);
            }
        }
        PluginsCommand::Install { id } => {
            let wanted = PluginId::parse(&id)?;
            let (marketplaces, _) = list_marketplaces(&config, &search);
            let Some(found) = marketplaces.iter().find(|marketplace| marketplace.name == wanted.marketplace)
            else {
                bail!(
                    "there is no marketplace `{}` here; `oarlock plugins list` names what is offered",
                    wanted.marketplace
                );
            };
            let file = PathBuf::from(found.path.as_str());
            install(&config, &find_plugin(&file, &wanted.plugin)?)?;
            writeln!(out, "Installed {id}.")?;
        }
        PluginsCommand::Uninstall { id } => {
            uninstall(loader.home(), &id)?;
            writeln!(out, "Removed {id}.")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn state(plugin: &PluginSummary) -> &'static str {
    match (plugin.installed, plugin.enabled, plugin.install_policy) {
        (true, true, _) => "installed",
        (true, false, _) => "installed, switched off",
        (false, _, PluginInstallPolicy::NotAvailable) => "not available",
        (false, ..) => "available",
    }
}
