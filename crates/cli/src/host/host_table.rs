//! `[host]` of the configuration: who may connect, how much tasks may use, and who is told what waits.

use std::path::PathBuf;

use ::host::HostLimits;
use anyhow::{Context, Result};
use protocol::TaskBudget;
use runtime::config::{ResolvedConfig, key_problem};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HostTable {
    /// The file with the tokens of websocket clients.
    pub(crate) tokens: Option<PathBuf>,
    /// `IP:PORT` where other hosts on the same Postgres connect.
    pub(crate) peer_listen: Option<String>,
    /// `HOST:PORT` where they find it, if that is another address than the one this host listens on.
    pub(crate) peer_address: Option<String>,
    /// The file with the secret that all of them share.
    pub(crate) peer_secret: Option<PathBuf>,
    /// Models that tasks may use; a `*` at the end stands for any rest.
    models: Option<Vec<String>>,
    /// Model requests of one task within a minute.
    requests_per_minute: Option<u32>,
    /// How long a runtime without a turn is kept, in seconds.
    pub(crate) idle_after: Option<u64>,
    /// How long a runtime whose turn waits for a decision is kept, in seconds.
    pub(crate) suspend_after: Option<u64>,
    /// Runtimes at once; more tasks wait.
    max_running: Option<usize>,
    #[serde(default)]
    budget: BudgetTables,
    /// A command with its first arguments, or the URL of a webhook.
    pub(crate) notify: Option<NotifyTarget>,
    /// How long something waits before anybody is notified, in seconds.
    pub(crate) notify_after: Option<u64>,
    /// Tasks without a turn that nobody has touched for so many days are removed.
    pub(crate) retention_days: Option<u32>,
    /// Entries of the audit trail that are so many days old are removed.
    pub(crate) audit_retention_days: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetTables {
    task: Option<BudgetTable>,
    day: Option<BudgetTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BudgetTable {
    usd: Option<f64>,
    tokens: Option<i64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum NotifyTarget {
    Command(Vec<String>),
    Webhook(String),
}

impl HostTable {
    /// `config` was loaded without a project: a project says nothing about the host.
    pub(crate) fn read(config: &ResolvedConfig) -> Result<Self> {
        let Some(table) = config.merged.get("host") else { return Ok(Self::default()) };
        if let Some(key) = no_number(table, "host") {
            anyhow::bail!("{key}: a limit is a number that is not below zero");
        }
        let keys = table.as_table().into_iter().flat_map(|table| table.keys());
        if let Some(problem) = keys.filter_map(|key| key_problem(&format!("host.{key}"))).next() {
            anyhow::bail!(problem);
        }
        let table: Value = serde_json::to_value(table)?;
        let table: Self = serde_json::from_value(table).context("[host] in the configuration")?;
        match &table.notify {
            Some(NotifyTarget::Command(words)) if words.is_empty() => {
                anyhow::bail!("host.notify: the command is empty; give a program, or the URL of a webhook")
            }
            Some(NotifyTarget::Webhook(url))
                if !url.starts_with("http://") && !url.starts_with("https://") =>
            {
                let shown = shown_url(url);
                anyhow::bail!("host.notify: {shown} is no http(s) URL; write a command as a list of words")
            }
            _ => Ok(table),
        }
    }

    pub(crate) fn limits(&self, config: &ResolvedConfig) -> HostLimits {
        let budget = |table: &BudgetTable| TaskBudget { usd: table.usd, tokens: table.tokens };
        HostLimits {
            task: self.budget.task.as_ref().map(budget),
            day: self.budget.day.as_ref().map(budget),
            models: self.models.clone(),
            requests_per_minute: self.requests_per_minute,
            max_running: self.max_running,
            prices: config.prices.clone(),
        }
    }
}

/// The name of a key whose number is none, infinite or below zero. In JSON the first two would be as if not there.
fn no_number(value: &toml::Value, name: &str) -> Option<String> {
    match value {
        toml::Value::Float(number) if !number.is_finite() || *number < 0.0 => Some(name.to_owned()),
        toml::Value::Integer(number) if *number < 0 => Some(name.to_owned()),
        toml::Value::Table(table) => {
            table.iter().find_map(|(key, value)| no_number(value, &format!("{name}.{key}")))
        }
        _ => None,
    }
}

/// As much of a webhook as a log may have: what follows the host is often its secret.
pub(super) fn shown_url(url: &str) -> String {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let (start, rest) = url.split_at(scheme);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{start}{host}/…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_no_number_is_named() {
        let table = |text: &str| text.parse::<toml::Table>().map(toml::Value::Table).expect("TOML");
        for (text, key) in [
            ("[budget.task]\nusd = nan", Some("host.budget.task.usd")),
            ("[budget.day]\nusd = inf", Some("host.budget.day.usd")),
            ("[budget.day]\ntokens = -5", Some("host.budget.day.tokens")),
            ("max_running = 3\n[budget.task]\nusd = 0.5", None),
        ] {
            assert_eq!(no_number(&table(text), "host").as_deref(), key, "{text}");
        }
    }

    #[test]
    fn a_log_has_no_more_of_a_webhook_than_where_it_is() {
        assert_eq!(
            shown_url("https://me:pw@hooks.example:8443/T0/SECRET?token=x"),
            "https://hooks.example:8443/…"
        );
        assert_eq!(shown_url("hooks/SECRET"), "hooks/…");
    }
}
