//! The placements of a host: from options and configuration to what the host is started with.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::host::{LocalLauncher, PlaceOptions, ProjectedHome, SecretLookup};
use anyhow::{Context, Result};
use clap::Args;
use placements::{PlacementSettings, RuntimeBuilds, store_owner, temporary_owner};
use runtime::TraceSettings;
use runtime::config::{ResolvedConfig, closed_search_path};
use serde_json::Value;

use super::StoreChoice;

/// The longest line a runtime reads: a whole history comes in one.
const RUNTIME_LINE_BYTES: &str = "536870912";

/// Variables that a runtime on this machine gets of the host's environment, beside PATH, HOME, LANG, USER and TMPDIR. No
/// provider's key is among them. Where traces go is passed on as well, with the collector's key, which commands do not get.
const PASSED_ON: &[&str] =
    &["LOGNAME", "SHELL", "LC_ALL", "TZ", "OARLOCK_HOME", "CODEX_HOME", "RUST_LOG", "LOG_FORMAT"];

/// Tests end runtimes at named points; a release has none.
const OF_TESTS: &[&str] = if cfg!(debug_assertions) { &["OARLOCK_KILL_AT"] } else { &[] };

/// Keys of the configuration that go along to other places. None of them starts a program, names a file of this machine
/// or may hold a key.
const PROJECTED: &[&str] = &[
    "allow_login_shell",
    "approval_policy",
    "approvals_reviewer",
    "background_terminal_max_timeout",
    "commit_attribution",
    "compact_prompt",
    "developer_instructions",
    "features",
    "hide_agent_reasoning",
    "instructions",
    "model",
    "model_auto_compact_token_limit",
    "model_context_window",
    "model_reasoning_effort",
    "model_reasoning_summary",
    "model_supports_reasoning_summaries",
    "model_verbosity",
    "personality",
    "plan_mode_reasoning_effort",
    "project_doc_fallback_filenames",
    "project_doc_max_bytes",
    "project_root_markers",
    "sandbox_mode",
    "show_raw_agent_reasoning",
    "tool_output_token_limit",
    "tools",
    "web_search",
];

/// A secret NAME of a manifest is this variable of the host, followed by the name in capitals.
const SECRET_VARIABLE: &str = "OARLOCK_SECRET_";

#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Placements")]
pub(crate) struct PlaceArgs {
    /// Where threads run that choose no placement: a name of `[placements]`, or `docker:IMAGE` and the like.
    #[arg(long, value_name = "NAME")]
    placement: Option<String>,
    /// The build of the runtime for other places; else the one beside this program, in the cache, or this program.
    #[arg(long, value_name = "FILE")]
    runtime: Option<PathBuf>,
    /// Where snapshots of workspaces are kept; beside the store unless set.
    #[arg(long, value_name = "DIR")]
    blobs: Option<PathBuf>,
    /// How long a placement without a task is kept, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 86_400)]
    placement_ttl: u64,
    /// How long a placement whose tasks have no runtime runs on before it is suspended, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 1_800)]
    placement_idle: u64,
}

impl PlaceArgs {
    /// Whether the folder of snapshots is the store's alone: the one beside a file.
    pub(crate) fn has_blobs(&self, store: &StoreChoice) -> bool {
        self.blobs.is_none() && matches!(store, StoreChoice::Sqlite(_))
    }

    /// The folder of snapshots: the one asked for, or beside the store.
    pub(crate) fn blobs(&self, store: &StoreChoice, home: &Path) -> PathBuf {
        let beside = || match store {
            StoreChoice::Sqlite(path) => {
                let mut beside = path.as_os_str().to_owned();
                beside.push(".blobs");
                beside.into()
            }
            StoreChoice::Postgres(_) => home.join("host-blobs"),
        };
        self.blobs.clone().unwrap_or_else(beside)
    }

    /// For a host that lives as long as one command.
    pub(crate) fn embedded(runtime: Option<PathBuf>) -> Self {
        Self { runtime, placement_ttl: 86_400, placement_idle: 1_800, ..Self::default() }
    }
}

/// `[placements.NAME]`, by name. What is wrong is named with its table.
pub(crate) fn configured(config: &ResolvedConfig) -> Result<BTreeMap<String, PlacementSettings>> {
    let tables = match config.merged.get("placements") {
        Some(tables) => serde_json::to_value(tables)?,
        None => return Ok(BTreeMap::new()),
    };
    let Value::Object(tables) = tables else {
        anyhow::bail!("placements: expected tables like `[placements.box]`");
    };
    let read = |(name, table): (String, Value)| {
        let settings = PlacementSettings::from_json(&format!("placements.{name}"), &table)?;
        Ok((name, settings))
    };
    tables.into_iter().map(read).collect()
}

/// Files and ports of a host that are out of reach for commands on this machine.
#[derive(Debug, Default)]
pub(crate) struct OwnEndpoints {
    /// Absolute. The first one tells this host's store from others.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) ports: Vec<u16>,
    /// The store ends with this process.
    pub(crate) is_temporary: bool,
    /// No other store keeps its snapshots where this one does.
    pub(crate) has_blobs: bool,
}

pub(crate) fn options(
    args: &PlaceArgs,
    config: &ResolvedConfig,
    flags: &[(String, String)],
    own: &OwnEndpoints,
    blobs: PathBuf,
) -> Result<PlaceOptions> {
    close_search(config);
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let cache = config.home.reading().join("runtimes").join(env!("CARGO_PKG_VERSION"));
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let passed_on = PASSED_ON.iter().chain(OF_TESTS).chain(TraceSettings::VARIABLES);
    let environment = passed_on.filter_map(|&name| Some((name.to_owned(), std::env::var(name).ok()?)));
    let settings = flags.iter().flat_map(|(key, value)| ["-c".to_owned(), format!("{key}={value}")]);
    // Whoever can write the store can decide in it, so no command can reach it, wherever it is.
    let hidden = |file: &PathBuf| ["--off-limits".to_owned(), file.to_string_lossy().into_owned()];
    let closed = |port: &u16| ["--closed-port".to_owned(), port.to_string()];
    let off_limits = own.files.iter().flat_map(hidden).chain(own.ports.iter().flat_map(closed));
    let options = PlaceOptions {
        owner: match own.is_temporary {
            true => temporary_owner(),
            false => store_owner(own.files.first().map_or(&blobs, |file| file)),
        },
        configured: configured(config)?,
        default: args.placement.clone(),
        sandbox_mode: config.permissions.asked_sandbox,
        blobs,
        owns_blobs: own.has_blobs,
        arguments: words(&["app-server", "--max-line-bytes", RUNTIME_LINE_BYTES]),
        local_arguments: settings.chain(off_limits).collect(),
        local_environment: environment.collect(),
        builds: RuntimeBuilds::new(args.runtime.clone(), program.clone(), cache),
        program,
        home: projected_home(config),
        secrets: SecretLookup(Arc::new(secret)),
        unused_for_ms: milliseconds(args.placement_ttl),
        idle_for_ms: milliseconds(args.placement_idle),
    };
    if let Some(name) = &options.default {
        options.settings(name)?;
    }
    Ok(options)
}

/// Tools run without a sandbox, so none is looked for where commands can write: neither the folders that the settings name,
/// nor the one this process was started in. The folders of tasks follow when they start.
fn close_search(config: &ResolvedConfig) {
    let mut writable = config.writable_roots();
    writable.extend(std::env::current_dir());
    let path = std::env::var("PATH").unwrap_or_default();
    placements::search_tools_in(&closed_search_path(&path, &writable));
}

fn milliseconds(seconds: u64) -> i64 {
    i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX / 2)
}

/// Of runtimes on this machine as it is: this very program, as an app-server with the same settings.
pub(crate) fn launcher(options: &PlaceOptions) -> LocalLauncher {
    let arguments = options.arguments.iter().chain(&options.local_arguments).map(OsString::from);
    let always = ["PATH", "HOME", "LANG", "USER", "TMPDIR"];
    let environment = always.iter().chain(PASSED_ON).chain(OF_TESTS).chain(TraceSettings::VARIABLES);
    let environment = environment.filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
    LocalLauncher {
        program: options.program.clone(),
        arguments: arguments.collect(),
        environment: environment.collect(),
    }
}

fn secret(name: &str) -> Option<String> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let variable = format!("{SECRET_VARIABLE}{}", name.to_ascii_uppercase().replace('-', "_"));
    is_plain.then(|| std::env::var(variable).ok()).flatten()
}

/// The part of the configuration that belongs to other places, the user's AGENTS.md, and the rules.
fn projected_home(config: &ResolvedConfig) -> ProjectedHome {
    let mut home = ProjectedHome::default();
    let merged = serde_json::to_value(&config.merged).unwrap_or_default();
    let mut text = String::new();
    for key in PROJECTED {
        if let Some(value) = merged.get(key).and_then(toml) {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    // The model inside the program has tools of its own, which only its provider names.
    if config.provider.id == "offline" {
        text.push_str("model_provider = \"offline\"\n");
    }
    home.add("config.toml", text);
    let folder = config.home.reading();
    for name in ["AGENTS.md", "AGENTS.override.md"] {
        if let Ok(text) = std::fs::read_to_string(folder.join(name)) {
            home.add(name, text);
        }
    }
    for entry in std::fs::read_dir(folder.join("rules")).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let (true, Ok(text)) = (name.ends_with(".rules"), std::fs::read_to_string(entry.path())) {
            home.add(&format!("rules/{name}"), text);
        }
    }
    home
}

/// A value on one line. The strings of JSON are strings of TOML.
fn toml(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Array(values) => {
            let values: Vec<String> = values.iter().filter_map(toml).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(table) => {
            let pair = |(key, value): (&String, &Value)| {
                Some(format!("{} = {}", Value::from(key.as_str()), toml(value)?))
            };
            format!("{{{}}}", table.iter().filter_map(pair).collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_as_toml() {
        let value = json!({"a": [1, true, "x\n\"y\""], "b c": {"d": 1.5}, "e": null});
        let said = toml(&value);
        assert_eq!(said.as_deref(), Some(r#"{"a" = [1, true, "x\n\"y\""], "b c" = {"d" = 1.5}}"#));
    }
}
