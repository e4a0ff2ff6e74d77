//! The Messages wire: Anthropic's, and that of servers that speak it.

mod decode;
mod encode;
mod family;
mod write;

pub(crate) use decode::MessagesDecoder;
pub(crate) use encode::MessagesEncoder;
