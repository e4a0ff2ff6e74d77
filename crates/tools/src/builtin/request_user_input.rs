//! `request_user_input`: asks the user a few questions and waits for the answers.

use std::collections::HashSet;

use engine::{Proposal, Question, ToolOutcome};
use protocol::{
    ItemId, ModeKind, OperationType, ToolEffects, ToolRequestUserInputOption, ToolRequestUserInputParams,
    ToolRequestUserInputQuestion,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::digest::digest_of;
use crate::schema::function_json;
use crate::tool::text;
use crate::{BuiltinTool, Offer, Standing, ToolCx, ToolError};

/// The feature that allows it outside Plan mode.
const IN_DEFAULT_MODE: &str = "default_mode_request_user_input";

/// The description with that feature.
const ABOUT_EVERYWHERE: &str = "Ask the user one to three short questions, each with answers to choose from, and wait \
    for what they say. In Default and in Plan mode.";

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// One to three questions, shown together.
    questions: Vec<QuestionArgs>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct QuestionArgs {
    /// Under this key the answer comes back, in snake_case.
    id: String,
    /// A title of at most 12 characters.
    header: String,
    /// One sentence.
    question: String,
    /// Two or three answers to choose from, the one you recommend first and marked with "(Recommended)". The user can
    /// always write an answer of their own, so do not offer one for that.
    options: Vec<ChoiceArgs>,
    /// Nobody tells models of it, but some know it. There is no question without an answer of the user's own.
    #[serde(default, rename = "isOther", skip_serializing)]
    #[schemars(skip)]
    _is_other: bool,
    /// Nobody tells models of it, but some know it: the answer is not to be seen on the screen.
    #[serde(default, rename = "isSecret", skip_serializing_if = "std::ops::Not::not")]
    #[schemars(skip)]
    is_secret: bool,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
struct ChoiceArgs {
    /// One to five words.
    label: String,
    /// What choosing it leads to, in one sentence.
    description: String,
}

#[derive(Debug, Clone, Copy)]
pub struct RequestUserInput;

impl BuiltinTool for RequestUserInput {
    const NAME: &'static str = "request_user_input";
    const ABOUT: &'static str = "Ask the user one to three short questions, each with answers to choose from, and wait \
        for what they say. Only in Plan mode, unless you were told otherwise.";
    const ASKS: bool = true;
    type Args = Args;

    fn standing(offer: &Offer) -> Standing {
        Standing::offered_if(!offer.is_child)
    }

    fn spec(offer: &Offer) -> Value {
        let about = if offer.has_feature(IN_DEFAULT_MODE) { ABOUT_EVERYWHERE } else { Self::ABOUT };
        function_json::<Args>(Self::NAME, about)
    }

    async fn call(&self, args: Args, cx: &ToolCx) -> Result<ToolOutcome, ToolError> {
        check(&args, cx)?;
        let arguments = json!(args);
        let question = ToolRequestUserInputParams {
            thread_id: cx.thread_id().clone(),
            turn_id: cx.turn_id().clone(),
            item_id: ItemId::new(cx.call_id()),
            questions: args.questions.into_iter().map(QuestionArgs::into_question).collect(),
            is_blocking: true,
            operation_id: None,
            arguments_digest: None,
        };
        let proposal = Proposal {
            number: 0,
            kind: OperationType::UserInput,
            effects: ToolEffects::Readonly,
            item: None,
            outlives: false,
            digest: digest_of(&arguments),
            arguments,
            question: Some(Box::new(Question::UserInput(question))),
            session_keys: Vec::new(),
        };
        match cx.propose(proposal).await.answers() {
            Some(answers) => Ok(text(json!(answers).to_string())),
            None => Err(ToolError::Failed(
                "the user was asked and gave no answer. Go on with what you think best, and say what you assumed"
                    .to_owned(),
            )),
        }
    }
}

fn check(args: &Args, cx: &ToolCx) -> Result<(), ToolError> {
    let planning = cx.step().collaboration_mode.as_ref().is_some_and(|mode| mode.mode == ModeKind::Plan);
    if !planning && !cx.bench().options().features.contains(IN_DEFAULT_MODE) {
        let problem =
            "request_user_input can be used in Plan mode only. Decide yourself, or ask in your answer";
        return Err(ToolError::Refused(problem.to_owned()));
    }
    if args.questions.is_empty() {
        return Err(ToolError::Failed("questions must not be empty".to_owned()));
    }
    let mut ids = HashSet::new();
    for asked in &args.questions {
        if asked.options.is_empty() {
            let problem = format!("question {} has no options: give two or three", asked.id);
            return Err(ToolError::Failed(problem));
        }
        if !ids.insert(&asked.id) {
            let problem =
                format!("two questions have the id {}: their answers could not be told apart", asked.id);
            return Err(ToolError::Failed(problem));
        }
    }
    Ok(())
}

impl QuestionArgs {
    fn into_question(self) -> ToolRequestUserInputQuestion {
        let option = |ChoiceArgs { label, description }| ToolRequestUserInputOption { label, description };
        ToolRequestUserInputQuestion {
            id: self.id,
            header: self.header,
            question: self.question,
            is_other: true,
            is_secret: self.is_secret,
            options: Some(self.options.into_iter().map(option).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{CollaborationMode, Settings};

    use engine::ProposalDecision;

    use super::*;
    use crate::Registry;
    use crate::scene::Scene;

    fn scene(mode: Option<ModeKind>, decided: ProposalDecision) -> Scene {
        let mut scene = Scene::deciding(decided);
        scene.step.collaboration_mode = mode.map(|mode| CollaborationMode {
            mode,
            settings: Settings {
                model: "m".to_owned(),
                reasoning_effort: None,
                developer_instructions: None,
            },
        });
        scene
    }

    #[test]
    fn the_description_says_in_which_modes_it_works() {
        let told = |features: &[&str]| {
            let features = features.iter().map(|key| (*key).to_owned()).collect();
            let spec = RequestUserInput::spec(&Offer { features, ..Offer::default() });
            spec["description"].as_str().expect("a text").to_owned()
        };
        assert!(told(&[]).contains("Only in Plan mode"));
        let everywhere = told(&[IN_DEFAULT_MODE]);
        assert!(everywhere.contains("In Default and in Plan mode"), "{everywhere}");
        assert!(!everywhere.contains("Only"), "{everywhere}");
    }

    fn answered() -> ProposalDecision {
        let answers = json!({"answers": {"q1": {"answers": ["B"]}}});
        ProposalDecision::answered(&serde_json::from_value(answers).expect("answers"))
    }

    fn arguments(options: &Value) -> Value {
        json!({"questions": [{"id": "q1", "header": "Pick", "question": "Which?", "options": options}]})
    }

    fn options() -> Value {
        json!([{"label": "A (Recommended)", "description": "first"}, {"label": "B", "description": "second"}])
    }

    #[tokio::test]
    async fn the_user_is_asked_and_the_model_gets_the_answers() {
        let scene = scene(Some(ModeKind::Plan), answered());
        let (text, success) = scene.run_text("request_user_input", arguments(&options())).await;
        assert_eq!((text.as_str(), success), (r#"{"answers":{"q1":{"answers":["B"]}}}"#, true));
        let proposals = scene.proposals();
        let [proposal] = proposals.as_slice() else { panic!("{proposals:?}") };
        assert_eq!(proposal.arguments, arguments(&options()));
        assert_eq!((&proposal.kind, &proposal.item), (&OperationType::UserInput, &None));
        let Some(Question::UserInput(asked)) = proposal.question.as_deref() else { panic!("{proposal:?}") };
        assert_eq!(
            serde_json::to_value(&asked.questions).expect("plain data"),
            json!([{"id": "q1", "header": "Pick", "question": "Which?", "isOther": true, "isSecret": false,
                    "options": options()}])
        );
    }

    #[tokio::test]
    async fn a_secret_answer_is_hidden_and_the_field_not_advertised() {
        let scene = scene(Some(ModeKind::Plan), answered());
        let mut secret = arguments(&options());
        secret["questions"][0]["isOther"] = json!(false);
        secret["questions"][0]["isSecret"] = json!(true);
        assert!(scene.run_text("request_user_input", secret).await.1);
        let proposals = scene.proposals();
        let Some(Question::UserInput(asked)) = proposals[0].question.as_deref() else {
            panic!("{proposals:?}")
        };
        assert!(asked.questions[0].is_secret && asked.questions[0].is_other);
        assert_eq!(proposals[0].arguments["questions"][0]["isSecret"], true);
        let spec = RequestUserInput::spec(&Offer::default()).to_string();
        assert!(!spec.contains("isSecret") && !spec.contains("isOther"), "{spec}");
    }

    #[tokio::test]
    async fn it_works_in_plan_mode_only_unless_a_feature_extends_it() {
        let feature: &[&str] = &[IN_DEFAULT_MODE];
        for (mode, features, asks) in [
            (Some(ModeKind::Plan), &[][..], true),
            (Some(ModeKind::Default), &[], false),
            (None, &[], false),
            (Some(ModeKind::Default), feature, true),
            (None, feature, true),
        ] {
            let scene = scene(mode, answered()).with_features(features);
            let (text, success) = scene.run_text("request_user_input", arguments(&options())).await;
            assert_eq!(success, asks, "{text}");
            assert_eq!(scene.proposals().len(), usize::from(asks));
            assert_eq!(text.contains("in Plan mode only"), !asks);
        }
    }

    #[tokio::test]
    async fn invalid_questions_are_refused() {
        let twice = json!([arguments(&options())["questions"][0], arguments(&options())["questions"][0]]);
        for (arguments, expected) in [
            (arguments(&json!([])), "question q1 has no options"),
            (json!({"questions": []}), "questions must not be empty"),
            (json!({"questions": twice}), "two questions have the id q1"),
            (arguments(&json!(null)), "failed to parse function arguments: "),
            (json!({"questions": [{"id": "q", "header": "h", "question": "?"}]}), "missing field `options`"),
        ] {
            let scene = scene(Some(ModeKind::Plan), answered());
            let (text, success) = scene.run_text("request_user_input", arguments).await;
            assert!(text.contains(expected) && !success, "{text}");
            assert!(scene.proposals().is_empty());
        }
    }

    #[tokio::test]
    async fn a_missing_answer_is_reported() {
        let scene = scene(Some(ModeKind::Plan), ProposalDecision::declined());
        let (text, success) = scene.run_text("request_user_input", arguments(&options())).await;
        assert!(text.contains("gave no answer") && !success, "{text}");
    }

    #[test]
    fn a_child_agent_cannot_ask_the_user() {
        for is_child in [false, true] {
            let offer = Offer { is_child, ..Offer::default() };
            let specs = Registry::builtin().specs(&offer);
            assert_eq!(specs.iter().any(|spec| spec.name == "request_user_input"), !is_child);
        }
    }
}
