//! The tools of a thread and their approvers, as chosen by a host. Checked before the thread is opened: unsupported
//! choices are refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::{Gate, ToolKind, ToolSpec, digest_of};
use protocol::{
    DelegationFeature, DynamicToolSpec, EffectiveTool, ToolApprovalRule, ToolEffects, ToolOrigin, ToolSet,
    ToolSetMode, ToolSetTool,
};
use serde_json::json;
use tools::Registry;

use crate::dynamic_tools::check_dynamic_tools;
use crate::host_choices::HostChoices;
use crate::{DelegationError, Terms};

/// The requested tools, with every built-in under the name in an offer.
pub fn asked_tool_set(
    asked: Option<&ToolSet>,
    terms: &Terms,
) -> Result<Option<Box<ToolSet>>, DelegationError> {
    let Some(asked) = asked else { return Ok(None) };
    if !terms.has_agreed(&DelegationFeature::ToolSet) {
        let problem = "was not agreed on: `toolSet` is no agreed feature".to_owned();
        return Err(DelegationError::Unsupported { field: "toolSet", problem });
    }
    Ok(Some(Box::new(checked(asked)?)))
}

/// The older fields contradict a tool set.
pub fn refuse_beside(field: &str) -> DelegationError {
    let problem = format!("cannot be used together with {field}, which it takes the place of");
    invalid("invalidToolSet", "toolSet", problem)
}

fn checked(asked: &ToolSet) -> Result<ToolSet, DelegationError> {
    let registry = Registry::builtin();
    check_mode(asked)?;
    check_dynamic(&asked.dynamic, &registry)?;
    let mut set = asked.clone();
    if let Some(filter) = &mut set.builtin {
        for (field, names) in
            [("toolSet.builtin.allow", &mut filter.allow), ("toolSet.builtin.deny", &mut filter.deny)]
        {
            if let Some(names) = names {
                *names = listed(names, field, &registry)?;
            }
        }
    }
    if let Some(approval) = &mut set.approval {
        approval.per_tool = rules_by_tool(&approval.per_tool, &asked.dynamic, &registry)?;
    }
    Ok(set)
}

/// Each field belongs to one mode.
fn check_mode(asked: &ToolSet) -> Result<(), DelegationError> {
    let filter = asked.builtin.as_ref();
    let allows = filter.is_some_and(|filter| filter.allow.is_some());
    let denies = filter.is_some_and(|filter| filter.deny.is_some());
    let (field, needs) = match asked.mode {
        ToolSetMode::Default if allows => ("toolSet.builtin.allow", "`additive` or `replace`"),
        ToolSetMode::Default | ToolSetMode::Replace if denies => ("toolSet.builtin.deny", "`additive`"),
        ToolSetMode::Default if !asked.dynamic.is_empty() => ("toolSet.dynamic", "`additive` or `replace`"),
        _ => return Ok(()),
    };
    Err(invalid("invalidToolSet", field, format!("is for the mode {needs} only")))
}

fn check_dynamic(tools: &[ToolSetTool], registry: &Registry) -> Result<(), DelegationError> {
    let specs: Vec<_> = tools.iter().map(plain).collect();
    check_dynamic_tools(&specs).map_err(|error| invalid("invalidToolSet", "toolSet.dynamic:", error))?;
    for (at, tool) in tools.iter().enumerate() {
        let problem = match (registry.knows(&tool.name), registry.listed_name(&tool.name)) {
            (true, None) => "is a name the runtime keeps for itself",
            (true, Some(_)) if !tool.r#override => "is the name of a built-in tool, and override is not set",
            _ => continue,
        };
        let field = format!("toolSet.dynamic[{at}]");
        return Err(invalid("toolConflict", &field, format!("{problem}: {}", tool.name)));
    }
    Ok(())
}

fn listed(names: &[String], field: &str, registry: &Registry) -> Result<Vec<String>, DelegationError> {
    let (mut seen, mut listed) = (BTreeSet::new(), Vec::new());
    for name in names {
        let Some(tool) = registry.listed_name(name) else {
            return Err(invalid("unknownTool", field, format!("names no built-in tool: {name}")));
        };
        if !seen.insert(tool) {
            return Err(invalid("invalidToolSet", field, format!("names a tool twice: {name}")));
        }
        listed.push(tool.to_owned());
    }
    Ok(listed)
}

fn rules_by_tool(
    rules: &BTreeMap<String, ToolApprovalRule>,
    dynamic: &[ToolSetTool],
    registry: &Registry,
) -> Result<BTreeMap<String, ToolApprovalRule>, DelegationError> {
    const FIELD: &str = "toolSet.approval.perTool";
    let mut by_tool = BTreeMap::new();
    for (name, rule) in rules {
        let is_theirs = dynamic.iter().any(|tool| tool.name == *name);
        let tool = if is_theirs { Some(name.as_str()) } else { registry.listed_name(name) };
        let Some(tool) = tool else {
            return Err(invalid("unknownTool", FIELD, format!("names no tool: {name}")));
        };
        if by_tool.insert(tool.to_owned(), *rule).is_some() {
            return Err(invalid("invalidToolSet", FIELD, format!("has two rules for one tool: {name}")));
        }
    }
    Ok(by_tool)
}

fn invalid(code: &'static str, field: &str, problem: impl Into<String>) -> DelegationError {
    DelegationError::Invalid { code, field: field.to_owned(), problem: problem.into() }
}

fn plain(tool: &ToolSetTool) -> DynamicToolSpec {
    DynamicToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        defer_loading: tool.defer_loading,
        namespace: None,
        namespace_description: None,
    }
}

impl HostChoices {
    /// A tool set replaces the other fields.
    pub fn with_tool_set(mut self, tool_set: Option<Box<ToolSet>>) -> Self {
        if tool_set.is_some() {
            (self.tool_set, self.builtin_tools) = (tool_set, None);
        }
        self
    }

    /// Only these built-in tools. Unset: from the model and the configuration.
    pub fn allowed(&self) -> Option<Vec<String>> {
        match &self.tool_set {
            Some(set) if set.mode == ToolSetMode::Replace => {
                let allow = set.builtin.as_ref().and_then(|filter| filter.allow.clone());
                Some(allow.unwrap_or_default())
            }
            _ => self.builtin_tools.clone(),
        }
    }

    /// Additional tools that the model and the configuration do not enable.
    pub fn added(&self) -> &[String] {
        match &self.tool_set {
            Some(set) if set.mode == ToolSetMode::Additive => {
                set.builtin.as_ref().and_then(|filter| filter.allow.as_deref()).unwrap_or_default()
            }
            _ => &[],
        }
    }

    /// Tools that are denied, or replaced by one of the host's.
    pub fn denied(&self, registry: &Registry) -> Vec<String> {
        let Some(set) = &self.tool_set else { return Vec::new() };
        let mut denied = set.builtin.as_ref().and_then(|filter| filter.deny.clone()).unwrap_or_default();
        let replaced = set.dynamic.iter().filter_map(|tool| registry.listed_name(&tool.name));
        denied.extend(replaced.map(str::to_owned));
        denied
    }

    /// The tools that the host runs. Unset without a tool set.
    pub fn dynamic_tools(&self) -> Option<Arc<[DynamicToolSpec]>> {
        self.tool_set.as_ref().map(|set| set.dynamic.iter().map(plain).collect())
    }

    pub fn effects_of(&self, dynamic: &str) -> ToolEffects {
        let tool = self.tool_set.iter().flat_map(|set| &set.dynamic).find(|tool| tool.name == dynamic);
        tool.and_then(|tool| tool.effects).unwrap_or_default()
    }

    /// Tools with approval for each call, by all their names.
    pub fn asked_about(&self, registry: &Registry) -> BTreeSet<String> {
        let asked = |name: &&str| {
            let tool = registry.listed_name(name).unwrap_or(name);
            self.chosen_rule(tool) == ToolApprovalRule::Host
        };
        registry.asking().filter(asked).map(str::to_owned).collect()
    }

    /// All patches are refused, including those inside commands.
    pub fn refuses_patches(&self, registry: &Registry) -> bool {
        const PATCH: &str = "apply_patch";
        let is_named = |names: &[String]| names.iter().any(|name| name == PATCH);
        self.tool_set.is_some()
            && (self.allowed().is_some_and(|allowed| !is_named(&allowed))
                || is_named(&self.denied(registry))
                || self.chosen_rule(PATCH) == ToolApprovalRule::Never)
    }

    fn chosen_rule(&self, tool: &str) -> ToolApprovalRule {
        let approval = self.tool_set.as_ref().and_then(|set| set.approval.as_ref());
        approval.map_or(ToolApprovalRule::Runtime, |approval| {
            approval.per_tool.get(tool).copied().unwrap_or(approval.default)
        })
    }

    fn rule_of(&self, spec: &ToolSpec, registry: &Registry) -> ToolApprovalRule {
        if spec.kind == ToolKind::Dynamic {
            return self.chosen_rule(&spec.name);
        }
        let rule = self.chosen_rule(registry.listed_name(&spec.name).unwrap_or(&spec.name));
        match rule {
            ToolApprovalRule::Runtime if self.manual_tool_execution && registry.asks_itself(&spec.name) => {
                ToolApprovalRule::Host
            }
            rule => rule,
        }
    }

    /// Sets the approver of every call. Tools that the model provider runs cannot be asked about, so they are removed.
    pub fn govern(&self, tools: &mut Vec<ToolSpec>, registry: &Registry) {
        tools.retain_mut(|spec| {
            let rule = self.rule_of(spec, registry);
            let asks_anyway = spec.kind == ToolKind::Dynamic || registry.asks_itself(&spec.name);
            spec.gate = match rule {
                ToolApprovalRule::Never => Gate::Closed,
                ToolApprovalRule::Host if !asks_anyway => Gate::Ask,
                ToolApprovalRule::Host | ToolApprovalRule::Runtime => Gate::Open,
            };
            spec.kind != ToolKind::Hosted || rule == ToolApprovalRule::Runtime
        });
    }

    /// The tools for a host: the advertised ones, and those found by search.
    pub fn effective_tools(
        &self,
        tools: &[ToolSpec],
        deferred: &[ToolSpec],
        registry: &Registry,
    ) -> Vec<EffectiveTool> {
        let advertised = tools.iter().filter(|spec| spec.json.is_some());
        let told = |spec: &ToolSpec| EffectiveTool {
            name: spec.full_name(),
            origin: match spec.kind {
                ToolKind::Builtin | ToolKind::Hosted => ToolOrigin::Builtin,
                ToolKind::Dynamic => ToolOrigin::Dynamic,
            },
            approval: self.rule_of(spec, registry),
        };
        advertised.chain(deferred).map(told).collect()
    }
}

/// Equal for the same tools under the same rules, in any process.
pub fn tool_set_digest(effective: &[EffectiveTool]) -> String {
    digest_of(&json!(effective))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn set(value: Value) -> ToolSet {
        serde_json::from_value(value).expect("a tool set")
    }

    fn choices(value: Value) -> HostChoices {
        let set = checked(&set(value)).expect("it fits");
        HostChoices::default().with_tool_set(Some(Box::new(set)))
    }

    fn tool(name: &str, is_override: bool) -> Value {
        let schema = json!({"type": "object"});
        json!({"name": name, "description": "", "inputSchema": schema, "override": is_override})
    }

    #[test]
    fn invalid_tool_sets_are_refused_by_field() {
        let host = |tools: Value| json!({"default": "runtime", "perTool": tools});
        let cases = [
            (json!({"mode": "default"}), None),
            (json!({"mode": "default", "approval": host(json!({"local_shell": "never"}))}), None),
            (json!({"mode": "replace"}), None),
            (json!({"mode": "replace", "builtin": {"allow": ["shell"]}}), None),
            (
                json!({"mode": "additive", "builtin": {"deny": ["shell"]}, "dynamic": [tool("a", false)]}),
                None,
            ),
            (json!({"mode": "additive", "dynamic": [tool("update_plan", true)]}), None),
            (
                json!({"mode": "default", "builtin": {"allow": []}}),
                Some((
                    "invalidToolSet",
                    "toolSet.builtin.allow is for the mode `additive` or `replace` only",
                )),
            ),
            (json!({"mode": "additive", "builtin": {"allow": ["read_file"]}}), None),
            (
                json!({"mode": "additive", "builtin": {"allow": ["fly"]}}),
                Some(("unknownTool", "toolSet.builtin.allow names no built-in tool: fly")),
            ),
            (
                json!({"mode": "replace", "builtin": {"deny": []}}),
                Some(("invalidToolSet", "toolSet.builtin.deny is for the mode `additive` only")),
            ),
            (
                json!({"mode": "default", "dynamic": [tool("a", false)]}),
                Some(("invalidToolSet", "toolSet.dynamic is for the mode `additive` or `replace` only")),
            ),
            (
                json!({"mode": "replace", "builtin": {"allow": ["update_plan", "fly"]}}),
                Some(("unknownTool", "toolSet.builtin.allow names no built-in tool: fly")),
            ),
            (
                json!({"mode": "additive", "builtin": {"deny": ["user_shell"]}}),
                Some(("unknownTool", "toolSet.builtin.deny names no built-in tool: user_shell")),
            ),
            (
                json!({"mode": "replace", "builtin": {"allow": ["shell", "local_shell"]}}),
                Some(("invalidToolSet", "toolSet.builtin.allow names a tool twice: local_shell")),
            ),
            (
                json!({"mode": "default", "approval": host(json!({"fly": "host"}))}),
                Some(("unknownTool", "toolSet.approval.perTool names no tool: fly")),
            ),
            (
                json!({"mode": "default", "approval": host(json!({"shell": "host", "local_shell": "never"}))}),
                Some(("invalidToolSet", "toolSet.approval.perTool has two rules for one tool: shell")),
            ),
            (
                json!({"mode": "additive", "dynamic": [tool("update_plan", false)]}),
                Some((
                    "toolConflict",
                    "toolSet.dynamic[0] is the name of a built-in tool, and override is not set: update_plan",
                )),
            ),
            (
                json!({"mode": "replace", "dynamic": [tool("a", false), tool("user_shell", true)]}),
                Some((
                    "toolConflict",
                    "toolSet.dynamic[1] is a name the runtime keeps for itself: user_shell",
                )),
            ),
            (
                json!({"mode": "replace", "dynamic": [tool("mcp__x", false)]}),
                Some(("invalidToolSet", "toolSet.dynamic: dynamic tool name is reserved: mcp__x")),
            ),
        ];
        for (given, expected) in cases {
            let found = checked(&set(given.clone())).err();
            let found = found.as_ref().map(|error| (error.code(), error.to_string()));
            assert_eq!(found, expected.map(|(code, text)| (code, text.to_owned())), "{given}");
        }
    }

    #[test]
    fn modes_choose_among_the_built_in_tools() {
        let registry = Registry::builtin();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cases = [
            (json!({"mode": "default"}), None, vec![]),
            (json!({"mode": "replace"}), Some(vec![]), vec![]),
            (
                json!({"mode": "replace", "builtin": {"allow": ["local_shell"]}}),
                Some(names(&["shell"])),
                vec![],
            ),
            (
                json!({"mode": "additive", "builtin": {"deny": ["web_search"]}, "dynamic": [tool("local_shell", true)]}),
                None,
                names(&["web_search", "shell"]),
            ),
        ];
        for (given, allowed, denied) in cases {
            let choices = choices(given.clone());
            assert_eq!((choices.allowed(), choices.denied(&registry)), (allowed, denied), "{given}");
            assert!(choices.added().is_empty(), "{given}");
        }
        let added = choices(json!({"mode": "additive", "builtin": {"allow": ["read_file"]}}));
        assert_eq!((added.allowed(), added.added()), (None, &names(&["read_file"])[..]));
    }

    #[test]
    fn rules_apply_to_every_name_of_a_tool() {
        let registry = Registry::builtin();
        let choices = choices(json!({
            "mode": "additive",
            "dynamic": [tool("lookup", false), tool("view_image", true)],
            "approval": {"default": "host", "perTool": {
                "local_shell": "never", "update_plan": "runtime", "view_image": "never", "apply_patch": "host",
            }},
        }));
        let spec = |name: &str, kind| ToolSpec {
            namespace: None,
            name: name.to_owned(),
            kind,
            json: Some(Arc::new(json!({}))),
            parallel: false,
            gate: Gate::Open,
            effects: ToolEffects::Once,
        };
        let mut tools: Vec<_> = [
            "shell",
            "container.exec",
            "exec_command",
            "write_stdin",
            "apply_patch",
            "update_plan",
            "read_file",
        ]
        .map(|name| spec(name, ToolKind::Builtin))
        .into();
        tools.push(spec("web_search", ToolKind::Hosted));
        tools.extend(["lookup", "view_image"].map(|name| spec(name, ToolKind::Dynamic)));
        choices.govern(&mut tools, &registry);
        let gates: Vec<_> = tools.iter().map(|spec| (spec.name.as_str(), spec.gate)).collect();
        assert_eq!(
            gates,
            [
                ("shell", Gate::Closed),
                ("container.exec", Gate::Closed),
                ("exec_command", Gate::Open),
                ("write_stdin", Gate::Ask),
                ("apply_patch", Gate::Open),
                ("update_plan", Gate::Open),
                ("read_file", Gate::Ask),
                ("lookup", Gate::Open),
                ("view_image", Gate::Closed),
            ]
        );
        let asked = choices.asked_about(&registry);
        assert!(asked.contains("exec_command") && asked.contains("apply_patch"), "{asked:?}");
        assert!(!asked.contains("shell") && !asked.contains("local_shell"), "{asked:?}");
        let effective = choices.effective_tools(&tools[..1], &tools[7..8], &registry);
        assert_eq!(
            json!(effective),
            json!([
                {"name": "shell", "origin": "builtin", "approval": "never"},
                {"name": "lookup", "origin": "dynamic", "approval": "host"},
            ])
        );
    }

    #[test]
    fn patches_are_refused_without_their_tool() {
        let registry = Registry::builtin();
        assert!(!HostChoices::default().refuses_patches(&registry));
        let never = json!({"default": "never"});
        for (given, refused) in [
            (json!({"mode": "default"}), false),
            (json!({"mode": "default", "approval": never}), true),
            (json!({"mode": "replace", "builtin": {"allow": ["apply_patch"]}}), false),
            (json!({"mode": "replace", "builtin": {"allow": ["exec_command"]}}), true),
            (json!({"mode": "additive", "builtin": {"deny": ["apply_patch"]}}), true),
            (json!({"mode": "additive", "dynamic": [tool("apply_patch", true)]}), true),
        ] {
            assert_eq!(choices(given.clone()).refuses_patches(&registry), refused, "{given}");
        }
    }
}
