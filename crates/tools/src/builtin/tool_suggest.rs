//! `tool_suggest`: suggests one of the configured plugins to the user. It installs nothing itself: the user's client
//! does, if the user agrees.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::{Proposal, Question, ToolOutcome};
use protocol::{
    McpElicitationObjectType, McpElicitationSchema, McpServerElicitationAction, McpServerElicitationRequest,
    McpServerElicitationRequestParams, OperationType, ToolEffects,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::digest::digest_of;
use crate::schema::function_json;
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

/// Features that must all be enabled.
const FEATURES: [&str; 3] = ["tool_suggest", "apps", "plugins"];
/// The server that the client's question comes from.
const SERVER: &str = "codex_apps";

/// A plugin that is not installed and may be suggested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    pub id: String,
    pub name: String,
    pub description: String,
    /// Folders, one of which exists after the installation.
    pub installed_at: Vec<PathBuf>,
}

// No doc comment on the type: the model would read it as well.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// `plugin`.
    tool_type: String,
    /// `install`.
    action_type: String,
    /// The id of the suggestion, from the list.
    tool_id: String,
    /// One line for the user: how it helps with what they asked for.
    suggest_reason: String,
}

#[derive(Debug, Clone, Copy)]
pub struct ToolSuggest;

impl BuiltinTool for ToolSuggest {
    const NAME: &'static str = "tool_suggest";
    const ABOUT: &'static str = "Suggest to the user to install a plugin, when none of your tools does what they ask \
        for and one in this list clearly would. The user decides. Suggest a plugin once at most.";
    const PARALLEL: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        let is_on = FEATURES.iter().all(|key| offer.has_feature(key));
        Standing::offered_if(is_on && !offer.suggestions.is_empty() && !offer.is_child)
    }

    fn spec(offer: &Offer) -> Value {
        let lines = offer
            .suggestions
            .iter()
            .map(|one| format!("\n- {} (`{}`): {}", one.name, one.id, one.description));
        function_json::<Args>(Self::NAME, &format!("{}{}", Self::ABOUT, lines.collect::<String>()))
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        let failed = |problem: &str| Err(ToolError::Failed(problem.to_owned()));
        if args.suggest_reason.trim().is_empty() {
            return failed("suggest_reason must not be empty");
        }
        if args.tool_type != "plugin" || args.action_type != "install" {
            return failed(
                "only the installation of a plugin can be suggested: tool_type `plugin`, action_type `install`",
            );
        }
        let all = &cx.bench().options().suggestions;
        let Some(suggestion) = all.iter().find(|one| one.id == args.tool_id) else {
            return failed("tool_id must be one of the ids in the description of tool_suggest");
        };
        let arguments = json!({"tool_type": args.tool_type, "action_type": args.action_type,
            "tool_id": args.tool_id, "suggest_reason": args.suggest_reason});
        let decision = cx.propose(proposal(cx, suggestion, &args, arguments.clone())).await;
        let is_accepted =
            decision.elicitation().is_some_and(|answer| answer.action == McpServerElicitationAction::Accept);
        let folders = suggestion.installed_at.clone();
        let look = move || folders.iter().any(|folder| folder.is_dir());
        let is_installed = is_accepted && tokio::task::spawn_blocking(look).await.unwrap_or(false);
        let mut result = json!({"completed": is_installed, "user_confirmed": is_accepted});
        for (key, value) in arguments.as_object().into_iter().flatten() {
            result[key] = value.clone();
        }
        result["tool_name"] = json!(suggestion.name);
        Ok(text(result.to_string()))
    }
}

fn proposal(cx: &ToolCx, suggestion: &Suggestion, args: &Args, arguments: Value) -> Proposal {
    let meta = json!({
        "codex_approval_kind": "tool_suggestion",
        "tool_type": args.tool_type,
        "suggest_type": args.action_type,
        "suggest_reason": args.suggest_reason,
        "tool_id": suggestion.id,
        "tool_name": suggestion.name,
    });
    let question = McpServerElicitationRequestParams {
        thread_id: cx.thread_id().clone(),
        turn_id: Some(cx.turn_id().clone()),
        operation_id: None,
        arguments_digest: None,
        server_name: SERVER.to_owned(),
        request: McpServerElicitationRequest::Form {
            meta: Some(meta),
            message: args.suggest_reason.trim().to_owned(),
            requested_schema: McpElicitationSchema {
                dollar_schema: None,
                r#type: McpElicitationObjectType::Object,
                properties: BTreeMap::new(),
                required: None,
            },
        },
    };
    Proposal {
        number: 0,
        kind: OperationType::Other("suggestion".to_owned()),
        effects: ToolEffects::Readonly,
        item: None,
        outlives: false,
        digest: digest_of(&arguments),
        arguments,
        question: Some(Box::new(Question::Elicitation(question))),
        session_keys: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::ProposalDecision;
    use protocol::McpServerElicitationRequestResponse;

    use super::*;
    use crate::scene::Scene;
    use crate::{Bench, BenchOptions, Registry};

    fn suggestion(folder: PathBuf) -> Suggestion {
        let (id, name) = ("notes@team".to_owned(), "Notes".to_owned());
        Suggestion { id, name, description: "Reads the team's notes.".to_owned(), installed_at: vec![folder] }
    }

    fn scene(action: McpServerElicitationAction, folder: PathBuf) -> Scene {
        let answer = McpServerElicitationRequestResponse { action, content: None, meta: None, origin: None };
        let mut scene = Scene::deciding(ProposalDecision::elicited(&answer));
        let suggestions = [suggestion(folder)].into();
        scene.bench = Arc::new(Bench::new(BenchOptions { suggestions, ..scene.bench.options().clone() }));
        scene
    }

    fn arguments(id: &str, reason: &str) -> Value {
        json!({"tool_type": "plugin", "action_type": "install", "tool_id": id, "suggest_reason": reason})
    }

    #[tokio::test]
    async fn the_user_is_asked_and_the_model_gets_the_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("none");
        for (action, at, confirmed, completed) in [
            (McpServerElicitationAction::Accept, folder.path().to_owned(), true, true),
            (McpServerElicitationAction::Accept, missing.clone(), true, false),
            (McpServerElicitationAction::Decline, folder.path().to_owned(), false, false),
        ] {
            let scene = scene(action, at);
            let (text, success) =
                scene.run_text("tool_suggest", arguments("notes@team", "to read them")).await;
            let result: Value = serde_json::from_str(&text).expect("JSON");
            assert!(success, "{text}");
            assert_eq!(
                (&result["user_confirmed"], &result["completed"]),
                (&json!(confirmed), &json!(completed))
            );
            assert_eq!((&result["tool_id"], &result["tool_name"]), (&json!("notes@team"), &json!("Notes")));
            let proposals = scene.proposals();
            let Some(Question::Elicitation(asked)) = proposals[0].question.as_deref() else {
                panic!("a question")
            };
            let McpServerElicitationRequest::Form { meta: Some(meta), message, .. } = &asked.request else {
                panic!("a form")
            };
            assert_eq!(
                (message.as_str(), &meta["codex_approval_kind"]),
                ("to read them", &json!("tool_suggestion"))
            );
        }
    }

    #[tokio::test]
    async fn only_what_is_in_the_list_can_be_suggested() {
        let scene = scene(McpServerElicitationAction::Accept, "/".into());
        for (arguments, expected) in [
            (arguments("other@team", "why"), "tool_id must be one of"),
            (arguments("notes@team", " "), "suggest_reason must not be empty"),
            (
                json!({"tool_type": "connector", "action_type": "enable", "tool_id": "x", "suggest_reason": "y"}),
                "only the installation of a plugin",
            ),
        ] {
            let (text, success) = scene.run_text("tool_suggest", arguments).await;
            assert!(!success && text.starts_with(expected), "{text}");
        }
        assert!(scene.proposals().is_empty());
    }

    #[test]
    fn it_is_offered_with_its_features_and_suggestions() {
        let all = FEATURES.map(str::to_owned);
        for (features, has_some, offered) in
            [(&all[..], true, true), (&all[..2], true, false), (&all[..], false, false)]
        {
            let suggestions = has_some.then(|| suggestion("/x".into())).into_iter().collect();
            let offer =
                Offer { features: features.iter().cloned().collect(), suggestions, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            let spec = specs.iter().find(|spec| spec.name == "tool_suggest");
            assert_eq!(spec.is_some(), offered, "{features:?} {has_some}");
            let about =
                spec.and_then(|spec| spec.json.as_deref()).map(|json| json["description"].to_string());
            assert!(about.is_none_or(|about| about.contains("Notes (`notes@team`)")));
        }
    }
}
