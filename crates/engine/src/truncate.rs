//! Cutting long text in the middle.

use protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem};

use crate::Truncation;

impl Truncation {
    fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Tokens(tokens) => tokens.saturating_mul(4),
        }
    }
}

/// Keeps the first and the last half of the budget and reports how much was cut.
pub fn truncate_middle(text: &str, limit: Truncation) -> String {
    let budget = limit.bytes();
    if text.len() <= budget {
        return text.to_owned();
    }
    let head = floor(text, budget / 2);
    let tail = ceil(text, text.len() - (budget - budget / 2));
    let (head, gone, tail) = (&text[..head], &text[head..tail.max(head)], &text[tail.max(head)..]);
    match limit {
        Truncation::Bytes(_) => format!("{head}…{} chars truncated…{tail}", gone.chars().count()),
        Truncation::Tokens(_) => format!("{head}…{} tokens truncated…{tail}", gone.len().div_ceil(4)),
    }
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Cuts a tool's output when it enters the history. The budget is a fifth larger than the model's, so that cutting
/// again before sending changes nothing.
pub(crate) fn truncate_output(output: FunctionCallOutputBody, limit: Truncation) -> FunctionCallOutputBody {
    let generous = match limit {
        Truncation::Bytes(bytes) => Truncation::Bytes(bytes.saturating_mul(6) / 5),
        Truncation::Tokens(tokens) => Truncation::Tokens(tokens.saturating_mul(6) / 5),
    };
    match output {
        FunctionCallOutputBody::Text(text) => FunctionCallOutputBody::Text(truncate_middle(&text, generous)),
        FunctionCallOutputBody::Content(parts) => {
            FunctionCallOutputBody::Content(truncate_parts(parts, generous))
        }
    }
}

/// The parts use up the budget in order; images are always kept.
fn truncate_parts(
    parts: Vec<FunctionCallOutputContentItem>,
    limit: Truncation,
) -> Vec<FunctionCallOutputContentItem> {
    let mut left = limit.bytes();
    let mut omitted = 0;
    let mut kept = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            FunctionCallOutputContentItem::InputText { .. } if left == 0 => omitted += 1,
            FunctionCallOutputContentItem::InputText { text } => {
                let budget = match limit {
                    Truncation::Bytes(_) => Truncation::Bytes(left),
                    Truncation::Tokens(_) => Truncation::Tokens(left.div_ceil(4)),
                };
                let cut = truncate_middle(&text, budget);
                left = left.saturating_sub(text.len());
                kept.push(FunctionCallOutputContentItem::InputText { text: cut });
            }
            image => kept.push(image),
        }
    }
    if omitted > 0 {
        kept.push(FunctionCallOutputContentItem::InputText {
            text: format!("[omitted {omitted} text items ...]"),
        });
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, limit: Truncation, expected: &str) {
        assert_eq!(truncate_middle(text, limit), expected);
    }

    #[test]
    fn the_middle_is_cut() {
        check("abcdefghij", Truncation::Bytes(10), "abcdefghij");
        check("abcdefghij", Truncation::Bytes(4), "ab…6 chars truncated…ij");
        check("abcdefghijklmnop", Truncation::Tokens(2), "abcd…2 tokens truncated…mnop");
        check("abc", Truncation::Bytes(0), "…3 chars truncated…");
    }

    #[test]
    fn characters_stay_whole() {
        check("ééééé", Truncation::Bytes(5), "é…3 chars truncated…é");
        check("😀😀😀", Truncation::Bytes(3), "…3 chars truncated…");
    }

    #[test]
    fn parts_that_do_not_fit_are_reported() {
        let text = |text: &str| FunctionCallOutputContentItem::InputText { text: text.into() };
        let image = FunctionCallOutputContentItem::InputImage { image_url: "data:".into(), detail: None };
        let parts =
            truncate_parts(vec![text("aaaa"), text("bbbb"), image.clone(), text("c")], Truncation::Bytes(4));
        assert_eq!(parts, vec![text("aaaa"), image, text("[omitted 2 text items ...]")]);
    }
}
