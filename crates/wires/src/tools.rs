//! The tools of a request, as functions that take JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{ids, schema};

/// A tool for Chat and Messages.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) description: String,
    /// A schema with an object at its root.
    pub(crate) parameters: Value,
}

/// The tool of a wire name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolTarget {
    Function {
        namespace: Option<String>,
        name: String,
    },
    /// Takes plain text.
    Freeform {
        name: String,
    },
    /// Not a tool: a structured answer on a wire with calls only.
    StructuredAnswer,
}

/// From wire names to the offered tools.
pub(crate) type Targets = Arc<BTreeMap<String, ToolTarget>>;

/// The functions and the tools of their names. The error names a tool that only its own provider can run.
pub(crate) fn functions(tools: &[Arc<Value>]) -> Result<(Vec<Function>, Targets), String> {
    let mut functions = Vec::new();
    let mut targets = BTreeMap::new();
    for tool in tools {
        add(tool, None, &mut functions, &mut targets)?;
    }
    Ok((functions, Arc::new(targets)))
}

fn add(
    tool: &Value,
    namespace: Option<&str>,
    functions: &mut Vec<Function>,
    targets: &mut BTreeMap<String, ToolTarget>,
) -> Result<(), String> {
    let name = tool["name"].as_str().unwrap_or_default();
    let description = tool["description"].as_str().unwrap_or_default().to_owned();
    let wire_name = ids::tool_name(namespace, name);
    let (target, description, parameters) = match tool["type"].as_str() {
        Some("function") | None => {
            let target =
                ToolTarget::Function { namespace: namespace.map(str::to_owned), name: name.to_owned() };
            (target, description, schema::with_object_root(&tool["parameters"]))
        }
        Some("custom") => {
            let description = format!("{description}{}", grammar(tool));
            (ToolTarget::Freeform { name: name.to_owned() }, description, freeform_schema())
        }
        Some("namespace") => {
            let inner = tool["tools"].as_array().map_or(&[][..], Vec::as_slice);
            return inner.iter().try_for_each(|tool| add(tool, Some(name), functions, targets));
        }
        Some(hosted) => return Err(format!("the hosted tool `{hosted}`")),
    };
    // A name that is offered twice is one tool: the first.
    if targets.insert(wire_name.clone(), target).is_none() {
        functions.push(Function { name: wire_name, description, parameters });
    }
    Ok(())
}

/// Offers a structured answer as a tool that must be called.
pub(crate) fn with_structured_answer(
    functions: &mut Vec<Function>,
    targets: Targets,
    answer: &Value,
) -> Targets {
    let mut targets = Arc::unwrap_or_clone(targets);
    let name = (1..).map(|n| format!("final_answer_{n}")).find(|name| !targets.contains_key(name));
    let name = name.unwrap_or_default();
    functions.push(Function {
        name: name.clone(),
        description: "Gives the final answer of the task. Call it once, when everything else is done."
            .to_owned(),
        parameters: schema::as_property(answer, STRUCTURED_ANSWER),
    });
    targets.insert(name, ToolTarget::StructuredAnswer);
    Arc::new(targets)
}

const STRUCTURED_ANSWER: &str = "answer";

/// The text of an answer that came as a call.
pub(crate) fn structured_answer(targets: &Targets, wire_name: &str, arguments: &str) -> Option<String> {
    if targets.get(wire_name) != Some(&ToolTarget::StructuredAnswer) {
        return None;
    }
    let answer = serde_json::from_str::<Map<String, Value>>(arguments).ok();
    let answer = answer.and_then(|mut fields| fields.remove(STRUCTURED_ANSWER));
    Some(answer.map_or_else(|| arguments.to_owned(), |answer| answer.to_string()))
}

fn freeform_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "input": { "type": "string", "description": "The whole input of the tool, as plain text." } },
        "required": ["input"],
        "additionalProperties": false,
    })
}

/// A grammar that the provider cannot enforce is added to the description.
fn grammar(tool: &Value) -> String {
    match tool["format"]["definition"].as_str() {
        Some(grammar) => format!("\n\nThe input must follow this grammar:\n{grammar}"),
        None => String::new(),
    }
}

/// The item that a finished call becomes.
pub(crate) fn call_item(
    targets: &Targets,
    wire_name: &str,
    call_id: String,
    arguments: String,
) -> model::protocol::ResponseItem {
    use model::protocol::ResponseItem;
    match targets.get(wire_name) {
        Some(ToolTarget::Freeform { name }) => ResponseItem::CustomToolCall {
            id: None,
            status: None,
            call_id,
            name: name.clone(),
            input: freeform_input(arguments),
        },
        Some(ToolTarget::Function { namespace, name }) => ResponseItem::FunctionCall {
            id: None,
            name: name.clone(),
            namespace: namespace.clone(),
            arguments,
            call_id,
        },
        // A tool that was not offered: the engine reports this to the model.
        Some(ToolTarget::StructuredAnswer) | None => ResponseItem::FunctionCall {
            id: None,
            name: wire_name.to_owned(),
            namespace: None,
            arguments,
            call_id,
        },
    }
}

/// Models that ignore the schema send the plain text, or use another name.
fn freeform_input(arguments: String) -> String {
    match serde_json::from_str::<Map<String, Value>>(&arguments) {
        Ok(mut object) => match object.remove("input") {
            Some(Value::String(input)) => input,
            _ if object.len() == 1 => match object.into_iter().next() {
                Some((_, Value::String(input))) => input,
                _ => arguments,
            },
            _ => arguments,
        },
        Err(_) => arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::protocol::ResponseItem;

    #[test]
    fn tools_of_every_kind_become_functions_and_are_found_again() {
        let tools = [
            json!({"type": "function", "name": "read", "description": "Reads.", "parameters": {"type": "object"}}),
            json!({"type": "custom", "name": "apply_patch", "description": "Patches.",
                   "format": {"type": "grammar", "syntax": "lark", "definition": "start: x"}}),
            json!({"type": "namespace", "name": "mcp.git", "tools": [{"type": "function", "name": "log"}]}),
        ];
        let (functions, targets) = functions(&tools.map(Arc::new)).unwrap();
        let names = Vec::from_iter(functions.iter().map(|function| function.name.as_str()));
        assert_eq!(names[..2], ["read", "apply_patch"]);
        assert!(functions[1].description.contains("start: x"));
        let arguments = json!({"input": "*** Begin"}).to_string();
        let ResponseItem::CustomToolCall { input, .. } =
            call_item(&targets, "apply_patch", "c".into(), arguments)
        else {
            panic!("not freeform")
        };
        assert_eq!(input, "*** Begin");
        let ResponseItem::FunctionCall { namespace, name, .. } =
            call_item(&targets, names[2], "c".into(), "{}".into())
        else {
            panic!("no function")
        };
        assert_eq!((namespace.as_deref(), name.as_str()), (Some("mcp.git"), "log"));
    }

    #[test]
    fn a_hosted_tool_is_named() {
        let problem = functions(&[Arc::new(json!({"type": "web_search"}))]).unwrap_err();
        assert_eq!(problem, "the hosted tool `web_search`");
    }

    #[test]
    fn freeform_input_is_found_however_it_is_written() {
        for (arguments, expected) in [
            (r#"{"input":"a"}"#, "a"),
            (r#"{"patch":"b"}"#, "b"),
            ("*** Begin Patch", "*** Begin Patch"),
            (r#"{"input":1,"x":2}"#, r#"{"input":1,"x":2}"#),
        ] {
            assert_eq!(freeform_input(arguments.to_owned()), expected);
        }
    }
}
