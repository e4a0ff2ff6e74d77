//! `oarlock doctor`: what is set up, and what to do about the rest. Asks no network.

mod checks;
mod walls;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use runtime::config::{Home, LoadRequest, Loader, LoaderOptions};
use sandbox::SelfTest;
use serde::Serialize;
use serde_json::{Value, json};
use tracing_subscriber::filter::LevelFilter;

use self::walls::Wanted;
use crate::flags::Flags;
use crate::terminal::{Color, Paint, Style, clean_line, escaped_json};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print one JSON document instead of lines.
    #[arg(long)]
    json: bool,
    /// Check this provider instead of the configured one.
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    #[command(flatten)]
    flags: Flags,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) status: Status,
    pub(crate) summary: String,
    /// What to do.
    pub(crate) advice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Ok,
    /// Good to know; nothing has to be done.
    Note,
    /// Has to be fixed before everything works.
    Problem,
}

impl Check {
    fn ok(name: &'static str, summary: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, summary: summary.into(), advice: None }
    }

    fn note(name: &'static str, summary: impl Into<String>, advice: Option<&str>) -> Self {
        let advice = advice.map(str::to_owned);
        Self { name, status: Status::Note, summary: summary.into(), advice }
    }

    fn problem(name: &'static str, summary: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, status: Status::Problem, summary: summary.into(), advice: Some(advice.into()) }
    }
}

pub(crate) fn run(options: Options, root: Flags) -> Result<ExitCode> {
    crate::logging::init(LevelFilter::ERROR);
    let flags = root.then(options.flags).pairs()?;
    let Found { checks, features, sandbox, hidden } = examine(flags, options.provider);
    let is_good = checks.iter().all(|check| check.status != Status::Problem);
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
struct Found {
    checks: Vec<Check>,
    /// Which ones are on.
    features: Value,
    /// Each wall, as the self-test found it.
    sandbox: Value,
    /// What commands cannot read.
    hidden: Value,
}

fn examine(flags: Vec<(String, String)>, provider: Option<String>) -> Found {
    let report = SelfTest::run();
    let home = match Home::look_from_env() {
        Ok(home) => home,
        Err(error) => {
            let advice = "point OARLOCK_HOME to a folder of your own";
            let wanted = Wanted::default();
            return Found {
                checks: vec![Check::problem("home", error.to_string(), advice), walls::check(report, wanted)],
                features: Value::Null,
                sandbox: walls::json(report, wanted),
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
        checks.extend([checks::provider(&loader, config), checks::model(config), checks::hidden(config)]);
        hidden = checks::hidden_json(config);
        features = config.features.iter().map(|(key, is_on)| (key.to_owned(), Value::from(is_on))).collect();
    }
    checks.extend(checks::records(loader.home()));
    checks.push(checks::workspace(cwd.as_deref()));
    // What cannot be read might ask for walls, so it counts as if it did.
    let wanted = loaded.as_ref().map_or(Wanted { walls: true, ..Wanted::default() }, Wanted::by);
    checks.push(walls::check(report, wanted));
    Found { checks, features, sandbox: walls::json(report, wanted), hidden }
}

fn lines(checks: &[Check], paint: Paint) -> String {
    let width = checks.iter().map(|check| check.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for check in checks {
        let (word, style) = match check.status {
            Status::Ok => ("ok", Style::Good),
            Status::Note => ("note", Style::Careful),
            Status::Problem => ("problem", Style::Bad),
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
        let checks = [Check::ok("home", "/h"), Check::problem("provider", "no key", "set KEY")];
        let expected = "ok       home      /h\nproblem  provider  no key\n                   -> set KEY\n";
        assert_eq!(lines(&checks, Paint::decide(Color::Never, false)), expected);
    }
}
