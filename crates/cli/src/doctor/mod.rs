//! `oarlock doctor`: what is set up, and what to do about the rest. Asks the provider for its models, with
//! `--online` for an answer as well, and nobody else.

mod checks;
mod online_check;
mod placement_check;
mod provider_check;
mod sandbox_check;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions};
use sandbox::SelfTest;
use serde::Serialize;
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use self::sandbox_check::RequestedSandbox;
use crate::config_parts;
use crate::flags::Flags;
use crate::terminal::{Color, Paint, TextStyle, clean_line, escaped_json};

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    /// Check this provider instead of the configured one.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// Send no request to the provider.
    #[arg(long)]
    no_request: bool,
    /// Also ask the model something small, as a turn would: a few tokens are paid for.
    #[arg(long, conflicts_with_all = ["no_request", "placement"])]
    online: bool,
    /// Check this placement, and nothing else: makes one, copies the runtime there, tries its sandbox, removes it.
    #[arg(long, value_name = "NAME")]
    placement: Option<String>,
    /// The build of the runtime for the placement.
    #[arg(long, value_name = "FILE", requires = "placement")]
    runtime: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DoctorCheck {
    pub(crate) name: &'static str,
    pub(crate) status: CheckStatus,
    pub(crate) summary: String,
    /// How to fix it.
    pub(crate) advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckStatus {
    Ok,
    /// Good to know; nothing has to be done.
    Note,
    /// Has to be fixed before everything works.
    Problem,
}

impl DoctorCheck {
    fn ok(name: &'static str, summary: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, summary: summary.into(), advice: None }
    }

    fn note(name: &'static str, summary: impl Into<String>, advice: Option<&str>) -> Self {
        let advice = advice.map(str::to_owned);
        Self { name, status: CheckStatus::Note, summary: summary.into(), advice }
    }

    fn problem(name: &'static str, summary: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Problem, summary: summary.into(), advice: Some(advice.into()) }
    }
}

pub(crate) fn run(options: DoctorOptions, root: Flags) -> Result<ExitCode> {
    service::init_logging(LevelFilter::ERROR);
    let flags = root.then(options.flags).pairs()?;
    let DoctorFindings { checks, features, sandbox, hidden } = match options.placement {
        Some(name) => DoctorFindings {
            checks: placement_check::examine(&name, options.runtime, flags),
            features: Value::Null,
            sandbox: Value::Null,
            hidden: Value::Null,
        },
        None => {
            let mut findings = examine(flags.clone(), options.provider.clone(), !options.no_request);
            let is_ready = findings.checks.iter().all(|check| check.status != CheckStatus::Problem);
            if options.online && is_ready {
                findings.checks.push(online_check::check(flags, options.provider));
            }
            findings
        }
    };
    let is_good = checks.iter().all(|check| check.status != CheckStatus::Problem);
    let text = if options.json {
        let version = env!("CARGO_PKG_VERSION");
        let report = json!({
            "ok": is_good,
            "version": version,
            "checks": checks,
            "sandbox": sandbox,
            "hidden": hidden,
            "features": features,
        });
        escaped_json(&format!("{report:#}\n")).into_owned()
    } else {
        lines(&checks, Paint::choose(Color::Auto, std::io::stdout().is_terminal()))
    };
    std::io::stdout().write_all(text.as_bytes()).context("the report cannot be written")?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Debug)]
struct DoctorFindings {
    checks: Vec<DoctorCheck>,
    /// Which ones are on.
    features: Value,
    /// Each layer of the sandbox, as the self-test found it.
    sandbox: Value,
    /// The files that commands cannot read.
    hidden: Value,
}

fn examine(flags: Vec<(String, String)>, provider: Option<String>, asks: bool) -> DoctorFindings {
    let report = SelfTest::run();
    let home = match Home::look_from_env() {
        Ok(home) => home,
        Err(error) => {
            let advice = "point OARLOCK_HOME to a folder of your own";
            let wanted = RequestedSandbox::default();
            return DoctorFindings {
                checks: vec![
                    DoctorCheck::problem("home", error.to_string(), advice),
                    sandbox_check::check(report, wanted),
                ],
                features: Value::Null,
                sandbox: sandbox_check::json(report, wanted),
                hidden: Value::Null,
            };
        }
    };
    let loader = Loader::new(home, flags, LoaderOptions::default());
    let cwd = std::env::current_dir().ok();
    let mut request = LoadRequest { cwd: cwd.clone(), ..LoadRequest::default() };
    request.overrides.model_provider = provider;
    let loaded = loader.load(&request);
    let mut checks = vec![checks::home(loader.home()), checks::configuration(&loader, loaded.as_ref())];
    let (mut features, mut hidden) = (Value::Null, Value::Null);
    if let Ok(config) = &loaded {
        checks.extend(provider_check::check(&loader, config, asks));
        let servers = config_parts::servers(config, loader.environment());
        let parts = [
            (
                "rules",
                "correct the file; `oarlock policy check` says what holds",
                config_parts::rules(config),
            ),
            ("hooks", "correct the file; docs/hooks.md has an example", config_parts::hooks(config)),
            ("mcp", "install it, correct `command`, or set `enabled = false`", servers),
        ];
        checks.push(checks::model(config));
        checks.extend(parts.into_iter().filter_map(checks::part));
        checks.push(checks::hidden(config));
        hidden = checks::hidden_json(config);
        features = config.features.iter().map(|(key, is_on)| (key.to_owned(), Value::from(is_on))).collect();
    }
    checks.extend(checks::records(loader.home()));
    checks.push(checks::workspace(cwd.as_deref()));
    // A configuration that cannot be read might ask for a sandbox, so it counts as if it did.
    let wanted = loaded
        .as_ref()
        .map_or(RequestedSandbox { is_sandboxed: true, ..RequestedSandbox::default() }, RequestedSandbox::by);
    checks.push(sandbox_check::check(report, wanted));
    DoctorFindings { checks, features, sandbox: sandbox_check::json(report, wanted), hidden }
}

fn lines(checks: &[DoctorCheck], paint: Paint) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for check in checks {
        let (word, style) = match check.status {
            CheckStatus::Ok => ("ok", TextStyle::Good),
            CheckStatus::Note => ("note", TextStyle::Careful),
            CheckStatus::Problem => ("problem", TextStyle::Bad),
        };
        let word = paint.text(style, format_args!("{word:7}"));
        text.push_str(&format!("{word}  {:width$}  {}\n", check.name, clean_line(&check.summary)));
        if let Some(advice) = &check.advice {
            text.push_str(&format!("{:7}  {:width$}  -> {}\n", "", "", clean_line(advice)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_aligned_and_say_what_to_do() {
        let checks = [DoctorCheck::ok("home", "/h"), DoctorCheck::problem("provider", "no key", "set KEY")];
        let expected = "ok       home      /h\nproblem  provider  no key\n                   -> set KEY\n";
        assert_eq!(lines(&checks, Paint::decide(Color::Never, false)), expected);
    }
}
