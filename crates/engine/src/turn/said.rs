//! Input of a turn: user messages, and messages from other programs, which look like tool outputs.

use protocol::{ItemId, ResponseItem, RolloutRecord, ThreadItem, TurnId};

use crate::context::{PluginHint, SkillBody, alone, user_message};
use crate::input::{OutsideMessage, UserText};
use crate::turn::work::Transition;

/// Suffix of an outside message's id, after the id of the input that it came with.
const OUTSIDE: &str = "-outside";

/// The id of the input that came with this outside message.
pub fn said_with(outside: &ItemId) -> ItemId {
    let id = outside.as_str();
    ItemId::new(id.strip_suffix(OUTSIDE).unwrap_or(id))
}

/// A user message with its item id.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) id: ItemId,
    pub(crate) text: UserText,
    /// Messages for the model right before it.
    pub(crate) beside: Vec<ResponseItem>,
    /// Messages right after it: the context from hooks.
    pub(crate) after: Vec<ResponseItem>,
}

impl Said {
    pub(crate) fn new(work: &mut Transition<'_>, mut text: UserText) -> Self {
        let beside = work.core.additional.replace(std::mem::take(&mut text.additional));
        let id = text.id.take().unwrap_or_else(|| work.ids.item());
        Self { id, text, beside, after: Vec::new() }
    }

    /// The messages for the model, in order.
    pub(crate) fn messages(&mut self) -> Vec<ResponseItem> {
        let mut messages = std::mem::take(&mut self.beside);
        if !self.text.shown.is_empty() {
            messages.push(user_message(Some(&self.id), self.text.content.clone()));
        }
        messages.extend(self.outside_messages());
        messages.append(&mut self.after);
        messages.extend(self.text.plugins.iter().map(|plugin| alone(&PluginHint(plugin))));
        messages.extend(self.text.skills.iter().map(|skill| alone(&SkillBody(skill))));
        messages
    }

    /// A synthetic call and its output. Providers reject an output without a call.
    fn outside_messages(&self) -> Vec<ResponseItem> {
        let Some(OutsideMessage { name, namespace, output }) = &self.text.outside else { return Vec::new() };
        let call_id = self.outside_id().to_string();
        let call = ResponseItem::FunctionCall {
            id: None,
            name: name.clone(),
            namespace: namespace.clone(),
            arguments: "{}".to_owned(),
            call_id: call_id.clone(),
        };
        vec![call, ResponseItem::FunctionCallOutput { call_id, output: output.clone() }]
    }

    fn outside_id(&self) -> ItemId {
        ItemId::new(format!("{}{OUTSIDE}", self.id))
    }

    /// The items that clients see.
    pub(crate) fn items(&self) -> Vec<ThreadItem> {
        let mut items = Vec::new();
        if !self.text.shown.is_empty() {
            items.push(ThreadItem::UserMessage { id: self.id.clone(), content: self.text.shown.clone() });
        }
        if let Some(OutsideMessage { name, namespace, output }) = self.text.outside.clone() {
            items.push(ThreadItem::FunctionCallOutput { id: self.outside_id(), name, namespace, output });
        }
        items
    }

    /// Recorded before anyone is notified: accepted input is never lost.
    pub(crate) fn record(&self, work: &mut Transition<'_>, turn_id: &TurnId) {
        for item in self.items() {
            work.record(RolloutRecord::ThreadItem { turn_id: turn_id.clone(), item });
        }
    }
}
