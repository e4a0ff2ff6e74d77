//! The rules, hooks and MCP servers that a turn reads beside `config.toml`. Mistakes in them are shown before a turn and by
//! the doctor.

use std::path::Path;

use hooks::HookSet;
use policy::{Rules, WarningCause};
use runtime::config::{Env, McpTransport, ResolvedConfig};

/// How many can be used, and what is wrong with the others.
pub(crate) type ConfigPart = (usize, Vec<String>);

pub(crate) fn rules(config: &ResolvedConfig) -> ConfigPart {
    let required = &config.requirements.rules;
    let (rules, warnings) = Rules::load_all(&config.rule_folders(), &config.project_rules, required);
    // Unreviewed rules of a project are reported with its settings.
    let mistakes = warnings.iter().filter(|warning| warning.cause != WarningCause::Unreviewed);
    (rules.prefixes().len(), mistakes.map(ToString::to_string).collect())
}

/// None where the feature is off: then the files are not read.
pub(crate) fn hooks(config: &ResolvedConfig) -> ConfigPart {
    let set = HookSet::of(config);
    let errors = set.errors.iter().map(|error| format!("{}: {}", error.path, error.message));
    (set.list(String::new()).hooks.len(), errors.chain(set.warnings.iter().cloned()).collect())
}

/// Programs that are not there. Whether a server answers is found out by whoever starts it.
pub(crate) fn servers(config: &ResolvedConfig, env: &Env) -> ConfigPart {
    let servers = config.mcp_servers();
    let folder = config.cwd.clone().unwrap_or_default();
    let mistakes = servers.iter().filter_map(|server| match server {
        Err(problem) => Some(format!("{}: {}", problem.name, problem.message)),
        Ok(server) => match &server.transport {
            McpTransport::Stdio { command, cwd, .. } => {
                let folder = cwd.as_deref().unwrap_or(&folder);
                (!is_program(command, folder, env))
                    .then(|| format!("{}: there is no program `{command}`", server.name))
            }
            McpTransport::Http { .. } => None,
        },
    });
    (servers.len(), mistakes.collect())
}

fn is_program(command: &str, folder: &Path, env: &Env) -> bool {
    if command.contains('/') {
        return folder.join(command).is_file();
    }
    let path = env.var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}
