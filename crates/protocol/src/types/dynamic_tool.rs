//! Dynamic tools: tools a client brings along, and the calls the server makes to them.

use super::prelude::*;

/// A tool the client runs for the model. `inputSchema` is the JSON Schema of its arguments.
#[wire]
pub struct DynamicToolSpec {
    /// Unique in the thread, not empty, without space around it. `mcp` and names that begin with `mcp__` are
    /// reserved.
    pub name: String,
    /// For the model to read.
    pub description: String,
    pub input_schema: Value,
    /// Leave the tool out of what the model is offered at first.
    #[serde(default)]
    pub defer_loading: bool,
}

/// One part of a tool's result, as the model gets it.
#[wire(tag = "type")]
pub enum DynamicToolCallOutputContentItem {
    InputText { text: String },
    InputImage { image_url: String },
}

/// Asks the client to run one of its tools. `arguments` are as the model wrote them, which may break the
/// tool's schema.
#[wire]
pub struct DynamicToolCallParams {
    pub thread_id: ThreadId,
    pub turn_id: TurnId,
    /// The model's call id, which is also the id of the tool's item.
    pub call_id: String,
    pub tool: String,
    pub arguments: Value,
    /// The same when the request is sent again, also after a restart. Fit as an idempotency key.
    #[experimental("item/tool/call.operationId")]
    #[omit]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("item/tool/call.argumentsDigest")]
    #[omit]
    pub arguments_digest: Option<String>,
}

/// What the tool gave back.
#[wire]
pub struct DynamicToolCallResponse {
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    /// False makes the item `failed`; the model gets the content either way.
    pub success: bool,
}
