//! User input: what a user sends into a turn, and questions the agent puts to the user.

use super::prelude::*;

/// Bytes of a UTF-8 text.
#[wire]
pub struct ByteRange {
    pub start: u64,
    /// Not included.
    pub end: u64,
}

/// A piece of a text that the client shows in a special way.
#[wire]
pub struct TextElement {
    pub byte_range: ByteRange,
    /// The text that the client shows in its place; null for the text itself.
    pub placeholder: Option<String>,
}

/// One part of what the user sends.
#[wire(tag = "type")]
pub enum UserInput {
    Text {
        text: String,
        /// Pieces of `text` that the client shows in a special way. Kept for display.
        #[serde(rename = "text_elements")]
        #[serde(default)]
        text_elements: Vec<TextElement>,
    },
    Image {
        /// A web address or a data URL.
        url: String,
    },
    /// An image file on the server's machine.
    LocalImage { path: String },
    /// Use this skill.
    Skill {
        /// Its `SKILL.md`.
        path: String,
        name: String,
    },
    /// An app or plugin the text names.
    Mention {
        /// `app://<id>` or `plugin://<plugin>@<marketplace>`.
        path: String,
        name: String,
    },
}

/// An answer to choose.
#[wire]
pub struct ToolRequestUserInputOption {
    pub label: String,
    pub description: String,
}

/// Questions of the agent to the user.
#[wire]
pub struct ToolRequestUserInputParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The model's call. No item is shown for it.
    pub item_id: ItemId,
    pub questions: Vec<ToolRequestUserInputQuestion>,
    /// Whether the turn waits for the answer.
    #[serde(default = "crate::yes")]
    pub is_blocking: bool,
    /// The same when the request is sent again, also after a restart.
    #[experimental("item/tool/requestUserInput.operationId")]
    #[omit]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("item/tool/requestUserInput.argumentsDigest")]
    #[omit]
    pub arguments_digest: Option<String>,
}

/// One question.
#[wire]
pub struct ToolRequestUserInputQuestion {
    /// The key of its answer.
    pub id: String,
    /// A short title.
    pub header: String,
    pub question: String,
    /// The user may write an answer of their own. True whenever there are options.
    #[serde(default)]
    pub is_other: bool,
    /// The answer is not to be shown while it is typed.
    #[serde(default)]
    pub is_secret: bool,
    /// Null for a free answer.
    pub options: Option<Vec<ToolRequestUserInputOption>>,
}

/// The answer to one question.
#[wire]
pub struct ToolRequestUserInputAnswer {
    /// The chosen labels, or the user's own text.
    pub answers: Vec<String>,
}

#[wire]
pub struct ToolRequestUserInputResponse {
    /// By question id.
    pub answers: BTreeMap<String, ToolRequestUserInputAnswer>,
    /// From a host alone: who answered.
    #[omit]
    #[experimental("item/tool/requestUserInput.origin")]
    pub origin: Option<DecisionOrigin>,
}
