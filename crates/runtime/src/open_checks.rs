//! What a request to open a thread may ask for.

use std::collections::HashSet;
use std::path::Path;

use protocol::{ContentItem, DynamicToolSpec, ResponseItem, ThreadForkParams, ThreadId, ThreadStartParams};
use serde_json::Value;

use crate::error::RuntimeError;
use crate::ids::check_thread_id;

/// Names the model provider's own tools would collide with.
const RESERVED_TOOL: &str = "mcp";
const RESERVED_PREFIX: &str = "mcp__";
const SCHEMA_TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

pub(crate) fn check_dynamic_tools(tools: &[DynamicToolSpec]) -> Result<(), RuntimeError> {
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool.name.as_str();
        let problem = if name.trim().is_empty() {
            Some("dynamic tool name must not be empty".to_owned())
        } else if name.trim() != name {
            Some(format!("dynamic tool name has leading/trailing whitespace: {name}"))
        } else if name == RESERVED_TOOL || name.starts_with(RESERVED_PREFIX) {
            Some(format!("dynamic tool name is reserved: {name}"))
        } else if !names.insert(name) {
            Some(format!("duplicate dynamic tool name: {name}"))
        } else {
            schema_problem(&tool.input_schema)
                .map(|problem| format!("dynamic tool input schema is not supported for {name}: {problem}"))
        };
        if let Some(problem) = problem {
            return Err(RuntimeError::DynamicTool(problem));
        }
    }
    Ok(())
}

fn schema_problem(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(_) => part_problem(schema, ""),
        _ => Some("it must be a JSON object".to_owned()),
    }
}

/// Only what no provider would take: everything else is between the host and its model.
fn part_problem(schema: &Value, at: &str) -> Option<String> {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Bool(_) => return None,
        _ => return Some(format!("`{at}` must be a JSON object")),
    };
    let place = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    if let Some(Value::String(name)) = fields.get("type")
        && !SCHEMA_TYPES.contains(&name.as_str())
    {
        return Some(format!("`{}` is `{name}`, which is no type of JSON Schema", place("type")));
    }
    let is_list_of_names =
        |names: &Value| names.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if fields.get("required").is_some_and(|names| !is_list_of_names(names)) {
        return Some(format!("`{}` must be a list of strings", place("required")));
    }
    let properties = match fields.get("properties") {
        Some(Value::Object(properties)) => Some(properties),
        Some(_) => return Some(format!("`{}` must be a JSON object", place("properties"))),
        None => None,
    };
    let properties = properties.into_iter().flatten();
    let inner = properties.map(|(name, part)| (place(&format!("properties.{name}")), part));
    let others = ["items", "additionalProperties"].into_iter();
    let others =
        others.filter_map(|name| Some((place(name), fields.get(name).filter(|part| !part.is_array())?)));
    inner.chain(others).find_map(|(at, part)| part_problem(part, &at))
}

/// What comes with delegation is refused by name until the runtime can do it: half of it would be worse than none.
macro_rules! refuse {
    ($($name:ident($params:ident: &$type:ty) { $($field:literal: $is_asked:expr,)* })*) => { $(
        pub(crate) fn $name($params: &$type) -> Result<(), RuntimeError> {
            $(if $is_asked {
                return Err(RuntimeError::NotSupported { field: $field });
            })*
            Ok(())
        }
    )* };
}

refuse! {
    unsupported_start(params: &ThreadStartParams) {
        "resolvedOperations": params.resolved_operations.is_some(),
        "resumeTurn": params.resume_turn,
    }
    unsupported_fork(params: &ThreadForkParams) {
        "initialItems": params.initial_items.is_some(),
        "turnHistory": params.turn_history.is_some(),
        "initialItemsRef": params.initial_items_ref.is_some(),
        "resolvedOperations": params.resolved_operations.is_some(),
        "resumeTurn": params.resume_turn,
    }
}

/// Records are named after their threads.
pub(crate) fn id_of_path(path: &str) -> Result<ThreadId, RuntimeError> {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    check_thread_id(&ThreadId::new(stem)).map_err(|_| RuntimeError::UnreadableRecord {
        path: path.to_owned(),
        problem: "it is not named after a thread; give the path that thread/read shows".to_owned(),
    })
}

/// What a list shows of a history that came without turns.
pub(crate) fn first_words(items: &[ResponseItem]) -> String {
    let said = items.iter().find_map(|item| match item {
        ResponseItem::Message { content, .. } if engine::is_user_turn(item) => {
            content.iter().find_map(|part| match part {
                ContentItem::InputText { text } => Some(text.clone()),
                _ => None,
            })
        }
        _ => None,
    });
    said.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, input_schema: Value) -> DynamicToolSpec {
        DynamicToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema,
            defer_loading: false,
        }
    }

    #[test]
    fn dynamic_tools_are_checked_by_name_and_schema() {
        let schema = || json!({ "type": "object" });
        let cases = [
            (vec![tool("lookup", schema())], None),
            (vec![tool("has space", json!({}))], None),
            (vec![tool("", schema())], Some("dynamic tool name must not be empty")),
            (vec![tool(" a", schema())], Some("dynamic tool name has leading/trailing whitespace:  a")),
            (vec![tool("mcp", schema())], Some("dynamic tool name is reserved: mcp")),
            (vec![tool("mcp__x", schema())], Some("dynamic tool name is reserved: mcp__x")),
            (vec![tool("a", schema()), tool("a", schema())], Some("duplicate dynamic tool name: a")),
            (vec![tool("a", json!(5))], Some("dynamic tool input schema is not supported for a:")),
        ];
        for (tools, expected) in cases {
            let found = check_dynamic_tools(&tools).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(found, None),
                Some(expected) => {
                    assert!(found.as_ref().is_some_and(|text| text.starts_with(expected)), "{found:?}");
                }
            }
        }
    }

    #[test]
    fn a_schema_that_no_provider_takes_is_refused_by_its_field() {
        let object = |properties: Value| json!({ "type": "object", "properties": properties });
        let cases = [
            (object(json!({ "a": { "type": "text" } })), "`properties.a.type` is `text`, "),
            (
                object(json!({ "a": object(json!({ "b": 5 })) })),
                "`properties.a.properties.b` must be a JSON object",
            ),
            (
                object(json!({ "a": { "type": "array", "items": { "type": "x" } } })),
                "`properties.a.items.type` is `x`",
            ),
            (object(json!([])), "`properties` must be a JSON object"),
            (json!({ "type": "object", "required": "a" }), "`required` must be a list of strings"),
            (json!({ "additionalProperties": { "type": "x" } }), "`additionalProperties.type` is `x`"),
        ];
        for (schema, expected) in cases {
            let found = check_dynamic_tools(&[tool("a", schema)]).err().map(|error| error.to_string());
            let expected = format!("dynamic tool input schema is not supported for a: {expected}");
            assert!(found.as_ref().is_some_and(|text| text.starts_with(&expected)), "{found:?} {expected}");
        }
        for schema in [
            json!({}),
            json!({ "type": ["string", "null"] }),
            json!({ "$ref": "#/x" }),
            object(json!({ "a": true, "b": { "anyOf": [{}] }, "c": { "type": "null" } })),
            json!({ "additionalProperties": false, "items": [{}] }),
        ] {
            assert!(check_dynamic_tools(&[tool("a", schema.clone())]).is_ok(), "{schema}");
        }
    }

    #[test]
    fn a_path_says_whose_record_it_is() {
        let id = "0198f0a0-0000-7000-8000-00000000abcd";
        assert_eq!(id_of_path(&format!("/state/threads/{id}.jsonl")).ok(), Some(ThreadId::new(id)));
        assert!(id_of_path("/etc/passwd").is_err());
    }
}
