//! The administrator's requirements.

mod file;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use policy::PrefixRule;
use protocol::{
    AskForApproval, ConfigRequirements, ResidencyRequirement, SandboxMode, SandboxPolicy, WebSearchMode,
};
use serde::Serialize;
use toml::Table;

use self::file::{AllowedSandbox, NetworkKeys, RequirementKeys, Residency};
use crate::features::Feature;
use crate::layer::{SettingsLayer, read_optional};
use crate::typed::typed;
use crate::{ConfigError, SettingWarning};

/// A list of allowed values, and the file that sets it.
#[derive(Debug, Clone, PartialEq)]
struct Allowed<T> {
    values: Vec<T>,
    source: PathBuf,
}

/// The active requirements. The default allows everything.
#[derive(Debug, Clone, Default)]
pub struct Requirements {
    approval: Option<Allowed<AskForApproval>>,
    sandbox: Option<Allowed<AllowedSandbox>>,
    web_search: Option<Allowed<WebSearchMode>>,
    features: Option<(BTreeMap<&'static str, bool>, PathBuf)>,
    residency: Option<Residency>,
    network: Option<NetworkKeys>,
    /// Text for the agent that reviews approvals.
    pub guardian_developer_instructions: Option<String>,
    /// `[mcp_servers]`: the only servers that may run, by name, each with its `identity`.
    pub mcp_servers: Option<Table>,
    /// `[apps]`: those with `enabled = false` stay off.
    pub apps: Option<Table>,
    /// `[rules]`: asking or forbidding rules for commands, in addition to the user's.
    pub rules: Vec<PrefixRule>,
}

impl Requirements {
    /// Reads the file, if there is one, and adds missing values from an older managed config file.
    pub(crate) fn read(file: Option<&Path>, managed: Option<&SettingsLayer>) -> Result<Self, ConfigError> {
        let mut requirements = match file {
            Some(path) => Self::from_file(path)?,
            None => Self::default(),
        };
        if let Some(managed) = managed {
            requirements.fill_from(managed);
        }
        Ok(requirements)
    }

    fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let Some(text) = read_optional(path)? else { return Ok(Self::default()) };
        let table: Table =
            toml::from_str(&text).map_err(|error| ConfigError::in_file(path, &text, &error))?;
        let keys: RequirementKeys = typed(&table).map_err(|misfit| misfit.in_file(path, &text))?;
        let refuse = |problem: String| Err(ConfigError::value(format!("{}: {problem}", path.display())));
        if keys.allowed_approval_policies.as_ref().is_some_and(Vec::is_empty) {
            return refuse("allowed_approval_policies must name at least one policy".to_owned());
        }
        if keys.allowed_sandbox_modes.as_ref().is_some_and(|modes| !modes.contains(&AllowedSandbox::ReadOnly))
        {
            return refuse("allowed_sandbox_modes must contain `read-only`".to_owned());
        }
        let network = keys.experimental_network;
        if network.as_ref().is_some_and(|network| network.enabled != Some(false)) {
            return refuse(
                "[experimental_network] cannot be enforced: this program has no managed network. Set enabled = false \
                 there; commands have no network in the sandboxes that allowed_sandbox_modes can require"
                    .to_owned(),
            );
        }
        let rules = keys.rules.map_or(Ok(Vec::new()), |rules| rules.into_rules(path));
        let rules = rules.map_err(|problem| ConfigError::value(format!("{}: {problem}", path.display())))?;
        let mut features = BTreeMap::new();
        for (key, enabled) in keys.features.iter().flatten() {
            match Feature::find(key) {
                Some(feature) => features.insert(feature.key, *enabled),
                None => return refuse(format!("unknown feature `{key}`")),
            };
        }
        Ok(Self {
            approval: allowed(keys.allowed_approval_policies, path),
            sandbox: allowed(keys.allowed_sandbox_modes, path),
            web_search: allowed(keys.allowed_web_search_modes, path),
            features: keys.features.map(|_| (features, path.to_owned())),
            residency: keys.enforce_residency,
            network,
            guardian_developer_instructions: keys.guardian_developer_instructions,
            mcp_servers: keys.mcp_servers,
            apps: keys.apps,
            rules,
        })
    }

    /// A value of the wrong kind is refused with the rest of that layer, so it is ignored here.
    fn fill_from(&mut self, managed: &SettingsLayer) {
        let source = managed.file().unwrap_or(Path::new("managed_config.toml"));
        let value = |key: &str| managed.table.get(key).cloned();
        if self.approval.is_none() {
            let policy = value("approval_policy").and_then(|value| value.try_into().ok());
            self.approval = allowed(policy.map(|policy| vec![policy]), source);
        }
        if self.sandbox.is_none() {
            let mode = value("sandbox_mode").and_then(|value| value.try_into().ok());
            self.sandbox = allowed(mode.map(|mode| vec![AllowedSandbox::ReadOnly, mode]), source);
        }
    }

    /// Whether a running thread may change to this policy.
    pub fn allow_approval_policy(&self, policy: &AskForApproval) -> Result<(), ConfigError> {
        check(self.approval.as_ref(), policy, "approval_policy")
    }

    /// Whether a running thread may change to this sandbox.
    pub fn allow_sandbox(&self, policy: &SandboxPolicy) -> Result<(), ConfigError> {
        let mode = match policy {
            SandboxPolicy::DangerFullAccess => AllowedSandbox::DangerFullAccess,
            SandboxPolicy::ReadOnly { .. } => AllowedSandbox::ReadOnly,
            SandboxPolicy::ExternalSandbox { .. } => AllowedSandbox::ExternalSandbox,
            SandboxPolicy::WorkspaceWrite { .. } => AllowedSandbox::WorkspaceWrite,
        };
        check(self.sandbox.as_ref(), &mode, "sandbox_mode")
    }

    /// Whether a file may choose the mode.
    pub(crate) fn allow_sandbox_mode(&self, mode: SandboxMode) -> Result<(), ConfigError> {
        let mode = match mode {
            SandboxMode::ReadOnly => AllowedSandbox::ReadOnly,
            SandboxMode::WorkspaceWrite => AllowedSandbox::WorkspaceWrite,
            SandboxMode::DangerFullAccess => AllowedSandbox::DangerFullAccess,
        };
        check(self.sandbox.as_ref(), &mode, "sandbox_mode")
    }

    /// Whether web search may run in this mode. Turning it off is always allowed.
    pub fn allow_web_search(&self, mode: WebSearchMode) -> Result<(), ConfigError> {
        match mode {
            WebSearchMode::Disabled => Ok(()),
            mode => check(self.web_search.as_ref(), &mode, "web_search"),
        }
    }

    /// The region in which data must stay.
    pub(crate) fn residency(&self) -> Option<&'static str> {
        self.residency.map(|Residency::Us| "us")
    }

    /// The fixed flags, by name.
    pub fn features(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        self.features.iter().flat_map(|(features, _)| features.iter().map(|(key, enabled)| (*key, *enabled)))
    }

    pub(crate) fn features_file(&self) -> Option<&Path> {
        self.features.as_ref().map(|(_, file)| file.as_path())
    }

    pub(crate) fn constrain_approval(
        &self,
        chosen: ChosenValue<AskForApproval>,
        warn: Warn<'_>,
    ) -> AskForApproval {
        let fallback = self.approval.as_ref().and_then(|allowed| allowed.values.first().cloned());
        let verdict = self.allow_approval_policy(&chosen.value);
        settle(chosen, verdict, fallback.unwrap_or(AskForApproval::OnRequest), warn)
    }

    pub(crate) fn constrain_sandbox(&self, chosen: ChosenValue<SandboxMode>, warn: Warn<'_>) -> SandboxMode {
        let verdict = self.allow_sandbox_mode(chosen.value);
        settle(chosen, verdict, SandboxMode::ReadOnly, warn)
    }

    pub(crate) fn constrain_web_search(
        &self,
        chosen: ChosenValue<WebSearchMode>,
        warn: Warn<'_>,
    ) -> WebSearchMode {
        let verdict = self.allow_web_search(chosen.value);
        settle(chosen, verdict, self.first_allowed_search([WebSearchMode::Cached, WebSearchMode::Live]), warn)
    }

    pub(crate) fn first_allowed_search(&self, wanted: [WebSearchMode; 2]) -> WebSearchMode {
        let mut wanted = wanted.into_iter();
        wanted.find(|mode| self.allow_web_search(*mode).is_ok()).unwrap_or(WebSearchMode::Disabled)
    }

    /// The form for clients; none if nothing is required.
    pub fn to_wire(&self) -> Option<ConfigRequirements> {
        let wire = ConfigRequirements {
            allowed_approval_policies: self.approval.as_ref().map(|allowed| allowed.values.clone()),
            allowed_sandbox_modes: self
                .sandbox
                .as_ref()
                .map(|allowed| allowed.values.iter().filter_map(|mode| mode.to_wire()).collect()),
            allowed_web_search_modes: self.web_search.as_ref().map(|allowed| {
                let mut modes = allowed.values.clone();
                if !modes.contains(&WebSearchMode::Disabled) {
                    modes.push(WebSearchMode::Disabled);
                }
                modes
            }),
            feature_requirements: self.features.as_ref().map(|(features, _)| {
                features.iter().map(|(key, enabled)| ((*key).to_owned(), *enabled)).collect()
            }),
            enforce_residency: self.residency.map(|Residency::Us| ResidencyRequirement::Us),
            network: self.network.clone().map(NetworkKeys::into_wire),
        };
        let nothing = ConfigRequirements {
            allowed_approval_policies: None,
            allowed_sandbox_modes: None,
            allowed_web_search_modes: None,
            feature_requirements: None,
            enforce_residency: None,
            network: None,
        };
        (wire != nothing || self.has_unlisted()).then_some(wire)
    }

    /// Rules without a field on the wire.
    fn has_unlisted(&self) -> bool {
        let tables = [&self.mcp_servers, &self.apps];
        self.guardian_developer_instructions.is_some()
            || !self.rules.is_empty()
            || tables.iter().any(|table| table.is_some())
    }
}

/// A value, and whether it was set explicitly.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenValue<T> {
    pub(crate) value: T,
    pub(crate) explicit: bool,
}

/// Where warnings go.
pub(crate) type Warn<'a> = &'a mut Vec<SettingWarning>;

/// A forbidden value is replaced by the fallback, with a warning if it was set.
fn settle<T>(chosen: ChosenValue<T>, verdict: Result<(), ConfigError>, fallback: T, warn: Warn<'_>) -> T
where
    T: Serialize,
{
    let Err(error) = verdict else { return chosen.value };
    if chosen.explicit {
        let summary = format!("A setting is not allowed here and was replaced by `{}`.", name(&fallback));
        warn.push(SettingWarning::with_details(summary, error.to_string()));
    }
    fallback
}

fn allowed<T>(values: Option<Vec<T>>, source: &Path) -> Option<Allowed<T>> {
    values.map(|values| Allowed { values, source: source.to_owned() })
}

fn check<T: PartialEq + Serialize>(
    allowed: Option<&Allowed<T>>,
    candidate: &T,
    field: &'static str,
) -> Result<(), ConfigError> {
    let Some(allowed) = allowed.filter(|allowed| !allowed.values.contains(candidate)) else { return Ok(()) };
    let names: Vec<String> = allowed.values.iter().map(|value| format!("`{}`", name(value))).collect();
    Err(ConfigError::NotAllowed {
        field,
        candidate: name(candidate),
        allowed: if names.is_empty() { "nothing".to_owned() } else { names.join(", ") },
        file: allowed.source.clone(),
    })
}

/// The value as written in a file.
fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        Ok(other) => other.to_string(),
        Err(_) => "?".to_owned(),
    }
}
