//! Skills: written know-how the agent can draw on, found in folders.

use super::prelude::*;

/// More folders to search for one working directory.
#[wire]
pub struct SkillsListExtraRootsForCwd {
    /// One of `cwds`; otherwise this entry is ignored.
    pub cwd: String,
    /// Absolute paths. Skills found there have the scope `user`.
    pub extra_user_roots: Vec<String>,
}

/// Lists the skills for each working directory.
#[wire(omit_null)]
pub struct SkillsListParams {
    /// The server's own when empty.
    #[serde(default)]
    pub cwds: Vec<String>,
    /// Read from disk again instead of using what was found before.
    #[serde(default)]
    pub force_reload: bool,
    pub per_cwd_extra_user_roots: Option<Vec<SkillsListExtraRootsForCwd>>,
    /// The placement in which it is carried out; the host's own machine when unset. Only a host has placements.
    #[experimental("skills/list.placementId")]
    pub placement_id: Option<String>,
}

/// Switches a skill on or off in the user's config file. Takes either `path` or `name`.
#[wire(omit_null)]
pub struct SkillsConfigWriteParams {
    /// Its `SKILL.md`.
    pub path: Option<AbsolutePath>,
    pub name: Option<String>,
    pub enabled: bool,
}

/// The dependencies of a skill.
#[wire]
pub struct SkillDependencies {
    pub tools: Vec<SkillToolDependency>,
}

/// A skill that could not be read.
#[wire]
pub struct SkillErrorInfo {
    pub path: String,
    pub message: String,
}

/// How to show a skill.
#[wire(omit_null)]
pub struct SkillInterface {
    pub display_name: Option<String>,
    pub short_description: Option<String>,
    /// Path of an image.
    pub icon_small: Option<String>,
    /// Path of an image.
    pub icon_large: Option<String>,
    /// As `#RRGGBB`.
    pub brand_color: Option<String>,
    /// A prompt to suggest.
    pub default_prompt: Option<String>,
}

/// One skill.
#[wire(omit_null)]
pub struct SkillMetadata {
    /// At most 64 characters; not always unique.
    pub name: String,
    /// For the model to tell when to use it. At most 1,024 characters.
    pub description: String,
    pub short_description: Option<String>,
    pub interface: Option<SkillInterface>,
    pub dependencies: Option<SkillDependencies>,
    /// Its `SKILL.md`.
    pub path: String,
    pub scope: SkillScope,
    /// False when config switches it off.
    pub enabled: bool,
}

/// The level that a skill belongs to.
#[wire]
pub enum SkillScope {
    /// The user's, or a plugin's.
    User,
    /// The project's.
    Repo,
    /// Comes with the server.
    System,
    /// The machine's.
    Admin,
}

/// A tool a skill needs.
#[wire(omit_null)]
pub struct SkillToolDependency {
    /// The kind of tool.
    pub r#type: String,
    /// The tool's name.
    pub value: String,
    pub description: Option<String>,
    /// How an MCP server is reached.
    pub transport: Option<String>,
    /// The command that starts an MCP server.
    pub command: Option<String>,
    /// Where an MCP server is.
    pub url: Option<String>,
}

/// The skills of one working directory.
#[wire]
pub struct SkillsListEntry {
    pub cwd: String,
    /// Those of the project first, then the user's, the system's and the machine's; by name in each.
    pub skills: Vec<SkillMetadata>,
    pub errors: Vec<SkillErrorInfo>,
}

#[wire]
pub struct SkillsListResponse {
    pub data: Vec<SkillsListEntry>,
}

/// A skill as part of a plugin.
#[wire]
pub struct SkillSummary {
    /// `<plugin>:<skill>`.
    pub name: String,
    pub description: String,
    pub short_description: Option<String>,
    pub interface: Option<SkillInterface>,
    /// Its `SKILL.md`.
    pub path: String,
    pub enabled: bool,
}

#[wire]
pub struct SkillsConfigWriteResponse {
    /// Whether the skill is enabled after the write.
    pub effective_enabled: bool,
}

/// Sent when skill files changed on disk. `skills/list` tells how.
#[wire]
pub struct SkillsChangedNotification {}
