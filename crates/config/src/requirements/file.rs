//! requirements.toml as it is written.

use std::collections::BTreeMap;
use std::path::Path;

use policy::{PrefixRule, RuleDecision, RuleSource};
use protocol::{AskForApproval, NetworkRequirements, SandboxMode, WebSearchMode};
use serde::{Deserialize, Serialize};
use toml::Table;

/// A sandbox an administrator can allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AllowedSandbox {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
    ExternalSandbox,
}

/// The file. An unknown key is an error: a misspelt limit would have no effect.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RequirementKeys {
    pub(super) allowed_approval_policies: Option<Vec<AskForApproval>>,
    pub(super) allowed_sandbox_modes: Option<Vec<AllowedSandbox>>,
    pub(super) allowed_web_search_modes: Option<Vec<WebSearchMode>>,
    #[serde(alias = "feature_requirements")]
    pub(super) features: Option<BTreeMap<String, bool>>,
    pub(super) enforce_residency: Option<Residency>,
    pub(super) experimental_network: Option<NetworkKeys>,
    pub(super) guardian_developer_instructions: Option<String>,
    pub(super) mcp_servers: Option<Table>,
    pub(super) apps: Option<Table>,
    pub(super) rules: Option<RuleKeys>,
}

/// `[rules]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleKeys {
    prefix_rules: Vec<PrefixRuleKeys>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PrefixRuleKeys {
    pattern: Vec<PatternKeys>,
    decision: RuleDecision,
    justification: Option<String>,
}

/// One position of a pattern.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PatternKeys {
    token: Option<String>,
    any_of: Option<Vec<String>>,
}

/// A region in which data must stay.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Residency {
    Us,
}

/// `[experimental_network]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct NetworkKeys {
    pub(super) enabled: Option<bool>,
    http_port: Option<u16>,
    socks_port: Option<u16>,
    allow_upstream_proxy: Option<bool>,
    dangerously_allow_non_loopback_proxy: Option<bool>,
    dangerously_allow_all_unix_sockets: Option<bool>,
    allowed_domains: Option<Vec<String>>,
    denied_domains: Option<Vec<String>>,
    /// Not part of the wire.
    #[serde(rename = "managed_allowed_domains_only")]
    _managed_allowed_domains_only: Option<bool>,
    allow_unix_sockets: Option<Vec<String>>,
    allow_local_binding: Option<bool>,
}

impl AllowedSandbox {
    /// An external sandbox has no name on the wire.
    pub(super) fn to_wire(self) -> Option<SandboxMode> {
        match self {
            Self::ReadOnly => Some(SandboxMode::ReadOnly),
            Self::WorkspaceWrite => Some(SandboxMode::WorkspaceWrite),
            Self::DangerFullAccess => Some(SandboxMode::DangerFullAccess),
            Self::ExternalSandbox => None,
        }
    }
}

impl RuleKeys {
    /// Converts them to rules for commands. The error names the key.
    pub(super) fn into_rules(self, file: &Path) -> Result<Vec<PrefixRule>, String> {
        if self.prefix_rules.is_empty() {
            return Err("rules.prefix_rules must have at least one rule".to_owned());
        }
        let rule = |rule: PrefixRuleKeys| {
            if rule.decision == RuleDecision::Allow {
                return Err(
                    "decision of rules.prefix_rules may be `prompt` or `forbidden`, not `allow`".to_owned()
                );
            }
            if rule.pattern.is_empty() {
                return Err("pattern of rules.prefix_rules must have at least one word".to_owned());
            }
            Ok(PrefixRule {
                pattern: rule.pattern.into_iter().map(PatternKeys::into_words).collect::<Result<_, _>>()?,
                decision: rule.decision,
                justification: rule.justification,
                source: RuleSource { file: file.display().to_string(), line: 0 },
                by_approval: false,
            })
        };
        self.prefix_rules.into_iter().map(rule).collect()
    }
}

impl PatternKeys {
    fn into_words(self) -> Result<Vec<String>, String> {
        match (self.token, self.any_of) {
            (Some(token), None) if !token.is_empty() => Ok(vec![token]),
            (None, Some(words)) if !words.is_empty() && !words.iter().any(String::is_empty) => Ok(words),
            _ => Err(
                "each place in a pattern of rules.prefix_rules needs `token` or `any_of`, and words in it"
                    .to_owned(),
            ),
        }
    }
}

impl NetworkKeys {
    pub(super) fn into_wire(self) -> NetworkRequirements {
        NetworkRequirements {
            enabled: self.enabled,
            http_port: self.http_port,
            socks_port: self.socks_port,
            allow_upstream_proxy: self.allow_upstream_proxy,
            dangerously_allow_non_loopback_proxy: self.dangerously_allow_non_loopback_proxy,
            dangerously_allow_all_unix_sockets: self.dangerously_allow_all_unix_sockets,
            allowed_domains: self.allowed_domains,
            denied_domains: self.denied_domains,
            allow_unix_sockets: self.allow_unix_sockets,
            allow_local_binding: self.allow_local_binding,
        }
    }
}
