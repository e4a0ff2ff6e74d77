//! A tool as its server describes it.

use std::sync::Arc;

use engine::{Gate, ToolKind, ToolSpec};
use protocol::ToolEffects;
use serde_json::{Value, json};

use crate::schema::parameters;

/// Longer descriptions are cut.
const MAX_DESCRIPTION: usize = 8 * 1024;
const MAX_TOOL_NAME: usize = 256;

/// Parsed once per list. Missing or invalid fields count as unset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerTool {
    /// The server's name for it.
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    parameters: Value,
    hints: Hints,
    /// As the server sent it.
    pub(crate) raw: Value,
    /// The server described it differently before, in this connection.
    pub(crate) is_changed: bool,
}

/// The server's hints about the tool's effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    open_world: Option<bool>,
    idempotent: Option<bool>,
}

impl ServerTool {
    /// `Err` names the tool and says why it cannot be offered.
    pub(crate) fn read(raw: &Value) -> Result<Self, String> {
        let text = |key: &str| raw.get(key).and_then(Value::as_str);
        let name = text("name").filter(|name| !name.is_empty() && name.len() <= MAX_TOOL_NAME);
        let Some(name) = name else { return Err("a tool has no usable name".to_owned()) };
        let annotations = raw.get("annotations");
        let hint = |key: &str| annotations.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
        let parameters = parameters(raw.get("inputSchema"))
            .map_err(|why| format!("tool `{}` is not offered: {why}", name.escape_debug()))?;
        let title = text("title").or_else(|| annotations?.get("title")?.as_str());
        Ok(Self {
            name: name.to_owned(),
            title: title.map(|title| cut(title, MAX_TOOL_NAME)),
            description: cut(text("description").unwrap_or_default(), MAX_DESCRIPTION),
            parameters,
            hints: Hints {
                read_only: hint("readOnlyHint"),
                destructive: hint("destructiveHint"),
                open_world: hint("openWorldHint"),
                idempotent: hint("idempotentHint"),
            },
            raw: raw.clone(),
            is_changed: false,
        })
    }

    /// Whether a client should be asked before it is called.
    pub(crate) fn needs_approval(&self) -> bool {
        let Hints { read_only, destructive, open_world, .. } = self.hints;
        let may_change = read_only != Some(true) && (destructive != Some(false) || open_world != Some(false));
        destructive == Some(true) || may_change || self.is_changed
    }

    pub(crate) fn effects(&self) -> ToolEffects {
        match (self.hints.read_only, self.hints.idempotent) {
            (Some(true), _) => ToolEffects::Readonly,
            (_, Some(true)) => ToolEffects::Idempotent,
            _ => ToolEffects::Once,
        }
    }

    /// The tool as offered to the model.
    pub(crate) fn spec(&self, name: String, plugin: Option<&str>) -> ToolSpec {
        let of_plugin =
            plugin.map(|plugin| format!(" This tool is part of the plugin `{plugin}`.")).unwrap_or_default();
        let json = json!({
            "type": "function",
            "name": name,
            "description": format!("{}{of_plugin}", self.description),
            "strict": false,
            "parameters": self.parameters,
        });
        ToolSpec {
            namespace: None,
            name,
            kind: ToolKind::Builtin,
            json: Some(Arc::new(json)),
            parallel: false,
            gate: Gate::Open,
            effects: self.effects(),
        }
    }
}

pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    text[..text.floor_char_boundary(max_bytes)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(annotations: &Value) -> ServerTool {
        ServerTool::read(&json!({"name": "t", "annotations": annotations})).expect("a tool")
    }

    #[test]
    fn hints_decide_who_is_asked() {
        for (annotations, asks, effects) in [
            (json!({}), true, ToolEffects::Once),
            (json!({"readOnlyHint": true}), false, ToolEffects::Readonly),
            (json!({"readOnlyHint": true, "destructiveHint": true}), true, ToolEffects::Readonly),
            (json!({"destructiveHint": false}), true, ToolEffects::Once),
            (json!({"destructiveHint": false, "openWorldHint": false}), false, ToolEffects::Once),
            (json!({"idempotentHint": true}), true, ToolEffects::Idempotent),
            (json!("nonsense"), true, ToolEffects::Once),
        ] {
            let tool = tool(&annotations);
            assert_eq!((tool.needs_approval(), tool.effects()), (asks, effects), "{annotations}");
        }
        let changed = ServerTool { is_changed: true, ..tool(&json!({"readOnlyHint": true})) };
        assert!(changed.needs_approval());
    }

    #[test]
    fn a_tool_that_cannot_be_offered_is_named() {
        for (raw, expected) in [
            (json!({"name": ""}), "no usable name"),
            (json!({"name": 5}), "no usable name"),
            (json!("x"), "no usable name"),
            (json!({"name": "bad", "inputSchema": "x"}), "tool `bad` is not offered"),
        ] {
            let problem = ServerTool::read(&raw).expect_err("it is wrong");
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn descriptions_are_cut() {
        let tool = ServerTool::read(&json!({"name": "t", "description": "ü".repeat(MAX_DESCRIPTION)}));
        assert!(tool.expect("a tool").description.len() <= MAX_DESCRIPTION);
    }
}
