//! requirements.toml as it is written.

use std::collections::BTreeMap;

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

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
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
    pub(super) rules: Option<Table>,
}

/// A region that data must stay in.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Residency {
    Us,
}

/// `[experimental_network]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct NetworkKeys {
    enabled: Option<bool>,
    http_port: Option<u16>,
    socks_port: Option<u16>,
    allow_upstream_proxy: Option<bool>,
    dangerously_allow_non_loopback_proxy: Option<bool>,
    dangerously_allow_all_unix_sockets: Option<bool>,
    allowed_domains: Option<Vec<String>>,
    denied_domains: Option<Vec<String>>,
    allow_unix_sockets: Option<Vec<String>>,
    allow_local_binding: Option<bool>,
}

impl AllowedSandbox {
    /// The wire has no name for a sandbox that is not ours.
    pub(super) fn to_wire(self) -> Option<SandboxMode> {
        match self {
            Self::ReadOnly => Some(SandboxMode::ReadOnly),
            Self::WorkspaceWrite => Some(SandboxMode::WorkspaceWrite),
            Self::DangerFullAccess => Some(SandboxMode::DangerFullAccess),
            Self::ExternalSandbox => None,
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
