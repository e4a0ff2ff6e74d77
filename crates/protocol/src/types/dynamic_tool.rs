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
    /// The tool belongs to this group and is called with it. Names are unique within a group.
    #[omit]
    pub namespace: Option<String>,
    /// The purpose of the group. The first tool of a group with this field counts.
    #[omit]
    pub namespace_description: Option<String>,
}

/// Reads tools one by one, or in groups: `{"type": "namespace", "name", "description", "tools": [...]}`.
pub(super) fn read_tools<'de, D>(source: D) -> Result<Option<Vec<DynamicToolSpec>>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let entries = <Option<Vec<Value>> as serde::Deserialize>::deserialize(source)?;
    let read = |entries: Vec<Value>| {
        let mut tools = Vec::new();
        let mut groups = std::collections::BTreeSet::new();
        for (at, entry) in entries.into_iter().enumerate() {
            add_entry(at, entry, &mut groups, &mut tools).map_err(serde::de::Error::custom)?;
        }
        Ok(tools)
    };
    entries.map(read).transpose()
}

fn add_entry(
    at: usize,
    mut entry: Value,
    groups: &mut std::collections::BTreeSet<String>,
    tools: &mut Vec<DynamicToolSpec>,
) -> Result<(), String> {
    let tool = |path: String, entry: Value| match entry.get("type").map(Value::as_str) {
        None | Some(Some("function")) => {
            serde_json::from_value::<DynamicToolSpec>(entry).map_err(|error| format!("{path}: {error}"))
        }
        Some(_) => Err(format!("{path}.type: must be `function`, or `namespace` for a group of tools")),
    };
    if entry.get("type").and_then(Value::as_str) != Some("namespace") {
        tools.push(tool(format!("[{at}]"), entry)?);
        return Ok(());
    }
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let name = text("name").ok_or_else(|| format!("[{at}].name: must be a string"))?;
    let description = text("description").filter(|text| !text.is_empty());
    let Some(Value::Array(inner)) = entry.get_mut("tools").map(Value::take) else {
        return Err(format!("[{at}].tools: must be a list of tools"));
    };
    if inner.is_empty() {
        return Err(format!("dynamic tool namespace must contain at least one tool: {name}"));
    }
    if !groups.insert(name.clone()) {
        return Err(format!("duplicate dynamic tool namespace: {name}"));
    }
    for (within, entry) in inner.into_iter().enumerate() {
        let spec = tool(format!("[{at}].tools[{within}]"), entry)?;
        let (namespace, namespace_description) = (Some(name.clone()), description.clone());
        tools.push(DynamicToolSpec { namespace, namespace_description, ..spec });
    }
    Ok(())
}

/// A tool that a connection runs for a thread.
#[wire(omit_null)]
pub struct ProvidedTool {
    pub name: String,
    /// The group of the tool, if it has one.
    pub namespace: Option<String>,
    /// Digest of the tool's input schema, in a form of the client's own. A connection that gives another one than the
    /// thread was started with is not called.
    pub schema_digest: Option<String>,
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
    /// The group of the tool, if it has one.
    #[omit]
    pub namespace: Option<String>,
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

/// The result of the tool.
#[wire]
pub struct DynamicToolCallResponse {
    pub content_items: Vec<DynamicToolCallOutputContentItem>,
    /// False makes the item `failed`; the model gets the content either way.
    pub success: bool,
}
