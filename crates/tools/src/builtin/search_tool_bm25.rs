//! `search_tool_bm25`: searches tools that are not advertised.

use std::num::NonZeroU32;

use engine::{ToolOutcome, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bm25::rank;
use crate::files::shown::room;
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

/// Found tools are recorded with the thread's tools, and advertised from the next step on.
#[derive(Debug, Clone, Copy)]
pub struct SearchToolBm25;

impl BuiltinTool for SearchToolBm25 {
    const NAME: &'static str = "search_tool_bm25";
    const ABOUT: &'static str = "Search for more tools by what they do. Gives the name, description and parameters of \
        those that fit best; from your next message on you can call them like any other tool.";
    const PROMPT: Option<&'static str> = Some(include_str!("search_tool_bm25.md"));
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(offer.has_deferred && !offer.tool_search)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        if args.query.trim().is_empty() {
            return Err(ToolError::Failed("the query is empty: say what the tool should do".to_owned()));
        }
        let limit = args.limit.map_or(LIMIT, |limit| limit.get() as usize);
        let deferred = &cx.step().deferred;
        let texts: Vec<_> = deferred.iter().map(searchable).collect();
        let mut found = Vec::new();
        let mut left = room(cx.step());
        for spec in rank(&args.query, &texts).into_iter().take(limit).map(|number| &deferred[number]) {
            let entry = entry(spec);
            let length = entry.to_string().len() + 1;
            // A truncated JSON list cannot be parsed, so it ends with the last entry that fits.
            if length > left && !found.is_empty() {
                break;
            }
            left = left.saturating_sub(length);
            cx.bench().discover(&spec.full_name());
            found.push(entry);
        }
        Ok(text(json!({"tools": found, "total_tools": deferred.len()}).to_string()))
    }
}

impl SearchToolBm25 {
    /// The names in a result of this tool, for a thread that is opened again.
    pub fn found_in(output: &str) -> Vec<String> {
        let output: Value = serde_json::from_str(output).unwrap_or_default();
        let tools = output["tools"].as_array().into_iter().flatten();
        let full_name = |tool: &Value| {
            let name = tool["name"].as_str()?;
            Some(tool["namespace"].as_str().map_or(name.to_owned(), |group| format!("{group}::{name}")))
        };
        tools.filter_map(full_name).collect()
    }
}

fn entry(spec: &ToolSpec) -> Value {
    let field = |key| spec.json.as_deref().and_then(|json| json.get(key)).cloned().unwrap_or_default();
    let mut entry =
        json!({"name": spec.name, "description": field("description"), "parameters": field("parameters")});
    if let Some(namespace) = &spec.namespace {
        entry["namespace"] = json!(namespace.name);
    }
    entry
}

/// The text in which the search looks: name, description and parameters.
pub(crate) fn searchable(spec: &ToolSpec) -> String {
    let mut text = spec.name.clone();
    if let Some(namespace) = spec.namespace.as_deref() {
        text = format!("{} {} {text}", namespace.name, namespace.description);
    }
    if let Some(json) = spec.json.as_deref() {
        add_description(json, &mut text);
        add_parameters(&json["parameters"], &mut text);
    }
    text
}

fn add_description(json: &Value, text: &mut String) {
    if let Some(description) = json["description"].as_str() {
        text.push(' ');
        text.push_str(description);
    }
}

fn add_parameters(schema: &Value, text: &mut String) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        text.push(' ');
        text.push_str(name);
        add_description(property, text);
        add_parameters(property, text);
        add_parameters(&property["items"], text);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use engine::ToolKind;

    use super::*;
    use crate::scene::Scene;

    fn tool(name: &str, about: &str, parameters: &Value) -> ToolSpec {
        let json = json!({"type": "function", "name": name, "description": about, "strict": false,
                          "parameters": parameters});
        ToolSpec {
            namespace: None,
            name: name.to_owned(),
            kind: ToolKind::Dynamic,
            json: Some(Arc::new(json)),
            parallel: false,
            gate: engine::Gate::Open,
            effects: Default::default(),
        }
    }

    fn scene() -> Scene {
        let mut scene = Scene::in_folder(Path::new("/"));
        let query = json!({"type": "object", "properties": {"sku": {"type": "string", "description": "stock number"}}});
        let nested = json!({"type": "object", "properties": {"lines": {"type": "array", "items": {
            "type": "object", "properties": {"carrier": {"type": "string"}}}}}});
        scene.step.deferred = vec![
            tool("send_mail", "Send a letter by mail", &json!({"type": "object", "properties": {}})),
            tool("find_item", "Look something up in the warehouse", &query),
            tool("ship", "Ship an order", &nested),
        ];
        scene
    }

    async fn names(scene: &Scene, arguments: Value) -> Vec<String> {
        let (text, success) = scene.run_text("search_tool_bm25", arguments).await;
        assert!(success, "{text}");
        SearchToolBm25::found_in(&text)
    }

    #[tokio::test]
    async fn names_descriptions_and_parameters_are_searched() {
        for (query, expected) in [
            ("mails", vec!["send_mail"]),
            ("warehouse", vec!["find_item"]),
            ("stock", vec!["find_item"]),
            ("carrier", vec!["ship"]),
            ("weather", vec![]),
        ] {
            let scene = scene();
            assert_eq!(names(&scene, json!({"query": query})).await, expected);
            assert_eq!(scene.bench.discovered(), expected);
        }
    }

    #[tokio::test]
    async fn found_tools_are_listed_completely_and_kept_in_order() {
        let scene = scene();
        let (text, _) = scene.run_text("search_tool_bm25", json!({"query": "stock"})).await;
        let expected = json!({"tools": [{"name": "find_item", "description": "Look something up in the warehouse",
            "parameters": {"type": "object",
                           "properties": {"sku": {"type": "string", "description": "stock number"}}}}],
            "total_tools": 3});
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
        assert!(SearchToolBm25::found_in("no JSON").is_empty());
        names(&scene, json!({"query": "a letter, a carrier or stock"})).await;
        assert_eq!(scene.bench.discovered()[0], "find_item");
        assert_eq!(scene.bench.discovered().len(), 3);
        assert_eq!(names(&scene, json!({"query": "letter carrier stock", "limit": 1})).await.len(), 1);
    }

    #[tokio::test]
    async fn a_long_list_ends_with_a_complete_entry() {
        let mut scene = scene();
        let long = "word ".repeat(1_000);
        scene.step.deferred =
            (0..9).map(|number| tool(&format!("tool_{number}"), &long, &json!({}))).collect();
        assert_eq!(names(&scene, json!({"query": "word"})).await, ["tool_0"]);
        assert_eq!(scene.bench.discovered(), ["tool_0"]);
    }

    #[tokio::test]
    async fn an_empty_query_is_refused() {
        let (text, success) = scene().run_text("search_tool_bm25", json!({"query": " "})).await;
        assert_eq!((text.as_str(), success), ("the query is empty: say what the tool should do", false));
    }

    #[test]
    fn it_is_offered_if_there_are_deferred_tools() {
        for has_deferred in [true, false] {
            let offer = Offer { has_deferred, ..Offer::default() };
            let specs = crate::Registry::builtin().specs(&offer);
            assert_eq!(specs.iter().any(|spec| spec.name == "search_tool_bm25"), has_deferred);
        }
    }
}
