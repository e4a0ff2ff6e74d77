//! Converts the model's items to the items that clients see.

use protocol::{
    ContentItem, ItemId, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem,
    ResponsesApiWebSearchAction, ThreadItem, WebSearchAction,
};

use crate::citation;

/// The item for clients, if they see one. `fresh` makes an id where the model gave none.
pub(crate) fn shown(item: &ResponseItem, fresh: impl FnOnce() -> ItemId) -> Option<ThreadItem> {
    let named = |id: &Option<String>| id.clone().map(ItemId::new);
    match item {
        ResponseItem::Message { id, role, content, phase, .. } if role == "assistant" => {
            let (text, memory_citation) = citation::split(&text_of(content));
            Some(ThreadItem::AgentMessage {
                id: named(id).unwrap_or_else(fresh),
                text,
                phase: *phase,
                memory_citation,
            })
        }
        ResponseItem::Reasoning { id, summary, content, .. } => Some(ThreadItem::Reasoning {
            id: named(id).unwrap_or_else(fresh),
            summary: summary
                .iter()
                .map(|ReasoningItemReasoningSummary::SummaryText { text }| text.clone())
                .collect(),
            content: content.iter().flatten().map(reasoning_text).collect(),
        }),
        ResponseItem::WebSearchCall { id, action, .. } => {
            Some(web_search(named(id).unwrap_or_else(fresh), action.as_ref()))
        }
        ResponseItem::ImageGenerationCall { id, status, revised_prompt, result } => {
            Some(ThreadItem::ImageGeneration {
                id: ItemId::new(id.clone()),
                status: status.clone(),
                revised_prompt: revised_prompt.clone(),
                result: result.clone(),
                saved_path: None,
            })
        }
        _ => None,
    }
}

/// The item in its initial, empty form.
pub(crate) fn begun(item: &ThreadItem) -> ThreadItem {
    match item.clone() {
        ThreadItem::Reasoning { id, .. } => ThreadItem::Reasoning { id, summary: vec![], content: vec![] },
        other => announced(&other),
    }
}

/// The initial form of an item that arrives as a whole: without the image data.
pub(crate) fn announced(item: &ThreadItem) -> ThreadItem {
    match item.clone() {
        ThreadItem::ImageGeneration { id, .. } => ThreadItem::ImageGeneration {
            id,
            status: "in_progress".to_owned(),
            revised_prompt: None,
            result: String::new(),
            saved_path: None,
        },
        other => other,
    }
}

/// An image item with the file it was saved to.
pub(crate) fn saved_at(mut item: ThreadItem, path: Option<&str>) -> ThreadItem {
    if let ThreadItem::ImageGeneration { saved_path, .. } = &mut item {
        *saved_path = path.map(str::to_owned);
    }
    item
}

pub(crate) fn text_of(content: &[ContentItem]) -> String {
    let text = |part: &ContentItem| match part {
        ContentItem::OutputText { text } | ContentItem::InputText { text } => Some(text.clone()),
        ContentItem::InputImage { .. } => None,
    };
    content.iter().filter_map(text).collect()
}

fn reasoning_text(part: &ReasoningItemContent) -> String {
    match part {
        ReasoningItemContent::ReasoningText { text } | ReasoningItemContent::Text { text } => text.clone(),
    }
}

fn web_search(id: ItemId, action: Option<&ResponsesApiWebSearchAction>) -> ThreadItem {
    let action = action.map(|action| match action.clone() {
        ResponsesApiWebSearchAction::Search { query, queries } => WebSearchAction::Search { query, queries },
        ResponsesApiWebSearchAction::OpenPage { url } => WebSearchAction::OpenPage { url },
        ResponsesApiWebSearchAction::FindInPage { url, pattern } => {
            WebSearchAction::FindInPage { url, pattern }
        }
        ResponsesApiWebSearchAction::Other => WebSearchAction::Other,
    });
    // The action is known only when the search is done.
    let action = Some(action.unwrap_or(WebSearchAction::Other));
    let query = match &action {
        Some(WebSearchAction::Search { query, queries }) => {
            searched(query.as_deref(), queries.as_deref().unwrap_or_default())
        }
        Some(WebSearchAction::OpenPage { url }) => url.clone().unwrap_or_default(),
        Some(WebSearchAction::FindInPage { url, pattern }) => match (pattern, url) {
            (Some(pattern), Some(url)) => format!("'{pattern}' in {url}"),
            (Some(pattern), None) => format!("'{pattern}'"),
            (None, url) => url.clone().unwrap_or_default(),
        },
        Some(WebSearchAction::Other) | None => String::new(),
    };
    ThreadItem::WebSearch { id, query, action }
}

/// The query; for several, the first with an ellipsis.
fn searched(query: Option<&str>, queries: &[String]) -> String {
    match (query.filter(|query| !query.is_empty()), queries) {
        (Some(query), _) => query.to_owned(),
        (None, [first, _, ..]) if !first.is_empty() => format!("{first} ..."),
        (None, queries) => queries.first().cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_search(action: serde_json::Value, expected: &str) {
        let action: ResponsesApiWebSearchAction = serde_json::from_value(action).unwrap();
        let ThreadItem::WebSearch { query, .. } = web_search(ItemId::new("w"), Some(&action)) else {
            panic!()
        };
        assert_eq!(query, expected);
    }

    #[test]
    fn a_search_shows_its_query() {
        check_search(json!({"type": "find_in_page", "url": "u", "pattern": "p"}), "'p' in u");
        check_search(json!({"type": "search", "query": "a", "queries": ["b", "c"]}), "a");
        check_search(json!({"type": "search", "queries": ["b"]}), "b");
        check_search(json!({"type": "search", "query": "", "queries": ["b", "c"]}), "b ...");
        check_search(json!({"type": "search"}), "");
    }

    #[test]
    fn an_image_item_starts_without_image_data() {
        let call = json!({"type": "image_generation_call", "id": "i", "status": "completed", "revised_prompt": "cat",
            "result": "AAAA"});
        let done = shown(&serde_json::from_value(call).unwrap(), || ItemId::new("fresh")).unwrap();
        let begun = serde_json::to_value(announced(&done)).unwrap();
        assert_eq!(
            begun,
            json!({"type": "imageGeneration", "id": "i", "status": "in_progress", "revisedPrompt": null, "result": ""})
        );
    }
}
