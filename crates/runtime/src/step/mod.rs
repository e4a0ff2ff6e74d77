//! The parts of one model request: the environment, the tools, the instructions and the user's input.

pub(crate) mod agent_roles;
pub(crate) mod builder;
pub(crate) mod input;
#[cfg(test)]
mod prompt_sections_tests;
pub(crate) mod prompts;
pub(crate) mod reading;
pub(crate) mod tool_settings;
