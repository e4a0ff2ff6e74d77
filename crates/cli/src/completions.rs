//! `oarlock completions`: scripts that make shells complete commands and options.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, ValueEnum};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bash: oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock
  zsh:  oarlock completions zsh > ~/.zfunc/_oarlock      (with ~/.zfunc in $fpath)
  fish: oarlock completions fish > ~/.config/fish/completions/oarlock.fish";

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    #[arg(value_enum)]
    shell: CompletionShell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run<C: CommandFactory>(options: &CompletionsOptions) -> Result<ExitCode> {
    let shell = match options.shell {
        CompletionShell::Bash => clap_complete::Shell::Bash,
        CompletionShell::Zsh => clap_complete::Shell::Zsh,
        CompletionShell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut C::command(), "oarlock", &mut script);
    std::io::stdout().write_all(&script).context("the script cannot be written")?;
    Ok(ExitCode::SUCCESS)
}
