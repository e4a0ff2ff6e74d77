//! Feature flags, and a method that only tests the experimental gate.

use super::prelude::*;

/// Lists all feature flags, a page at a time.
#[wire(omit_null)]
pub struct ExperimentalFeatureListParams {
    /// `nextCursor` of the page before; unset for the first page.
    pub cursor: Option<String>,
    /// Most flags on one page.
    pub limit: Option<u32>,
}

/// Switches flags for this process. Not stored, and never stronger than config or requirements.
#[wire]
pub struct ExperimentalFeatureEnablementSetParams {
    /// By flag name; other flags stay as they are. Only `apps`, `plugins`, `tool_search`, `tool_suggest` and
    /// `tool_call_mcp_elicitation` can be set.
    pub enablement: BTreeMap<String, bool>,
}

/// Echoes a value. Exists to test the experimental gate.
#[wire(omit_null)]
pub struct MockExperimentalMethodParams {
    pub value: Option<String>,
}

/// One feature flag.
#[wire]
pub struct ExperimentalFeature {
    /// Its key under `features` in the configuration.
    pub name: String,
    pub stage: ExperimentalFeatureStage,
    /// Set for `beta` flags only.
    pub display_name: Option<String>,
    /// Set for `beta` flags only.
    pub description: Option<String>,
    /// Set for `beta` flags only.
    pub announcement: Option<String>,
    /// The value in effect.
    pub enabled: bool,
    /// The value when nothing is configured.
    pub default_enabled: bool,
}

/// How finished a feature is.
#[wire]
pub enum ExperimentalFeatureStage {
    /// Users may try it.
    Beta,
    /// Not meant for use yet.
    UnderDevelopment,
    /// Finished.
    Stable,
    /// Will go away.
    Deprecated,
    /// The name is kept; the flag has no effect.
    Removed,
}

#[wire]
pub struct ExperimentalFeatureListResponse {
    pub data: Vec<ExperimentalFeature>,
    /// Null on the last page.
    pub next_cursor: Option<String>,
}

#[wire]
pub struct ExperimentalFeatureEnablementSetResponse {
    /// The flags of the request.
    pub enablement: BTreeMap<String, bool>,
}

#[wire]
pub struct MockExperimentalMethodResponse {
    /// `value` of the request.
    pub echoed: Option<String>,
}
