//! From what the model sent to what clients see.

use protocol::{
    ContentItem, ItemId, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem,
    ResponsesApiWebSearchAction, ThreadItem, WebSearchAction,
};

/// The item as clients see it, if they do. `fresh` names it where the model did not.
pub(crate) fn shown(item: &ResponseItem, fresh: impl FnOnce() -> ItemId) -> Option<ThreadItem> {
    let named = |id: &Option<String>| id.clone().map(ItemId::new);
    match item {
        ResponseItem::Message { id, role, content, phase, .. } if role == "assistant" => {
            Some(ThreadItem::AgentMessage {
                id: named(id).unwrap_or_else(fresh),
                text: without_citations(&text_of(content)),
                phase: *phase,
                memory_citation: None,
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

/// The item as it looks when it has only begun.
pub(crate) fn begun(item: &ThreadItem) -> ThreadItem {
    match item.clone() {
        ThreadItem::Reasoning { id, .. } => ThreadItem::Reasoning { id, summary: vec![], content: vec![] },
        other => other,
    }
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
    // Until the search is done nobody knows what it does.
    let action = Some(action.unwrap_or(WebSearchAction::Other));
    let query = match &action {
        Some(WebSearchAction::Search { query, queries }) => {
            query.clone().or_else(|| queries.as_ref()?.first().cloned()).unwrap_or_default()
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

const CITATION_START: &str = "<oai-mem-citation>";
const CITATION_END: &str = "</oai-mem-citation>";

/// Citation markup is for the program, not for the reader.
pub(crate) fn without_citations(text: &str) -> String {
    let mut rest = text;
    let mut kept = String::new();
    while let Some(start) = rest.find(CITATION_START) {
        kept.push_str(&rest[..start]);
        rest = rest[start..].find(CITATION_END).map_or("", |end| &rest[start + end + CITATION_END.len()..]);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_taken_out() {
        assert_eq!(without_citations("a<oai-mem-citation>x</oai-mem-citation>b"), "ab");
        assert_eq!(without_citations("a<oai-mem-citation>never closed"), "a");
        assert_eq!(without_citations("plain"), "plain");
    }

    #[test]
    fn a_search_shows_what_was_looked_for() {
        let action =
            ResponsesApiWebSearchAction::FindInPage { url: Some("u".into()), pattern: Some("p".into()) };
        let ThreadItem::WebSearch { query, .. } = web_search(ItemId::new("w"), Some(&action)) else {
            panic!()
        };
        assert_eq!(query, "'p' in u");
    }
}
