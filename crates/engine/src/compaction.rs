//! Compaction as data: which request asks for a summary, and what the history is afterwards.

use std::sync::Arc;

use protocol::{ContentItem, ItemId, ResponseItem};

use crate::context::user_message;
use crate::history::is_user_turn;
use crate::items::text_of;
use crate::tokens::approximate_tokens;
use crate::{Step, Truncation, truncate_middle};

/// Marks a summary in the history.
pub const SUMMARY_PREFIX: &str = "What follows is the summary of this thread up to here, written to hand it over. Build on \
it and do not repeat work it says is done.";

/// Asks for the summary.
const PROMPT: &str = "Write a hand-over for whoever continues this thread without having read it: what the user wants, \
what has been done and found so far (files, commands, decisions, with their exact names), what is still open, and what \
to do next. Leave out pleasantries; do not call tools.";

/// Limit of the user's messages that are kept unchanged.
const KEPT_USER_TOKENS: i64 = 20_000;

pub(crate) fn question(step: &Step) -> Arc<ResponseItem> {
    let text = step.compact_prompt.as_deref().unwrap_or(PROMPT).to_owned();
    Arc::new(user_message(None, vec![ContentItem::InputText { text }]))
}

/// The history after compaction: the newest user messages that fit, then the summary.
pub(crate) fn compacted(history: &[Arc<ResponseItem>], summary: &str) -> Vec<ResponseItem> {
    let mut kept = Vec::new();
    let mut budget = KEPT_USER_TOKENS;
    for (id, text) in history.iter().rev().filter_map(|item| spoken_by_user(item)) {
        if budget == 0 {
            break;
        }
        let cost = approximate_tokens(text.len());
        if cost <= budget {
            budget -= cost;
            kept.push((id, text));
        } else {
            let most = Truncation::Tokens(usize::try_from(budget).unwrap_or(0));
            kept.push((id, truncate_middle(&text, most)));
            budget = 0;
        }
    }
    let said = kept.into_iter().rev();
    let summary = format!("{SUMMARY_PREFIX}\n{summary}");
    said.chain([(None, summary)])
        .map(|(id, text)| user_message(id.as_ref(), vec![ContentItem::InputText { text }]))
        .collect()
}

/// The text and id of a real user message. Earlier summaries do not count.
fn spoken_by_user(item: &ResponseItem) -> Option<(Option<ItemId>, String)> {
    match item {
        ResponseItem::Message { id, content, .. } if is_user_turn(item) => {
            let text = text_of(content);
            (!text.is_empty()).then(|| (id.clone().map(ItemId::new), text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Arc<ResponseItem> {
        Arc::new(user_message(None, vec![ContentItem::InputText { text: text.into() }]))
    }

    fn texts(items: &[ResponseItem]) -> Vec<String> {
        items
            .iter()
            .map(|item| match item {
                ResponseItem::Message { content, .. } => text_of(content),
                other => format!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn user_messages_are_kept_and_context_is_dropped() {
        let history = [said("one"), said("<environment_context></environment_context>"), said("two")];
        let after = compacted(&history, "sum");
        assert_eq!(texts(&after), ["one", "two", &format!("{SUMMARY_PREFIX}\nsum")]);
        let again: Vec<_> = after.into_iter().map(Arc::new).collect();
        assert_eq!(texts(&compacted(&again, "new")), ["one", "two", &format!("{SUMMARY_PREFIX}\nnew")]);
    }

    #[test]
    fn a_user_message_with_pasted_markers_is_kept() {
        let id = ItemId::new("item-1");
        for pasted in [
            "<environment_context>x</environment_context>".to_owned(),
            "<external_k>x</external_k>".to_owned(),
            format!("{SUMMARY_PREFIX}\npasted"),
        ] {
            let content = vec![ContentItem::InputText { text: pasted.clone() }];
            let history = [Arc::new(user_message(Some(&id), content)), said("two")];
            let once: Vec<_> = compacted(&history, "sum").into_iter().map(Arc::new).collect();
            assert_eq!(texts(&compacted(&once, "new"))[..2], [pasted, "two".to_owned()]);
        }
    }

    #[test]
    fn the_newest_user_messages_are_kept_first() {
        let history = [said(&"a".repeat(70_000)), said(&"b".repeat(40_000))];
        let after = texts(&compacted(&history, "s"));
        assert_eq!(after[1], "b".repeat(40_000));
        assert!(after[0].starts_with("aaa") && after[0].contains("tokens truncated"), "{}", &after[0][..20]);
        assert!(after[0].len() < 41_000);
    }
}
