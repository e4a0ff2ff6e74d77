//! The table of built-in tools: what can be offered, and who carries out a call.

use std::fmt;
use std::sync::Arc;

use engine::{Step, ToolCall, ToolKind, ToolOutcome, ToolPayload, ToolSpec};

use crate::schema::function_json;
use crate::tool::{BoxFuture, Caller, Tool, ToolCx};
use crate::{ToolError, UpdatePlan};

/// Which of the tools a step offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// Only these. Unset: all there are.
    pub allow: Option<Vec<String>>,
    /// Never these, whatever `allow` says.
    pub deny: Vec<String>,
}

impl Offer {
    fn includes(&self, name: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|other| other == name);
        self.allow.as_deref().is_none_or(named) && !named(&self.deny)
    }
}

/// Every built-in tool, in the order the model is offered them.
#[derive(Debug, Clone)]
pub struct Registry {
    tools: Vec<Registered>,
}

#[derive(Debug, Clone)]
struct Registered {
    spec: ToolSpec,
    prompt: Option<&'static str>,
    tool: Arc<dyn AnyTool>,
}

impl Registry {
    /// A new tool is one more line here. The order is part of the cached prefix of every request, so it never depends
    /// on anything else.
    pub fn builtin() -> Self {
        Self { tools: vec![Registered::new(UpdatePlan)] }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.spec.name.as_str())
    }

    pub fn specs(&self, offer: &Offer) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| &tool.spec).filter(|spec| offer.includes(&spec.name)).cloned().collect()
    }

    /// The prompt sections of the tools among `offered`, in their order. Tools of others have none here.
    pub fn prompts(&self, offered: &[ToolSpec]) -> Vec<&'static str> {
        offered
            .iter()
            .filter(|spec| spec.kind == ToolKind::Builtin)
            .filter_map(|spec| self.find(&spec.name)?.prompt)
            .collect()
    }

    /// Always ends with something for the model to read. Dropping the future stops the tool.
    pub fn run(&self, call: ToolCall, step: Arc<Step>, caller: Caller) -> BoxFuture<'static, ToolOutcome> {
        // Built-in tools have no namespace: the same name in one is another's tool.
        let found = self.find(&call.name).filter(|_| call.namespace.is_none());
        let Some(tool) = found.map(|registered| Arc::clone(&registered.tool)) else {
            return Box::pin(std::future::ready(ToolError::unknown(&call).into()));
        };
        let cx = ToolCx::new(step, call.call_id, caller);
        Box::pin(async move { tool.call(call.payload, &cx).await.unwrap_or_else(Into::into) })
    }

    fn find(&self, name: &str) -> Option<&Registered> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }
}

impl Registered {
    fn new<T: Tool>(tool: T) -> Self {
        let json = Arc::new(function_json::<T::Args>(T::NAME, T::ABOUT));
        let spec = ToolSpec { name: T::NAME.to_owned(), kind: ToolKind::Builtin, json };
        Self { spec, prompt: T::PROMPT, tool: Arc::new(tool) }
    }
}

/// A tool whose arguments are not yet parsed, so that tools of all kinds fit one table.
trait AnyTool: fmt::Debug + Send + Sync {
    fn call<'a>(
        &'a self,
        payload: ToolPayload,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>>;
}

impl<T: Tool> AnyTool for T {
    fn call<'a>(
        &'a self,
        payload: ToolPayload,
        cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutcome, ToolError>> {
        Box::pin(async move {
            let ToolPayload::Function { arguments } = payload else {
                return Err(ToolError::NotJson(T::NAME));
            };
            Tool::call(self, serde_json::from_str(&arguments)?, cx).await
        })
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
        let all = Registry::builtin().names().map(str::to_owned).collect::<Vec<_>>();
        let cases = [
            (None, vec![], true),
            (Some(list(&["update_plan"])), vec![], true),
            (Some(vec![]), vec![], false),
            (Some(list(&["shell"])), vec![], false),
            (None, list(&["update_plan"]), false),
            (Some(list(&["update_plan"])), list(&["update_plan"]), false),
        ];
        for (allow, deny, offered) in cases {
            let offer = Offer { allow, deny };
            assert_eq!(names(&offer).contains(&"update_plan".to_owned()), offered, "{offer:?}");
        }
        assert_eq!(names(&Offer::default()), all);
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
        let with_prompt = registry.tools.iter().filter(|tool| tool.prompt.is_some()).count();
        assert_eq!(registry.prompts(&offered).len(), with_prompt);
        assert!(registry.prompts(&[]).is_empty());
        let theirs: Vec<_> =
            offered.into_iter().map(|spec| ToolSpec { kind: ToolKind::Dynamic, ..spec }).collect();
        assert!(registry.prompts(&theirs).is_empty());
    }

    #[test]
    fn calls_that_cannot_be_made_tell_the_model_why() {
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
