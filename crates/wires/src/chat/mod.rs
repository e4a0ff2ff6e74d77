//! The Chat wire: OpenAI-compatible chat completions, tolerant of servers' deviations.

mod decode;
mod encode;
mod text_calls;

pub(crate) use decode::ChatDecoder;
pub(crate) use encode::ChatEncoder;
