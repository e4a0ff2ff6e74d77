//! `tool_search`: searches tools that are not advertised, in the provider's own form. If model or provider do not
//! support it, `search_tool_bm25` does the same as a function.

use std::num::NonZeroU32;

use engine::{TOOL_SEARCH, ToolNamespace, ToolOutcome, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bm25::rank;
use crate::builtin::search_tool_bm25::searchable;
use crate::files::shown::room;
use crate::schema::function_json;
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

const LIMIT: usize = 8;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Words for what the tool should do.
    query: String,
    /// How many tools to give at most. Default: 8.
    limit: Option<NonZeroU32>,
}

/// Found tools can be called from the next step on.
#[derive(Debug, Clone, Copy)]
pub struct ToolSearch;

impl BuiltinTool for ToolSearch {
    const NAME: &'static str = TOOL_SEARCH;
    const ABOUT: &'static str = "Search for more tools by what they do: tools of MCP servers and tools that the client \
        brought. Gives the definitions of those that fit best; call them like any other tool.";
    const PARALLEL: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.has_deferred && offer.tool_search)
    }

    fn spec(_offer: &Offer) -> Value {
        let parameters = function_json::<Args>(Self::NAME, "")["parameters"].take();
        json!({
            "type": Self::NAME, "execution": "client", "description": Self::ABOUT, "parameters": parameters,
        })
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        if args.query.trim().is_empty() {
            return Err(ToolError::Failed("the query is empty: say what the tool should do".to_owned()));
        }
        let limit = args.limit.map_or(LIMIT, |limit| limit.get() as usize);
        let deferred = &cx.step().deferred;
        let texts: Vec<_> = deferred.iter().map(searchable).collect();
        let mut found: Vec<Value> = Vec::new();
        let mut left = room(cx.step());
        for spec in rank(&args.query, &texts).into_iter().take(limit).map(|number| &deferred[number]) {
            let Some(entry) = entry(spec) else { continue };
            let length = entry.to_string().len() + 200;
            // A truncated JSON list cannot be parsed, so it ends with the last entry that fits.
            if length > left {
                break;
            }
            left -= length;
            cx.bench().discover(&spec.full_name());
            add(&mut found, spec.namespace.as_deref(), entry);
        }
        Ok(text(Value::Array(found).to_string()))
    }
}

impl ToolSearch {
    /// The full names of the tools in an output of this tool, for a thread that is opened again.
    pub fn found_in(tools: &[Value]) -> Vec<String> {
        let mut names = Vec::new();
        for tool in tools {
            let name = tool["name"].as_str().unwrap_or_default();
            match tool["tools"].as_array() {
                Some(inner) => {
                    let inner = inner.iter().filter_map(|tool| tool["name"].as_str());
                    names.extend(inner.map(|tool| format!("{name}::{tool}")));
                }
                None => names.push(name.to_owned()),
            }
        }
        names
    }
}

fn entry(spec: &ToolSpec) -> Option<Value> {
    let mut entry = spec.json.as_deref()?.clone();
    entry["defer_loading"] = json!(true);
    Some(entry)
}

/// Tools of one group are listed together.
fn add(found: &mut Vec<Value>, namespace: Option<&ToolNamespace>, entry: Value) {
    let Some(ToolNamespace { name, description }) = namespace else {
        found.push(entry);
        return;
    };
    let is_group = |tool: &&mut Value| tool["type"] == "namespace" && tool["name"] == name.as_str();
    match found.iter_mut().find(is_group).and_then(|group| group["tools"].as_array_mut()) {
        Some(tools) => tools.push(entry),
        None => found
            .push(json!({"type": "namespace", "name": name, "description": description, "tools": [entry]})),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use engine::{Gate, ToolKind};

    use super::*;
    use crate::Registry;
    use crate::scene::Scene;

    fn tool(namespace: Option<&str>, name: &str, about: &str) -> ToolSpec {
        let namespace = namespace.map(|name| {
            Arc::new(ToolNamespace { name: name.to_owned(), description: format!("All of {name}") })
        });
        let json = json!({"type": "function", "name": name, "description": about, "strict": false, "parameters": {}});
        let (kind, json) = (ToolKind::Dynamic, Some(Arc::new(json)));
        let name = name.to_owned();
        ToolSpec {
            name,
            namespace,
            kind,
            json,
            parallel: false,
            gate: Gate::Open,
            effects: Default::default(),
        }
    }

    fn scene() -> Scene {
        let mut scene = Scene::in_folder(Path::new("/"));
        scene.step.deferred = vec![
            tool(Some("crm"), "merge", "Merge two customers"),
            tool(None, "mcp__git__log", "The history of a repository"),
            tool(Some("crm"), "split", "Split customers"),
        ];
        scene
    }

    #[tokio::test]
    async fn tools_are_found_with_their_groups_and_can_be_called() {
        let scene = scene();
        let (text, success) = scene.run_text("tool_search", json!({"query": "customers"})).await;
        assert!(success, "{text}");
        let found: Vec<Value> = serde_json::from_str(&text).expect("a list");
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0]["type"], &found[0]["name"]), (&json!("namespace"), &json!("crm")));
        assert_eq!(found[0]["description"], "All of crm");
        assert_eq!(found[0]["tools"][0]["defer_loading"], true);
        assert_eq!(ToolSearch::found_in(&found), scene.bench.discovered());
        assert_eq!(scene.bench.discovered().len(), 2);
        let (text, _) = scene.run_text("tool_search", json!({"query": "repository history"})).await;
        let found: Vec<Value> = serde_json::from_str(&text).expect("a list");
        assert_eq!((&found[0]["type"], &found[0]["name"]), (&json!("function"), &json!("mcp__git__log")));
        assert_eq!(ToolSearch::found_in(&found), ["mcp__git__log"]);
    }

    #[tokio::test]
    async fn nothing_found_is_an_empty_list_and_too_much_is_cut() {
        let mut scene = scene();
        let (text, _) = scene.run_text("tool_search", json!({"query": "weather"})).await;
        assert_eq!(text, "[]");
        let long = "word ".repeat(1_000);
        scene.step.deferred = (0..50).map(|n| tool(None, &format!("tool_{n}"), &long)).collect();
        let (text, _) = scene.run_text("tool_search", json!({"query": "word", "limit": 50})).await;
        let found: Vec<Value> = serde_json::from_str(&text).expect("a whole list");
        assert!(!found.is_empty() && found.len() < 50 && text.len() <= room(&scene.step));
    }

    #[test]
    fn it_takes_the_place_of_the_function_where_the_model_has_the_form() {
        for (has_deferred, tool_search, expected) in
            [(true, true, Some("tool_search")), (true, false, Some("search_tool_bm25")), (false, true, None)]
        {
            let offer = Offer { has_deferred, tool_search, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            let both = ["tool_search", "search_tool_bm25"];
            let found = specs.iter().find(|spec| both.contains(&spec.name.as_str()));
            assert_eq!(found.map(|spec| spec.name.as_str()), expected);
            if let Some(json) = found.filter(|_| tool_search).and_then(|spec| spec.json.as_deref()) {
                assert_eq!((&json["type"], &json["execution"]), (&json!("tool_search"), &json!("client")));
                assert_eq!(json["parameters"]["required"], json!(["query"]));
            }
        }
    }
}
