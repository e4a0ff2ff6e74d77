//! The next request of a thread to its model, in pieces.

use super::prelude::*;

/// Describes the next request of a thread, as `oarlock debug prompt` does. Nothing is asked or recorded.
#[wire(omit_null)]
pub struct ThreadPromptReadParams {
    pub thread_id: ThreadId,
    /// Most pieces of the history, the newest: 100 when unset, never more than 1,000.
    pub history_limit: Option<u32>,
}

#[wire]
pub struct ThreadPromptReadResponse {
    pub model: String,
    pub model_provider: String,
    pub cwd: String,
    /// Tokens that the model has room for. Null where unknown.
    pub context_window: Option<i64>,
    /// About how many tokens all of it has, with the pieces that are left out.
    pub tokens: i64,
    /// Pieces of the history before the first that is given.
    pub omitted_history: u32,
    pub pieces: PromptPieces,
}

/// The pieces of a request, in the order in which the model reads them.
#[wire]
pub struct PromptPieces {
    /// The base instructions by section.
    pub instructions: Vec<PromptPiece>,
    /// The tools that are offered.
    pub tools: Vec<PromptPiece>,
    /// What was said and done before.
    pub history: Vec<PromptPiece>,
    /// What the model is going to be told of its surroundings, before the user's words.
    pub next: Vec<PromptPiece>,
}

/// One piece of a request.
#[wire]
pub struct PromptPiece {
    /// `system`, `developer`, `user`, `assistant` or `tool`.
    pub role: String,
    pub name: String,
    /// Its beginning, where it is long.
    pub text: String,
    /// The length of the whole text.
    pub bytes: u64,
    /// About how many tokens the whole text has.
    pub tokens: i64,
    /// Something that was said or done in the thread, which its name does not tell.
    pub is_message: bool,
}
