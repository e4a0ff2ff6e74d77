//! Token counts: the provider's numbers, and estimates until there are any.

use protocol::{
    ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ResponseItem, ThreadTokenUsage,
    TokenUsageBreakdown, TurnCost,
};

/// About four bytes to a token.
pub fn approximate_tokens(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(4)).unwrap_or(i64::MAX)
}

/// An inline image counts as this many bytes, whatever the size of its encoding.
const IMAGE_BYTES: usize = 7_373;

/// Estimated tokens of an item.
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
    cache_write_input_tokens: None,
    is_estimated: false,
};

/// Adds the newest response to the total.
pub(crate) fn add(usage: &mut ThreadTokenUsage, last: TokenUsageBreakdown) {
    let total = &mut usage.total;
    total.total_tokens = total.total_tokens.saturating_add(last.total_tokens);
    total.input_tokens = total.input_tokens.saturating_add(last.input_tokens);
    total.cached_input_tokens = total.cached_input_tokens.saturating_add(last.cached_input_tokens);
    total.output_tokens = total.output_tokens.saturating_add(last.output_tokens);
    total.reasoning_output_tokens =
        total.reasoning_output_tokens.saturating_add(last.reasoning_output_tokens);
    if let Some(written) = last.cache_write_input_tokens {
        let before = total.cache_write_input_tokens.unwrap_or(0);
        total.cache_write_input_tokens = Some(before.saturating_add(written));
    }
    total.is_estimated |= last.is_estimated;
    usage.last = last;
}

/// The price of a million tokens of each kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenPrice {
    pub input: f64,
    pub cached_input: f64,
    pub cache_write: f64,
    pub output: f64,
}

impl TokenPrice {
    pub(crate) fn cost(&self, used: &TokenUsageBreakdown) -> TurnCost {
        let (cached, written) = (used.cached_input_tokens, used.cache_write_input_tokens.unwrap_or(0));
        let fresh = used.input_tokens.saturating_sub(cached).saturating_sub(written).max(0);
        let of = |tokens: i64, price: f64| tokens as f64 * price / 1_000_000.0;
        let amount = of(fresh, self.input)
            + of(cached, self.cached_input)
            + of(written, self.cache_write)
            + of(used.output_tokens, self.output);
        TurnCost { amount, is_estimated: used.is_estimated }
    }
}

#[cfg(test)]
mod price_tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price() {
        let price = TokenPrice { input: 10.0, cached_input: 1.0, cache_write: 20.0, output: 100.0 };
        let used = TokenUsageBreakdown {
            input_tokens: 1_000_000,
            cached_input_tokens: 500_000,
            cache_write_input_tokens: Some(100_000),
            output_tokens: 10_000,
            ..NOTHING
        };
        // 0.4 M fresh, 0.5 M cached, 0.1 M written, 0.01 M out.
        let cost = price.cost(&used);
        assert!((cost.amount - (4.0 + 0.5 + 2.0 + 1.0)).abs() < 1e-9, "{cost:?}");
        assert!(!cost.is_estimated);
    }
}
