//! Request options of a model family: a table by version. The configuration can override it.

use model::protocol::ReasoningEffort;

use crate::{Capabilities, Thinking};

/// Facts in a model's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ModelFamily {
    pub(crate) thinking: Thinking,
    pub(crate) max_tokens: u32,
    /// Answers can be held to a JSON schema.
    pub(crate) json_schema: bool,
}

/// The first version, and what holds from there on. A version is `major * 100 + minor`.
const FAMILIES: &[(u32, ModelFamily)] = &[
    (0, ModelFamily { thinking: Thinking::Never, max_tokens: 4_096, json_schema: false }),
    (305, ModelFamily { thinking: Thinking::Never, max_tokens: 8_192, json_schema: false }),
    (307, ModelFamily { thinking: Thinking::Budget, max_tokens: 32_000, json_schema: false }),
    (405, ModelFamily { thinking: Thinking::Budget, max_tokens: 32_000, json_schema: true }),
    (406, ModelFamily { thinking: Thinking::Adaptive, max_tokens: 32_000, json_schema: true }),
];

/// An unknown model is treated like the newest ones.
const UNKNOWN: ModelFamily =
    ModelFamily { thinking: Thinking::Adaptive, max_tokens: 32_000, json_schema: true };

impl ModelFamily {
    pub(crate) fn of(model: &str) -> Self {
        let Some(version) = version(model) else { return UNKNOWN };
        let row = FAMILIES.iter().rev().find(|(first, _)| *first <= version);
        row.map_or(UNKNOWN, |(_, family)| *family)
    }
}

/// The most that an answer to this request may have, in tokens.
pub(crate) fn max_tokens(model: &str, able: &Capabilities) -> u32 {
    able.max_output_tokens.unwrap_or(ModelFamily::of(model).max_tokens)
}

/// `claude-3-7-sonnet-20250219` is 307, `claude-opus-4-6` is 406, `claude-sonnet-4-20250514` is 400.
fn version(model: &str) -> Option<u32> {
    let (_, name) = model.rsplit_once("claude-")?;
    let numbers = name.split(['-', '.', '@', ':', '_']).map(|word| match word.len() {
        // Dates are longer.
        1..=2 => word.parse::<u32>().ok(),
        _ => None,
    });
    let mut numbers = numbers.skip_while(Option::is_none);
    let major = numbers.next().flatten()?;
    Some(major * 100 + numbers.next().flatten().unwrap_or(0))
}

/// Tokens to think with: at least 1,024, and below what may be written.
pub(crate) fn budget(effort: Option<&ReasoningEffort>, max_tokens: u32) -> Option<u32> {
    let wanted = match effort {
        Some(ReasoningEffort::None) => return None,
        Some(ReasoningEffort::Minimal | ReasoningEffort::Low) => 2_048,
        Some(ReasoningEffort::Medium) | None => 8_192,
        Some(ReasoningEffort::High) => 16_384,
        Some(_) => 24_576,
    };
    let budget = wanted.min(max_tokens / 2);
    (budget >= 1_024).then_some(budget)
}

pub(crate) fn effort_name(effort: &ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::Medium => "medium",
        ReasoningEffort::High | ReasoningEffort::Xhigh => "high",
        ReasoningEffort::Max | ReasoningEffort::Ultra | ReasoningEffort::Persistent => "max",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names() {
        for (model, expected) in [
            ("claude-3-haiku-20240307", Some(300)),
            ("claude-3-5-sonnet-latest", Some(305)),
            ("claude-3-7-sonnet-20250219", Some(307)),
            ("claude-sonnet-4-20250514", Some(400)),
            ("claude-opus-4-5-20251101", Some(405)),
            ("claude-opus-4-6", Some(406)),
            ("anthropic.claude-sonnet-4-5-20250929-v1:0", Some(405)),
            ("anthropic/claude-sonnet-4.6", Some(406)),
            ("claude-opus-5", Some(500)),
            ("deepseek-chat", None),
        ] {
            assert_eq!(version(model), expected, "{model}");
        }
        assert_eq!(ModelFamily::of("claude-3-5-haiku").max_tokens, 8_192);
        assert_eq!(ModelFamily::of("claude-opus-4-5").thinking, Thinking::Budget);
        assert_eq!(ModelFamily::of("claude-opus-4-6").thinking, Thinking::Adaptive);
        assert_eq!(ModelFamily::of("something-new"), UNKNOWN);
    }

    #[test]
    fn a_budget_stays_below_what_may_be_written() {
        assert_eq!(budget(Some(&ReasoningEffort::None), 32_000), None);
        assert_eq!(budget(Some(&ReasoningEffort::High), 32_000), Some(16_000));
        assert_eq!(budget(None, 4_096), Some(2_048));
        assert_eq!(budget(None, 1_500), None);
    }
}
