//! Tools that a client registers and runs itself.

use std::collections::HashSet;

use protocol::DynamicToolSpec;
use serde_json::Value;

/// A name that collides with the model provider's own tools.
const RESERVED_TOOL: &str = "mcp";
const RESERVED_PREFIX: &str = "mcp__";
const PROVIDER_NAMESPACES: &[&str] = &[
    "api_tool",
    "browser",
    "computer",
    "container",
    "file_search",
    "functions",
    "image_gen",
    "multi_tool_use",
    "python",
    "submodel_delegator",
    "terminal",
    "tool_search",
    "web",
];
const LONGEST_NAMESPACE: usize = 64;
const SCHEMA_TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// `Err` names the tool and what is wrong with it.
pub fn check_dynamic_tools(tools: &[DynamicToolSpec]) -> Result<(), String> {
    let mut names = HashSet::new();
    for tool in tools {
        let (name, namespace) = (tool.name.as_str(), tool.namespace.as_deref());
        let problem = if let Some(problem) = namespace.and_then(namespace_problem) {
            Some(problem)
        } else if name.trim().is_empty() {
            Some("dynamic tool name must not be empty".to_owned())
        } else if name.trim() != name {
            Some(format!("dynamic tool name has leading/trailing whitespace: {name}"))
        } else if name == RESERVED_TOOL || name.starts_with(RESERVED_PREFIX) {
            Some(format!("dynamic tool name is reserved: {name}"))
        } else if !names.insert((namespace, name)) {
            Some(match namespace {
                Some(namespace) => format!("duplicate dynamic tool name in namespace {namespace}: {name}"),
                None => format!("duplicate dynamic tool name: {name}"),
            })
        } else {
            schema_problem(&tool.input_schema)
                .map(|problem| format!("dynamic tool input schema is not supported for {name}: {problem}"))
        };
        if let Some(problem) = problem {
            return Err(problem);
        }
    }
    Ok(())
}

/// Groups need names that every provider accepts, and that differ from the provider's own groups.
fn namespace_problem(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.trim().is_empty() {
        Some("dynamic tool namespace must not be empty".to_owned())
    } else if name.trim() != name {
        Some(format!("dynamic tool namespace has leading/trailing whitespace: {name}"))
    } else if name == RESERVED_TOOL || name.starts_with(RESERVED_PREFIX) {
        Some(format!("dynamic tool namespace is reserved: {name}"))
    } else if PROVIDER_NAMESPACES.contains(&name) {
        Some(format!("dynamic tool namespace collides with a reserved Responses API namespace: {name}"))
    } else if !name.chars().all(is_plain) {
        Some(format!("dynamic tool namespace must match ^[a-zA-Z0-9_-]+$ to match Responses API: {name}"))
    } else if name.len() > LONGEST_NAMESPACE {
        Some(format!(
            "dynamic tool namespace must be at most {LONGEST_NAMESPACE} characters to match Responses API: {name}"
        ))
    } else {
        None
    }
}

fn schema_problem(schema: &Value) -> Option<String> {
    match schema {
        Value::Object(_) => part_problem(schema, ""),
        _ => Some("it must be a JSON object".to_owned()),
    }
}

/// Refuses only what no provider accepts: everything else is up to the host and its model.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, input_schema: Value) -> DynamicToolSpec {
        DynamicToolSpec {
            name: name.to_owned(),
            description: String::new(),
            input_schema,
            defer_loading: false,
            namespace: None,
            namespace_description: None,
        }
    }

    #[test]
    fn groups_are_checked_by_name_and_hold_names_of_their_own() {
        let inside = |namespace: &str, name: &str| DynamicToolSpec {
            namespace: Some(namespace.to_owned()),
            ..tool(name, json!({}))
        };
        let long = "x".repeat(65);
        for (namespace, expected) in [
            ("", "dynamic tool namespace must not be empty"),
            (" x", "dynamic tool namespace has leading/trailing whitespace:  x"),
            ("mcp__a", "dynamic tool namespace is reserved: mcp__a"),
            (
                "functions",
                "dynamic tool namespace collides with a reserved Responses API namespace: functions",
            ),
            ("a.b", "dynamic tool namespace must match ^[a-zA-Z0-9_-]+$ to match Responses API: a.b"),
            (long.as_str(), "dynamic tool namespace must be at most 64 characters"),
        ] {
            let found = check_dynamic_tools(&[inside(namespace, "a")]).expect_err("a problem");
            assert!(found.starts_with(expected), "{found}");
        }
        let same = [inside("crm", "a"), inside("crm", "a")];
        let problem = "duplicate dynamic tool name in namespace crm: a".to_owned();
        assert_eq!(check_dynamic_tools(&same), Err(problem));
        let apart = [inside("crm", "a"), inside("erp", "a"), tool("a", json!({}))];
        assert_eq!(check_dynamic_tools(&apart), Ok(()));
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
            let found = check_dynamic_tools(&tools).err();
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
            let found = check_dynamic_tools(&[tool("a", schema)]).err();
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
}
