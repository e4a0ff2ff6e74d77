//! Taking over the configuration of another coding agent.

use super::prelude::*;

/// Finds what could be taken over and is not here yet.
#[wire(omit_null)]
pub struct ExternalAgentConfigDetectParams {
    /// Also look in the user's home.
    #[serde(default)]
    pub include_home: bool,
    /// Folders to look in. Each stands for the git repository it is in.
    pub cwds: Option<Vec<String>>,
}

/// One thing to take over.
#[wire]
pub struct ExternalAgentConfigMigrationItem {
    pub item_type: ExternalAgentConfigMigrationItemType,
    /// For display.
    pub description: String,
    /// The repository; null for the user's home.
    pub cwd: Option<String>,
}

/// The kind of thing that is imported.
#[wire(screaming)]
pub enum ExternalAgentConfigMigrationItemType {
    /// Instructions, into `AGENTS.md`.
    AgentsMd,
    /// Settings, into the config file.
    Config,
    /// Skill folders.
    Skills,
    /// Never found, and importing it does nothing.
    McpServerConfig,
}

/// Takes things over. Adds what is missing and overwrites nothing.
#[wire]
pub struct ExternalAgentConfigImportParams {
    /// As `externalAgentConfig/detect` returned them.
    pub migration_items: Vec<ExternalAgentConfigMigrationItem>,
}

#[wire]
pub struct ExternalAgentConfigDetectResponse {
    pub items: Vec<ExternalAgentConfigMigrationItem>,
}

#[wire]
pub struct ExternalAgentConfigImportResponse {}
