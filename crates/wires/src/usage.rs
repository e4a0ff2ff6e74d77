//! Token estimates for servers that send no counts: about four bytes per token.

use model::RequestBody;
use model::protocol::{ResponseItem, TokenUsageBreakdown};

use crate::piece::{ContentPart, HistoryPiece, piece};

const BYTES_PER_TOKEN: usize = 4;
/// An inline image counts as this many bytes, whatever the size of its encoding.
const IMAGE_BYTES: usize = 7_373;

/// Marked as an estimate.
pub(crate) fn estimated(request: &RequestBody, written_bytes: usize) -> TokenUsageBreakdown {
    let history = request.input.iter().filter_map(|item| piece(item).ok().flatten());
    let tools = request.tools.iter().map(|tool| tool.to_string().len()).sum::<usize>();
    let input = history.map(|piece| weight(&piece)).sum::<usize>() + request.instructions.len() + tools;
    let tokens = |bytes: usize| i64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(i64::MAX);
    let (input_tokens, output_tokens) = (tokens(input), tokens(written_bytes));
    TokenUsageBreakdown {
        total_tokens: input_tokens.saturating_add(output_tokens),
        input_tokens,
        cached_input_tokens: 0,
        output_tokens,
        reasoning_output_tokens: 0,
        cache_write_input_tokens: None,
        is_estimated: true,
    }
}

/// Bytes of an item of an answer, for the estimate.
pub(crate) fn item_bytes(item: &ResponseItem) -> usize {
    piece(item).ok().flatten().map_or(0, |piece| weight(&piece))
}

fn weight(piece: &HistoryPiece) -> usize {
    let of_parts = |parts: &[ContentPart]| {
        let weight = |part: &ContentPart| match part {
            ContentPart::Text(text) => text.len(),
            ContentPart::Image(_) => IMAGE_BYTES,
        };
        parts.iter().map(weight).sum::<usize>()
    };
    match piece {
        HistoryPiece::User(parts) | HistoryPiece::Output { parts, .. } => of_parts(parts),
        HistoryPiece::Developer(text) | HistoryPiece::Assistant(text) => text.len(),
        // The block is base64, and sent back decoded.
        HistoryPiece::Reasoning(text) => text.len() * 3 / 4,
        HistoryPiece::Call(call) => call.name.len() + call.arguments.len(),
    }
}
