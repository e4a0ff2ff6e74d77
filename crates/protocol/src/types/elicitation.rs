//! Elicitation: questions MCP servers put to the user, the forms they use, and questions asked outside the
//! protocol.

use super::prelude::*;

/// Counts one more question the client puts to the user outside the protocol. Command timeouts stand still
/// while any is open.
#[wire]
pub struct ThreadIncrementElicitationParams {
    pub thread_id: ThreadId,
}

/// Counts one such question less. Fails when none is open.
#[wire]
pub struct ThreadDecrementElicitationParams {
    pub thread_id: ThreadId,
}

#[wire]
pub struct ThreadIncrementElicitationResponse {
    /// Questions open now.
    pub count: u64,
    /// Whether command timeouts stand still.
    pub paused: bool,
}

#[wire]
pub struct ThreadDecrementElicitationResponse {
    /// Questions still open.
    pub count: u64,
    /// Whether command timeouts stand still.
    pub paused: bool,
}

#[wire]
pub enum McpElicitationArrayType {
    Array,
}

/// A field to answer with yes or no.
#[wire(omit_null, closed)]
pub struct McpElicitationBooleanSchema {
    pub r#type: McpElicitationBooleanType,
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Option<bool>,
}

#[wire]
pub enum McpElicitationBooleanType {
    Boolean,
}

/// One choice with its label.
#[wire(closed)]
pub struct McpElicitationConstOption {
    /// The value to send back.
    pub r#const: String,
    /// The label to show.
    pub title: String,
}

/// A field with a list of choices.
#[wire(untagged)]
pub enum McpElicitationEnumSchema {
    McpElicitationSingleSelectEnumSchema(McpElicitationSingleSelectEnumSchema),
    McpElicitationMultiSelectEnumSchema(McpElicitationMultiSelectEnumSchema),
    McpElicitationLegacyTitledEnumSchema(McpElicitationLegacyTitledEnumSchema),
}

/// One choice out of `enum`, with the labels in a second list. Older than the other ways.
#[wire(omit_null, closed)]
pub struct McpElicitationLegacyTitledEnumSchema {
    pub r#type: McpElicitationStringType,
    pub title: Option<String>,
    pub description: Option<String>,
    pub r#enum: Vec<String>,
    /// Labels in the order of `enum`.
    pub enum_names: Option<Vec<String>>,
    pub default: Option<String>,
}

/// A field that takes several of its choices.
#[wire(untagged)]
pub enum McpElicitationMultiSelectEnumSchema {
    McpElicitationUntitledMultiSelectEnumSchema(McpElicitationUntitledMultiSelectEnumSchema),
    McpElicitationTitledMultiSelectEnumSchema(McpElicitationTitledMultiSelectEnumSchema),
}

/// A field for a number.
#[wire(omit_null, closed)]
pub struct McpElicitationNumberSchema {
    pub r#type: McpElicitationNumberType,
    pub title: Option<String>,
    pub description: Option<String>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
    pub default: Option<f64>,
}

#[wire]
pub enum McpElicitationNumberType {
    Number,
    Integer,
}

#[wire]
pub enum McpElicitationObjectType {
    Object,
}

/// One field of a form.
#[wire(untagged)]
pub enum McpElicitationPrimitiveSchema {
    McpElicitationEnumSchema(McpElicitationEnumSchema),
    McpElicitationStringSchema(McpElicitationStringSchema),
    McpElicitationNumberSchema(McpElicitationNumberSchema),
    McpElicitationBooleanSchema(McpElicitationBooleanSchema),
}

/// A form: an object whose properties are its fields.
#[wire(omit_null, closed)]
pub struct McpElicitationSchema {
    /// The JSON Schema dialect.
    #[serde(rename = "$schema")]
    pub dollar_schema: Option<String>,
    pub r#type: McpElicitationObjectType,
    /// The fields by name.
    pub properties: BTreeMap<String, McpElicitationPrimitiveSchema>,
    /// Names of the fields that must be filled in.
    pub required: Option<Vec<String>>,
}

/// A field that takes one of its choices.
#[wire(untagged)]
pub enum McpElicitationSingleSelectEnumSchema {
    McpElicitationUntitledSingleSelectEnumSchema(McpElicitationUntitledSingleSelectEnumSchema),
    McpElicitationTitledSingleSelectEnumSchema(McpElicitationTitledSingleSelectEnumSchema),
}

/// The required format of a text.
#[wire(kebab_case)]
pub enum McpElicitationStringFormat {
    Email,
    Uri,
    Date,
    DateTime,
}

/// A field for a text.
#[wire(omit_null, closed)]
pub struct McpElicitationStringSchema {
    pub r#type: McpElicitationStringType,
    pub title: Option<String>,
    pub description: Option<String>,
    /// In characters.
    pub min_length: Option<u32>,
    /// In characters.
    pub max_length: Option<u32>,
    pub format: Option<McpElicitationStringFormat>,
    pub default: Option<String>,
}

#[wire]
pub enum McpElicitationStringType {
    String,
}

/// Choices with labels.
#[wire(closed)]
pub struct McpElicitationTitledEnumItems {
    pub any_of: Vec<McpElicitationConstOption>,
}

/// Several choices out of a list with labels.
#[wire(omit_null, closed)]
pub struct McpElicitationTitledMultiSelectEnumSchema {
    pub r#type: McpElicitationArrayType,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Fewest choices to make.
    pub min_items: Option<u64>,
    /// Most choices to make.
    pub max_items: Option<u64>,
    pub items: McpElicitationTitledEnumItems,
    pub default: Option<Vec<String>>,
}

/// One choice out of a list with labels.
#[wire(omit_null, closed)]
pub struct McpElicitationTitledSingleSelectEnumSchema {
    pub r#type: McpElicitationStringType,
    pub title: Option<String>,
    pub description: Option<String>,
    pub one_of: Vec<McpElicitationConstOption>,
    pub default: Option<String>,
}

/// Choices without labels.
#[wire(closed)]
pub struct McpElicitationUntitledEnumItems {
    pub r#type: McpElicitationStringType,
    pub r#enum: Vec<String>,
}

/// Several choices out of a list without labels.
#[wire(omit_null, closed)]
pub struct McpElicitationUntitledMultiSelectEnumSchema {
    pub r#type: McpElicitationArrayType,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Fewest choices to make.
    pub min_items: Option<u64>,
    /// Most choices to make.
    pub max_items: Option<u64>,
    pub items: McpElicitationUntitledEnumItems,
    pub default: Option<Vec<String>>,
}

/// One choice out of a list without labels.
#[wire(omit_null, closed)]
pub struct McpElicitationUntitledSingleSelectEnumSchema {
    pub r#type: McpElicitationStringType,
    pub title: Option<String>,
    pub description: Option<String>,
    pub r#enum: Vec<String>,
    pub default: Option<String>,
}

/// The user's reaction to the question.
#[wire]
pub enum McpServerElicitationAction {
    /// Answered it, or agreed to open the page.
    Accept,
    /// Said no.
    Decline,
    /// Closed it without an answer.
    Cancel,
}

/// The user's answer.
#[wire]
pub struct McpServerElicitationRequestResponse {
    pub action: McpServerElicitationAction,
    /// The filled-in form, by field name. Null unless a form was accepted.
    pub content: Option<Value>,
    /// Extra data for the asker. In the approval of a tool call, `persist` asks to remember it.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// From a host alone: who answered.
    #[omit]
    #[experimental("mcpServer/elicitation/request.origin")]
    pub origin: Option<DecisionOrigin>,
}

/// A question an MCP server puts to the user, as a form or as a page to open.
#[wire]
pub struct McpServerElicitationRequestParams {
    pub thread_id: ThreadId,
    /// Unset when the server asks outside any turn.
    pub turn_id: Option<TurnId>,
    /// The same when the request is sent again, also after a restart.
    #[experimental("mcpServer/elicitation/request.operationId")]
    #[omit]
    pub operation_id: Option<OperationId>,
    /// Binds a decision to exactly what was shown.
    #[experimental("mcpServer/elicitation/request.argumentsDigest")]
    #[omit]
    pub arguments_digest: Option<String>,
    /// The MCP server's name in the configuration.
    pub server_name: String,
    #[serde(flatten)]
    pub request: McpServerElicitationRequest,
}

/// How the question is to be asked. `_meta` is extra data from the asker.
#[wire(tag = "mode")]
pub enum McpServerElicitationRequest {
    /// As a form. The approval of an MCP tool call is one without fields.
    Form {
        #[serde(rename = "_meta")]
        meta: Option<Value>,
        /// The question, for display.
        message: String,
        requested_schema: McpElicitationSchema,
    },
    /// As a page the user opens.
    Url {
        #[serde(rename = "_meta")]
        meta: Option<Value>,
        /// The question, for display.
        message: String,
        url: String,
        /// The MCP server's own id for the question.
        elicitation_id: String,
    },
}
