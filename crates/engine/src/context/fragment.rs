//! The contract of a fragment: its name, its role, and its markers.

use protocol::{ContentItem, ResponseItem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Step;

/// The role of a fragment's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Developer,
    /// The user's role. The markers distinguish it from what a person wrote.
    ContextualUser,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::ContextualUser => "user",
        }
    }
}

/// One piece of context. It renders as start marker, body and end marker, with nothing between.
pub(crate) trait Fragment {
    /// Its display name.
    const NAME: &'static str;
    const ROLE: Role;
    const START: &'static str = "";
    const END: &'static str = "";

    fn body(&self) -> String;

    fn render(&self) -> String {
        format!("{}{}{}", Self::START, self.body(), Self::END)
    }
}

/// A fragment derived from a step: how it is made, which state the record stores, and how a change is reported.
pub(crate) trait StepFragment<'a>: Fragment + Sized {
    /// The state that later steps are compared with.
    type State: PartialEq + Serialize + DeserializeOwned;

    fn state(step: &Step) -> Self::State;

    /// For a model without earlier context. `None` when there is nothing to say.
    fn full(step: &'a Step) -> Option<Self>;

    /// For a model that knows the earlier state. By default, the full fragment if it differs.
    fn changed(before: &Self::State, step: &'a Step) -> Option<Self> {
        if *before == Self::state(step) { None } else { Self::full(step) }
    }
}

/// A fragment as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FragmentText {
    /// Its display name.
    pub name: &'static str,
    /// `developer` or `user`.
    pub role: &'static str,
    pub text: String,
}

/// The messages of a request's context: at most one developer and one contextual-user message.
#[derive(Debug, Default)]
pub(crate) struct Envelopes {
    fragments: Vec<FragmentText>,
}

impl Envelopes {
    pub(crate) fn full<'a, F: StepFragment<'a>>(&mut self, step: &'a Step) {
        self.push(F::full(step));
    }

    pub(crate) fn changed<'a, F: StepFragment<'a>>(&mut self, before: &F::State, step: &'a Step) {
        self.push(F::changed(before, step));
    }

    pub(crate) fn push<F: Fragment>(&mut self, fragment: Option<F>) {
        self.fragments.extend(fragment.map(|fragment| FragmentText {
            name: F::NAME,
            role: F::ROLE.word(),
            text: fragment.render(),
        }));
    }

    pub(crate) fn into_fragments(self) -> Vec<FragmentText> {
        self.fragments
    }

    pub(crate) fn messages(self) -> Vec<ResponseItem> {
        let mut developer = Vec::new();
        let mut user = Vec::new();
        for FragmentText { role, text, .. } in self.fragments {
            let parts = if role == Role::Developer.word() { &mut developer } else { &mut user };
            parts.push(ContentItem::InputText { text });
        }
        let envelopes = [(Role::Developer, developer), (Role::ContextualUser, user)];
        let filled = envelopes.into_iter().filter(|(_, parts)| !parts.is_empty());
        filled.map(|(role, parts)| message(role.word(), parts)).collect()
    }
}

/// A fragment in its own message.
pub(crate) fn alone<F: Fragment>(fragment: &F) -> ResponseItem {
    message(F::ROLE.word(), vec![ContentItem::InputText { text: fragment.render() }])
}

pub(super) fn message(role: &str, content: Vec<ContentItem>) -> ResponseItem {
    ResponseItem::Message { id: None, role: role.to_owned(), content, end_turn: None, phase: None }
}
