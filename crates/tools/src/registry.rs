//! The table of built-in tools and the sources of others: which tools are offered, and which one runs a call.

use std::fmt;
use std::sync::Arc;

use engine::{EnvironmentState, Gate, Step, ToolCall, ToolKind, ToolOutcome, ToolPayload, ToolSpec};

use serde_json::Value;

use crate::offer::{Offer, Standing};
use crate::recent_offers::RecentOffers;
use crate::source::{source_of, source_specs};
use crate::tool::{BoxFuture, BuiltinTool, Caller, ToolCx, ToolSource};
use crate::{
    ApplyPatch, CloseAgent, ExecCommand, GrepFiles, ImageGeneration, JsRepl, JsReplReset, ListDir, ReadFile,
    ReportAgentJobResult, RequestPermissions, RequestUserInput, ResumeAgent, ScriptExec, ScriptWait,
    SearchToolBm25, SendInput, Shell, ShellCommand, SpawnAgent, SpawnAgentsOnCsv, TestSyncTool, ToolError,
    ToolSearch, ToolSuggest, UpdateGoal, UpdatePlan, UserShell, ViewImage, WaitAgent, WebSearch, WriteStdin,
};

/// Every built-in tool, in the order of the model's list.
#[derive(Debug, Clone)]
pub struct Registry {
    tools: Vec<Registered>,
    recent: RecentOffers,
}

#[derive(Debug, Clone)]
struct Registered {
    name: &'static str,
    aliases: &'static [&'static str],
    prompt: Option<&'static str>,
    parallel: bool,
    kind: ToolKind,
    needs_place: bool,
    asks: bool,
    tool: Arc<dyn AnyTool>,
}

/// Tools of the connections to MCP servers. Named here, so that a list of allowed tools can be checked.
const OF_SERVERS: &[&str] = &["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"];

impl Registry {
    /// Add a new tool as one line here. The order is part of the cached prefix of every request, so it must not depend
    /// on anything else.
    pub fn builtin() -> Self {
        Self {
            tools: vec![
                Registered::new(ScriptExec),
                Registered::new(ScriptWait),
                Registered::new(ExecCommand),
                Registered::new(WriteStdin),
                Registered::new(Shell),
                Registered::new(ShellCommand),
                Registered::new(UpdatePlan),
                Registered::new(JsRepl),
                Registered::new(JsReplReset),
                Registered::new(RequestUserInput),
                Registered::new(RequestPermissions),
                Registered::new(SearchToolBm25),
                Registered::new(ToolSearch),
                Registered::new(ToolSuggest),
                Registered::new(ApplyPatch),
                Registered::new(ListDir),
                Registered::new(ReadFile),
                Registered::new(GrepFiles),
                Registered::new(TestSyncTool),
                Registered::new(WebSearch),
                Registered::new(ImageGeneration),
                Registered::new(ViewImage),
                Registered::new(SpawnAgent),
                Registered::new(SendInput),
                Registered::new(ResumeAgent),
                Registered::new(WaitAgent),
                Registered::new(CloseAgent),
                Registered::new(SpawnAgentsOnCsv),
                Registered::new(ReportAgentJobResult),
                Registered::new(UserShell),
                Registered::new(UpdateGoal),
            ],
            recent: RecentOffers::default(),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name)
    }

    /// Whether there is a built-in tool of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.find(name).is_some() || OF_SERVERS.contains(&name)
    }

    /// The name of a tool in [`Offer::allow`]. `None` if no model can be offered it.
    pub fn listed_name(&self, name: &str) -> Option<&'static str> {
        let built_in = self.find(name).map(|tool| tool.name).filter(|name| *name != UserShell::NAME);
        built_in.or_else(|| OF_SERVERS.iter().copied().find(|other| *other == name))
    }

    /// Whether a tool can ask a client about its calls itself.
    pub fn asks_itself(&self, name: &str) -> bool {
        self.find(name).is_some_and(|tool| tool.asks)
    }

    /// All names of such tools.
    pub fn asking(&self) -> impl Iterator<Item = &'static str> {
        let asking = self.tools.iter().filter(|tool| tool.asks);
        asking.flat_map(|tool| std::iter::once(tool.name).chain(tool.aliases.iter().copied()))
    }

    /// The tools of a step, in order. Unadvertised ones come without their JSON.
    pub fn specs(&self, offer: &Offer) -> Vec<ToolSpec> {
        self.recent.specs(offer, || self.make_specs(offer))
    }

    /// Like `specs`, followed by the tools of a thread's sources.
    pub fn specs_with(&self, offer: &Offer, sources: &[Arc<dyn ToolSource>]) -> Vec<ToolSpec> {
        let mut specs = self.specs(offer);
        specs.extend(source_specs(sources, offer, |name| self.find(name).is_some()));
        specs
    }

    fn make_specs(&self, offer: &Offer) -> Vec<ToolSpec> {
        let mut specs = Vec::new();
        for tool in &self.tools {
            let standing = tool.tool.standing(offer);
            let has_place = offer.has_environment || !tool.needs_place;
            if standing == Standing::Absent || !offer.includes(tool.name) || !has_place {
                continue;
            }
            let shown = (standing == Standing::Offered).then(|| Arc::new(tool.tool.spec(offer)));
            let spec = |name: &str, json| ToolSpec {
                namespace: None,
                name: name.to_owned(),
                kind: tool.kind,
                json,
                parallel: tool.parallel && standing == Standing::Offered,
                gate: Gate::Open,
                effects: Default::default(),
            };
            specs.push(spec(tool.name, shown));
            specs.extend(tool.aliases.iter().map(|alias| ToolSpec { parallel: false, ..spec(alias, None) }));
        }
        specs
    }

    /// The prompt sections of the advertised built-in tools among `offered`, in order.
    pub fn prompts(&self, offered: &[ToolSpec]) -> Vec<&'static str> {
        offered
            .iter()
            .filter(|spec| spec.kind != ToolKind::Dynamic && spec.json.is_some())
            .filter_map(|spec| self.find(&spec.name)?.prompt)
            .collect()
    }

    /// Always ends with a text for the model. Dropping the future stops the tool.
    pub fn run(&self, call: ToolCall, step: Arc<Step>, caller: Caller) -> BoxFuture<'static, ToolOutcome> {
        // Built-in tools have no namespace: a name inside one belongs to another tool.
        let found = self.find(&call.name).filter(|_| call.namespace.is_none());
        let Some(registered) = found else {
            let source = source_of(caller.bench.sources(), &call, &step).filter(|_| call.namespace.is_none());
            if let Some(source) = source.cloned() {
                let cx = ToolCx::new(step, call.call_id.clone(), call.name.clone(), caller);
                return Box::pin(async move { source.run(call, cx).await.unwrap_or_else(Into::into) });
            }
            return Box::pin(std::future::ready(ToolError::unknown(&call).into()));
        };
        if registered.needs_place && step.primary().is_none() {
            return Box::pin(std::future::ready(ToolError::Refused(no_place(&step)).into()));
        }
        let tool = Arc::clone(&registered.tool);
        let cx = ToolCx::new(step, call.call_id, call.name, caller);
        Box::pin(async move { tool.call(call.payload, &cx).await.unwrap_or_else(Into::into) })
    }

    fn find(&self, name: &str) -> Option<&Registered> {
        self.tools.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))
    }
}

impl Registered {
    fn new<T: BuiltinTool>(tool: T) -> Self {
        Self {
            name: T::NAME,
            aliases: T::ALIASES,
            prompt: T::PROMPT,
            parallel: T::PARALLEL,
            kind: T::KIND,
            needs_place: T::NEEDS_PLACE,
            asks: T::ASKS,
            tool: Arc::new(tool),
        }
    }
}

/// Why no command can run.
fn no_place(step: &Step) -> String {
    let first = |state| step.environments.iter().find(move |place| place.state == state);
    let why = match (first(EnvironmentState::Starting), first(EnvironmentState::Disconnected)) {
        (Some(place), _) => format!("`{}` is still starting; try again later", place.id),
        (None, Some(place)) => format!("`{}` is disconnected", place.id),
        (None, None) => "there is no place to run this in".to_owned(),
    };
    format!("no environment is attached: {why}")
}

/// A tool with unparsed arguments, so that all tools fit in one table.
trait AnyTool: Send + Sync {
    fn standing(&self, offer: &Offer) -> Standing;
    fn spec(&self, offer: &Offer) -> Value;
    fn call<'a>(
        &'a self,
        payload: ToolPayload,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>>;
}

/// Prints only the name: printing the fields would add the `Debug` code of all their types to the program.
impl fmt::Debug for dyn AnyTool + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyTool")
    }
}

impl<T: BuiltinTool> AnyTool for T {
    fn standing(&self, offer: &Offer) -> Standing {
        T::standing(offer)
    }

    fn spec(&self, offer: &Offer) -> Value {
        T::spec(offer)
    }

    fn call<'a>(
        &'a self,
        payload: ToolPayload,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move { BuiltinTool::call(self, T::parse(payload)?, cx).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{call, run_text, step};

    fn names(offer: &Offer) -> Vec<String> {
        Registry::builtin().specs(offer).into_iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn an_offer_chooses_among_the_tools() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cases = [
            (None, vec![], true),
            (Some(list(&["update_plan"])), vec![], true),
            (Some(vec![]), vec![], false),
            (Some(list(&["shell"])), vec![], false),
            (None, list(&["update_plan"]), false),
            (Some(list(&["update_plan"])), list(&["update_plan"]), false),
        ];
        for (allow, deny, offered) in cases {
            let offer = Offer { allow, deny, ..Offer::default() };
            assert_eq!(names(&offer).contains(&"update_plan".to_owned()), offered, "{offer:?}");
        }
    }

    #[test]
    fn tools_that_need_a_reason_are_not_there_without_one() {
        let mut usual = names(&Offer::default());
        usual.retain(|name| {
            ["update_plan", "request_user_input", "list_dir", "view_image"].contains(&name.as_str())
        });
        assert_eq!(usual, ["update_plan", "request_user_input", "view_image"]);
        let special = ["list_dir", "read_file", "grep_files", "test_sync_tool"];
        let known = special.map(str::to_owned).to_vec();
        let by_model = names(&Offer { experimental: known.clone(), ..Offer::default() });
        assert!(special.iter().all(|name| by_model.iter().any(|other| other == name)), "{by_model:?}");
        assert_eq!(names(&Offer { allow: Some(known), ..Offer::default() }), special);
    }

    #[test]
    fn a_list_of_allowed_tools_can_use_every_name_a_model_could() {
        let registry = Registry::builtin();
        for (name, expected) in [
            ("exec_command", Some("exec_command")),
            ("local_shell", Some("shell")),
            ("container.exec", Some("shell")),
            ("spawn_agent", Some("spawn_agent")),
            // Only for the user, never for a model.
            ("user_shell", None),
            ("no_such_tool", None),
        ] {
            assert_eq!(registry.listed_name(name), expected, "{name}");
        }
    }

    /// The Python package has a class for each tool that a model may have.
    #[test]
    fn the_python_package_names_every_tool() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdk/python/oarlock/src/oarlock/tools.py");
        let classes = std::fs::read_to_string(path).expect("the package is in this repository");
        let declared: std::collections::BTreeSet<_> = classes
            .lines()
            .filter_map(|line| line.strip_prefix("    tool_name = \"")?.strip_suffix('"'))
            .collect();
        let registry = Registry::builtin();
        let known = registry.names().filter(|name| registry.listed_name(name).is_some());
        assert_eq!(declared, known.chain(OF_SERVERS.iter().copied()).collect());
    }

    #[test]
    fn tools_that_ask_a_client_do_so_under_every_name() {
        let registry = Registry::builtin();
        let asking: Vec<_> = registry.asking().collect();
        for name in ["exec_command", "shell", "local_shell", "container.exec", "apply_patch"] {
            assert!(asking.contains(&name) && registry.asks_itself(name), "{name}");
        }
        for name in ["write_stdin", "update_plan", "view_image", "no_such_tool"] {
            assert!(!asking.contains(&name) && !registry.asks_itself(name), "{name}");
        }
    }

    #[test]
    fn the_order_is_fixed() {
        const ORDER: &[&str] = &[
            "exec",
            "wait",
            "exec_command",
            "write_stdin",
            "shell",
            "shell_command",
            "update_plan",
            "js_repl",
            "js_repl_reset",
            "request_user_input",
            "request_permissions",
            "search_tool_bm25",
            "tool_search",
            "tool_suggest",
            "apply_patch",
            "list_dir",
            "read_file",
            "grep_files",
            "test_sync_tool",
            "web_search",
            "image_generation",
            "view_image",
            "spawn_agent",
            "send_input",
            "resume_agent",
            "wait_agent",
            "close_agent",
            "spawn_agents_on_csv",
            "report_agent_job_result",
            "user_shell",
            "update_goal",
        ];
        let registry = Registry::builtin();
        let names: Vec<_> = registry.names().collect();
        assert_eq!(names, ORDER);
    }

    #[test]
    fn names_are_unique_and_fit_for_providers() {
        let registry = Registry::builtin();
        let mut seen = std::collections::BTreeSet::new();
        for name in registry.names() {
            assert!(seen.insert(name.to_owned()), "{name} is there twice");
            assert!(name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
        }
    }

    #[test]
    fn a_prompt_section_is_there_exactly_when_its_tool_is() {
        let registry = Registry::builtin();
        let offered = registry.specs(&Offer::default());
        let there = |name: &str| offered.iter().any(|spec| spec.name == name && spec.json.is_some());
        let with_prompt =
            registry.tools.iter().filter(|tool| tool.prompt.is_some() && there(tool.name)).count();
        assert_eq!(registry.prompts(&offered).len(), with_prompt);
        assert!(registry.prompts(&[]).is_empty());
        let theirs: Vec<_> =
            offered.into_iter().map(|spec| ToolSpec { kind: ToolKind::Dynamic, ..spec }).collect();
        assert!(registry.prompts(&theirs).is_empty());
    }

    #[test]
    fn impossible_calls_give_the_model_a_reason() {
        let function = |arguments: &str| ToolPayload::Function { arguments: arguments.to_owned() };
        let custom = || ToolPayload::Custom { input: "free".to_owned() };
        let cases = [
            ("no_such_tool", None, function("{}"), "unsupported call: no_such_tool"),
            ("no_such_tool", None, custom(), "unsupported custom tool call: no_such_tool"),
            ("update_plan", Some("mcp__x"), function("{}"), "unsupported call: update_plan"),
            (
                "update_plan",
                None,
                function("{\"plan\":["),
                "failed to parse function arguments: EOF while parsing a list at line 1 column 9",
            ),
            (
                "update_plan",
                None,
                function("{}"),
                "failed to parse function arguments: missing field `plan` at line 1 column 2",
            ),
            (
                "update_plan",
                None,
                custom(),
                "update_plan takes a JSON object that fits its parameters, not free text",
            ),
        ];
        for (name, namespace, payload, expected) in cases {
            let call = ToolCall { namespace: namespace.map(str::to_owned), payload, ..call(name, "") };
            let (text, told) = run_text(call, step());
            assert_eq!(text, expected);
            assert!(told.is_empty());
        }
    }
}
