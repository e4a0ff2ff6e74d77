//! Counting tokens: what the provider says, and estimates where it has not spoken yet.

use protocol::{
    ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ResponseItem, ThreadTokenUsage,
    TokenUsageBreakdown,
};

/// About four bytes to a token.
pub fn approximate_tokens(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(4)).unwrap_or(i64::MAX)
}

/// An inline picture counts as much as this many bytes, whatever its encoding weighs.
const IMAGE_BYTES: usize = 7_373;

/// What an item is likely to cost.
pub(crate) fn estimate(item: &ResponseItem) -> i64 {
    approximate_tokens(weight(item))
}

fn weight(item: &ResponseItem) -> usize {
    match item {
        ResponseItem::Reasoning { encrypted_content: Some(text), .. }
        | ResponseItem::Compaction { encrypted_content: text } => (text.len() * 3 / 4).saturating_sub(650),
        ResponseItem::Message { content, .. } => 40 + content.iter().map(content_weight).sum::<usize>(),
        ResponseItem::FunctionCallOutput { output, .. }
        | ResponseItem::CustomToolCallOutput { output, .. } => 60 + output_weight(output),
        ResponseItem::FunctionCall { name, arguments, .. } => 80 + name.len() + arguments.len(),
        ResponseItem::CustomToolCall { name, input, .. } => 80 + name.len() + input.len(),
        other => serde_json::to_string(other).map_or(0, |text| text.len()),
    }
}

fn content_weight(part: &ContentItem) -> usize {
    match part {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => 30 + text.len(),
        ContentItem::InputImage { .. } => IMAGE_BYTES,
    }
}

fn output_weight(output: &FunctionCallOutputBody) -> usize {
    match output {
        FunctionCallOutputBody::Text(text) => text.len(),
        FunctionCallOutputBody::Content(parts) => parts
            .iter()
            .map(|part| match part {
                FunctionCallOutputContentItem::InputText { text } => 30 + text.len(),
                FunctionCallOutputContentItem::InputImage { .. } => IMAGE_BYTES,
            })
            .sum(),
    }
}

pub(crate) const NOTHING: TokenUsageBreakdown = TokenUsageBreakdown {
    total_tokens: 0,
    input_tokens: 0,
    cached_input_tokens: 0,
    output_tokens: 0,
    reasoning_output_tokens: 0,
};

/// Adds the newest response to the running sum.
pub(crate) fn add(usage: &mut ThreadTokenUsage, last: TokenUsageBreakdown) {
    let total = &mut usage.total;
    total.total_tokens = total.total_tokens.saturating_add(last.total_tokens);
    total.input_tokens = total.input_tokens.saturating_add(last.input_tokens);
    total.cached_input_tokens = total.cached_input_tokens.saturating_add(last.cached_input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(last.output_tokens);
    total.reasoning_output_tokens =
        total.reasoning_output_tokens.saturating_add(last.reasoning_output_tokens);
    usage.last = last;
}
