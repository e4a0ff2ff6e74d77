//! The providers' capabilities and differences on the same wire, as a table.

use crate::Wire;

/// Shapes a request. The defaults are what most servers of the wire accept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The provider's id. Reasoning goes back only to the provider and model that made it.
    pub provider: String,
    pub images: bool,
    /// `parallel_tool_calls` may be sent.
    pub parallel_calls: bool,
    /// Answers can be restricted by a JSON schema.
    pub json_schema: bool,
    /// `stream_options.include_usage` may be sent.
    pub asks_for_usage: bool,
    /// A system message may come after others.
    pub later_system: bool,
    /// An effort may be sent, on the chat and messages wires.
    pub reasoning_effort: bool,
    pub call_ids: CallIds,
    /// How reasoning is sent back, on the chat wire.
    pub reasoning: ReasoningReturn,
    /// The name of the output limit's field, on the chat wire.
    pub max_tokens_field: &'static str,
    /// The output limit. Required by the messages wire; `None` uses the model family's.
    pub max_output_tokens: Option<u32>,
    /// `None` uses the model family's.
    pub thinking: Option<Thinking>,
    /// Earlier reasoning is sent back. False if it was refused.
    pub returns_reasoning: bool,
    /// On the Responses wire: estimates missing token counts, and requests a shorter history for a full window, like on
    /// the other wires. False for OpenAI and unknown servers, where clients expect the reference's behaviour.
    pub completes_responses: bool,
    /// Prompt caching marks may be sent, on the messages wire.
    pub cache_marks: bool,
    /// Finds calls in the text, as `<tool_call>`, on the chat wire.
    pub text_tool_calls: bool,
}

/// The form of call ids that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallIds {
    /// Letters, digits, `_` and `-`, at most 64.
    Words,
    /// Exactly nine letters and digits.
    NineAlphanumerics,
}

/// The field of an assistant message with earlier reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningReturn {
    Never,
    /// `reasoning_content`, on every assistant message with calls, even when empty.
    ReasoningContent,
    /// `reasoning_details`, unchanged.
    ReasoningDetails,
    /// `tool_calls[].extra_content`, unchanged.
    ExtraContent,
    /// `content` as an array with `thinking` chunks.
    ThinkingChunks,
}

/// How thinking is requested from a Claude model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// Not supported by the model.
    Never,
    /// `enabled` with a budget of tokens.
    Budget,
    /// `adaptive` with an effort.
    Adaptive,
}

type Quirk = fn(&mut Capabilities);

/// Providers that differ from their wire's defaults.
const QUIRKS: &[(&str, Quirk)] = &[
    ("openai", |able| {
        // On this wire, newer models refuse an effort with tools, and the old name of the limit.
        able.reasoning_effort = false;
        able.later_system = true;
        able.max_tokens_field = "max_completion_tokens";
    }),
    ("azure", |able| {
        able.reasoning_effort = false;
        able.later_system = true;
        able.max_tokens_field = "max_completion_tokens";
    }),
    ("gemini", |able| able.reasoning = ReasoningReturn::ExtraContent),
    ("mistral", |able| {
        able.call_ids = CallIds::NineAlphanumerics;
        able.reasoning = ReasoningReturn::ThinkingChunks;
        // Its last chunk has the usage anyway, and unknown fields are refused.
        able.asks_for_usage = false;
        able.reasoning_effort = false;
    }),
    ("deepseek", |able| {
        able.reasoning = ReasoningReturn::ReasoningContent;
        able.json_schema = false;
        able.images = false;
        able.parallel_calls = false;
        able.reasoning_effort = false;
    }),
    ("openrouter", |able| able.reasoning = ReasoningReturn::ReasoningDetails),
    ("ollama", |able| able.parallel_calls = false),
    ("llamacpp", |able| able.reasoning_effort = false),
];

impl Capabilities {
    pub fn of(provider: &str, wire: Wire) -> Self {
        let mut able = Self {
            provider: provider.to_owned(),
            images: true,
            parallel_calls: true,
            json_schema: true,
            asks_for_usage: true,
            later_system: false,
            reasoning_effort: wire != Wire::Responses,
            call_ids: CallIds::Words,
            reasoning: ReasoningReturn::Never,
            max_tokens_field: "max_tokens",
            max_output_tokens: None,
            thinking: None,
            returns_reasoning: true,
            completes_responses: false,
            cache_marks: true,
            text_tool_calls: false,
        };
        if let Some((_, quirk)) = QUIRKS.iter().find(|(name, _)| *name == provider) {
            quirk(&mut able);
        }
        able
    }
}
