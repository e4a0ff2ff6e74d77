//! `oarlock config`: reads and changes settings, with the same checks as clients of the server get.

use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use protocol::{ConfigBatchWriteParams, ConfigEdit, MergeStrategy};
use runtime::config::{Home, LoadRequest, Loader, key_problem, value_of_flag};
use serde_json::Value;
use tracing_subscriber::filter::LevelFilter;

use crate::flags::Flags;
use crate::terminal::{clean_line, escaped_json};
use crate::wording::warning_text;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock config get                          everything that is set, as JSON
  oarlock config get model_provider
  oarlock config set model gpt-5.2-codex
  oarlock config set tools.web_search.context_size '\"high\"'
  oarlock config set model --unset
  oarlock config edit                         in $VISUAL or $EDITOR
  oarlock config path";

#[derive(Debug, Args)]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    command: ConfigCommand,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print a value as it counts here: of all files, flags and defaults together.
    Get {
        /// Keys joined by dots. Without one, everything that is set.
        #[arg(value_name = "KEY")]
        key: Option<String>,
    },
    /// Change a value in your own file. Comments and the rest stay as they are.
    Set {
        /// Keys joined by dots.
        #[arg(value_name = "KEY")]
        key: String,
        /// TOML, or else text.
        #[arg(value_name = "VALUE", required_unless_present = "unset", conflicts_with = "unset")]
        value: Option<String>,
        /// Remove the key.
        #[arg(long)]
        unset: bool,
    },
    /// Open your own file in $VISUAL or $EDITOR, and check it afterwards.
    Edit,
    /// Print where your own file is.
    Path,
}

pub(crate) fn run(options: ConfigOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let loader = root.then(options.flags).loader()?;
    match options.command {
        ConfigCommand::Get { key } => get(&loader, key.as_deref()),
        ConfigCommand::Set { key, value, .. } => set(&loader, &key, value.as_deref()),
        ConfigCommand::Edit => edit(&loader),
        ConfigCommand::Path => {
            println!("{}", loader.home().own_config_file().display());
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn get(loader: &Loader, key: Option<&str>) -> Result<ExitCode> {
    let config = loader.load(&here())?;
    let shown = serde_json::to_value(config.read_response(false)?.config)?;
    let value = key.into_iter().flat_map(|key| key.split('.')).try_fold(&shown, |value, key| value.get(key));
    match value.filter(|value| !value.is_null()) {
        Some(value) => {
            print(value)?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            let key = key.unwrap_or_default();
            if let Some(problem) = key_problem(key) {
                bail!("{problem}");
            }
            eprintln!("oarlock: `{}` is not set", clean_line(key));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A text as it is; everything else as JSON, without what is not set.
fn print(value: &Value) -> Result<()> {
    let text = match value {
        Value::String(text) => format!("{}\n", clean_line(text)),
        other => escaped_json(&format!("{:#}\n", without_nulls(other))).into_owned(),
    };
    std::io::stdout().write_all(text.as_bytes()).context("the value cannot be written")
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let set = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(key, value)| (key.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

fn set(loader: &Loader, key: &str, value: Option<&str>) -> Result<ExitCode> {
    if value.is_some()
        && let Some(problem) = key_problem(key)
    {
        bail!("nothing was written: {problem}");
    }
    let value = value.map_or(Value::Null, value_of_flag);
    let edit = ConfigEdit { key_path: key.to_owned(), value, merge_strategy: MergeStrategy::Replace };
    let batch = ConfigBatchWriteParams {
        edits: vec![edit],
        file_path: None,
        expected_version: None,
        reload_user_config: false,
    };
    let written =
        loader.write(&batch).map_err(|error| anyhow::anyhow!("{}", clean_line(&error.to_string())))?;
    println!("Written to {}.", loader.home().own_config_file().display());
    if let Some(other) = written.overridden_metadata {
        println!("It does not count: {}", clean_line(&other.message));
    }
    Ok(ExitCode::SUCCESS)
}

fn edit(loader: &Loader) -> Result<ExitCode> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let Some(editor) = variable("VISUAL").or_else(|| variable("EDITOR")) else {
        bail!("no editor is known; set VISUAL or EDITOR, or open {}", own_file(loader.home()));
    };
    loader.home().create_state()?;
    let file = loader.home().own_config_file();
    // The variable may hold options, as in `code --wait`.
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or(&editor);
    let status = Command::new(program).args(words).arg(&file).status();
    let status = status.with_context(|| format!("{editor} cannot be started"))?;
    if !status.success() {
        bail!("{editor} ended with {status}");
    }
    check(loader, &file)
}

/// Reads the file as a turn would, and prints its warnings.
fn check(loader: &Loader, file: &Path) -> Result<ExitCode> {
    let config =
        loader.load(&here()).with_context(|| format!("{} cannot be used as it is", file.display()))?;
    for warning in &config.warnings {
        eprintln!("warning: {}", clean_line(&warning_text(warning)));
    }
    Ok(ExitCode::SUCCESS)
}

fn own_file(home: &Home) -> String {
    home.own_config_file().display().to_string()
}

fn here() -> LoadRequest<'static> {
    LoadRequest { cwd: std::env::current_dir().ok(), ..LoadRequest::default() }
}
