//! What the model sees that is neither the user's words nor its own: typed fragments, put together by two builders.
//! No other code makes such messages.

mod environment;
mod permissions;
mod texts;

use protocol::{
    AskForApproval, CollaborationMode, ContentItem, Personality, ReasoningEffort, ResponseItem, SandboxPolicy,
};
use serde::{Deserialize, Serialize};

use crate::Step;

pub(crate) use environment::Environment;
pub(crate) use permissions::Permissions;
pub(crate) use texts::{
    CollaborationText, DeveloperInstructions, ModelSwitch, PersonalityText, ProjectInstructions, SavedPrefix,
    TurnAborted, UserShellCommand,
};

/// The role a fragment is shown under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Developer,
    /// Shares the user's role, so its markers tell it from what a person said.
    ContextualUser,
}

/// One piece of context. Rendering is the start marker, the body and the end marker, with nothing between.
pub(crate) trait Fragment {
    const ROLE: Role;
    const START: &'static str = "";
    const END: &'static str = "";

    fn body(&self) -> String;

    fn render(&self) -> String {
        format!("{}{}{}", Self::START, self.body(), Self::END)
    }
}

/// Markers of every contextual-user fragment there is or was; history parsing knows them all.
pub(crate) const MARKERS: &[(&str, &str)] = &[
    (ProjectInstructions::START, ProjectInstructions::END),
    (Environment::START, Environment::END),
    ("<skill>", "</skill>"),
    (UserShellCommand::START, UserShellCommand::END),
    (TurnAborted::START, TurnAborted::END),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<hook_prompt", "</hook_prompt>"),
];

/// The turn state that context was last made from; stored with each turn, so that a later one tells only what changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Baseline {
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) effort: Option<ReasoningEffort>,
    pub(crate) cwd: String,
    pub(crate) current_date: String,
    pub(crate) timezone: String,
    pub(crate) approval_policy: AskForApproval,
    pub(crate) sandbox: SandboxPolicy,
    pub(crate) collaboration_mode: Option<CollaborationMode>,
    pub(crate) personality: Option<Personality>,
}

impl Baseline {
    pub(crate) fn of(step: &Step) -> Self {
        Self {
            model: step.model.slug.clone(),
            effort: step.effort,
            cwd: step.cwd.clone(),
            current_date: step.current_date.clone(),
            timezone: step.timezone.clone(),
            approval_policy: step.approval_policy.clone(),
            sandbox: step.sandbox.clone(),
            collaboration_mode: step.collaboration_mode.clone(),
            personality: step.personality,
        }
    }
}

/// Everything a model that knows nothing yet needs: at most one developer and one contextual-user message.
pub(crate) fn initial(step: &Step) -> Vec<ResponseItem> {
    let mut envelopes = Envelopes::default();
    envelopes.push(&Permissions::of(step));
    if let Some(text) = &step.developer_instructions {
        envelopes.push(&DeveloperInstructions(text));
    }
    envelopes.push_some(CollaborationText::of(step.collaboration_mode.as_ref()));
    if let Some(text) = &step.project_instructions {
        envelopes.push(&ProjectInstructions { cwd: &step.cwd, text });
    }
    envelopes.push(&Environment::full(step));
    envelopes.messages()
}

/// What changed since the baseline.
pub(crate) fn update(previous: &Baseline, step: &Step) -> Vec<ResponseItem> {
    let current = Baseline::of(step);
    let mut envelopes = Envelopes::default();
    if previous.model != current.model {
        envelopes.push(&ModelSwitch { instructions: &step.base_instructions });
    }
    if previous.sandbox != current.sandbox || previous.approval_policy != current.approval_policy {
        envelopes.push(&Permissions::of(step));
    }
    if previous.collaboration_mode != current.collaboration_mode {
        envelopes.push_some(CollaborationText::of(current.collaboration_mode.as_ref()));
    }
    if previous.model == current.model && previous.personality != current.personality {
        envelopes.push_some(current.personality.map(PersonalityText));
    }
    let moved = previous.cwd != current.cwd;
    if moved || previous.current_date != current.current_date || previous.timezone != current.timezone {
        envelopes.push(&Environment::changed(step, moved));
    }
    envelopes.messages()
}

/// The mark an interrupted turn leaves.
pub fn turn_aborted() -> ResponseItem {
    alone(&TurnAborted)
}

/// A fragment in a message of its own.
pub(crate) fn alone<F: Fragment>(fragment: &F) -> ResponseItem {
    let content = vec![ContentItem::InputText { text: fragment.render() }];
    let role = match F::ROLE {
        Role::Developer => "developer",
        Role::ContextualUser => "user",
    };
    ResponseItem::Message { id: None, role: role.to_owned(), content, end_turn: None, phase: None }
}

#[derive(Default)]
struct Envelopes {
    developer: Vec<ContentItem>,
    contextual_user: Vec<ContentItem>,
}

impl Envelopes {
    fn push<F: Fragment>(&mut self, fragment: &F) {
        let part = ContentItem::InputText { text: fragment.render() };
        match F::ROLE {
            Role::Developer => self.developer.push(part),
            Role::ContextualUser => self.contextual_user.push(part),
        }
    }

    fn push_some<F: Fragment>(&mut self, fragment: Option<F>) {
        if let Some(fragment) = fragment {
            self.push(&fragment);
        }
    }

    fn messages(self) -> Vec<ResponseItem> {
        let developer = message("developer", self.developer);
        let user = message("user", self.contextual_user);
        developer.into_iter().chain(user).collect()
    }
}

fn message(role: &str, content: Vec<ContentItem>) -> Option<ResponseItem> {
    (!content.is_empty()).then(|| ResponseItem::Message {
        id: None,
        role: role.to_owned(),
        content,
        end_turn: None,
        phase: None,
    })
}

/// A message in the user's own name.
pub(crate) fn user_message(content: Vec<ContentItem>) -> ResponseItem {
    ResponseItem::Message { id: None, role: "user".to_owned(), content, end_turn: None, phase: None }
}
