//! The Chat wire: OpenAI-compatible chat completions, tolerant of what servers really send.

mod decode;
mod encode;
mod text_calls;

pub(crate) use decode::ChatDecoder;
pub(crate) use encode::ChatEncoder;
