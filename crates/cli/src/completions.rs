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
    script.extend(options.shell.names().as_bytes());
    std::io::stdout().write_all(&script).context("the script cannot be written")?;
    Ok(ExitCode::SUCCESS)
}

impl CompletionShell {
    /// The part of a script that completes names of this machine: providers, models, profiles, threads. Where
    /// `oarlock complete` knows nothing, the generated script completes.
    fn names(self) -> &'static str {
        match self {
            Self::Bash => BASH,
            Self::Zsh => ZSH,
            Self::Fish => FISH,
        }
    }
}

const BASH: &str = r#"
_oarlock_names() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$(printf '%q' "$word")")
    done < <(oarlock complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -gt 0 ]] || _oarlock "$@"
}
complete -F _oarlock_names -o nosort -o bashdefault -o default oarlock
"#;

const ZSH: &str = r#"
_oarlock_names() {
    local -a names
    names=("${(@f)$(oarlock complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n ${names[1]} ]]; then
        compadd -- "${names[@]}"
    else
        _oarlock "$@"
    fi
}
compdef _oarlock_names oarlock
"#;

const FISH: &str = r#"
function __oarlock_names
    set -l words (commandline -opc)
    oarlock complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c oarlock -n 'test -n "$(__oarlock_names)"' -f -a '(__oarlock_names)'
"#;
