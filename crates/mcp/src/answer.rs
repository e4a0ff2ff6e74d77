//! From a tool's result to the model's output and the clients' item.

use protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem, McpToolCallResult};
use serde_json::{Value, json};

use crate::McpError;
use crate::tool::cut;

/// Limit of one result. The rest is cut, with a note for the model.
const MAX_RESULT: usize = 4 * 1024 * 1024;

/// A result within the time limit.
#[derive(Debug, PartialEq)]
pub(crate) struct ToolAnswer {
    pub(crate) output: FunctionCallOutputBody,
    pub(crate) result: McpToolCallResult,
    pub(crate) is_error: bool,
}

impl ToolAnswer {
    pub(crate) fn read(mut answer: Value, takes_images: bool) -> Result<Self, McpError> {
        if !answer.is_object() {
            return Err(McpError::Unusable("the result is not an object".to_owned()));
        }
        let is_error = answer.get("isError").and_then(Value::as_bool).unwrap_or(false);
        let structured = answer.get_mut("structuredContent").map(Value::take);
        let structured = structured.filter(|value| !value.is_null());
        let content = match answer.get_mut("content").map(Value::take) {
            Some(Value::Array(blocks)) => bounded(blocks),
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return Err(McpError::Unusable("its content is not a list".to_owned())),
        };
        let structured_content = structured.filter(|value| value.to_string().len() <= MAX_RESULT);
        let output = output(&content, structured_content.as_ref(), takes_images);
        let output = if is_error { marked(output) } else { output };
        Ok(Self { output, result: McpToolCallResult { content, structured_content }, is_error })
    }
}

/// The prefix of a failed tool's output. Servers flag failures beside the text, and the history contains only text:
/// models and wires recognise failures by this prefix.
const FAILED: &str = "the tool failed: ";

fn marked(output: FunctionCallOutputBody) -> FunctionCallOutputBody {
    match output {
        FunctionCallOutputBody::Text(text) => FunctionCallOutputBody::Text(format!("{FAILED}{text}")),
        FunctionCallOutputBody::Content(mut parts) => {
            let text = FAILED.trim_end().to_owned();
            parts.insert(0, FunctionCallOutputContentItem::InputText { text });
            FunctionCallOutputBody::Content(parts)
        }
    }
}

fn output(content: &[Value], structured: Option<&Value>, takes_images: bool) -> FunctionCallOutputBody {
    if let Some(structured) = structured {
        return FunctionCallOutputBody::Text(structured.to_string());
    }
    if !content.iter().any(is_image) {
        return FunctionCallOutputBody::Text(Value::from(content.to_vec()).to_string());
    }
    let text = |text: String| FunctionCallOutputContentItem::InputText { text };
    let part = |block: &Value| match image_url(block) {
        Some(image_url) if takes_images => {
            FunctionCallOutputContentItem::InputImage { image_url, detail: None }
        }
        Some(_) => text("<image content omitted because you do not support image input>".to_owned()),
        None => match block.get("text").and_then(Value::as_str) {
            Some(words) => text(words.to_owned()),
            None => text(block.to_string()),
        },
    };
    FunctionCallOutputBody::Content(content.iter().map(part).collect())
}

fn is_image(block: &Value) -> bool {
    block.get("type").and_then(Value::as_str) == Some("image")
}

fn image_url(block: &Value) -> Option<String> {
    let data = block.get("data").and_then(Value::as_str).filter(|_| is_image(block))?;
    if data.starts_with("data:") {
        return Some(data.to_owned());
    }
    let mime = block.get("mimeType").and_then(Value::as_str).unwrap_or("application/octet-stream");
    Some(format!("data:{mime};base64,{data}"))
}

/// As many blocks as fit. A text over the limit is cut; other blocks are left out.
fn bounded(blocks: Vec<Value>) -> Vec<Value> {
    let mut left = MAX_RESULT;
    let mut kept = Vec::new();
    let mut omitted = 0;
    for mut block in blocks {
        let size = block.to_string().len();
        if size <= left {
            left -= size;
            kept.push(block);
            continue;
        }
        match block.get("text").and_then(Value::as_str).map(|text| cut(text, left)) {
            Some(text) if left > 0 => {
                omitted += size - text.len();
                block["text"] = json!(text);
                kept.push(block);
            }
            _ => omitted += size,
        }
        left = 0;
    }
    if omitted > 0 {
        kept.push(json!({"type": "text", "text": format!("[{omitted} bytes of the result were left out]")}));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn text(answer: Value, expected: &str) {
        let answer = ToolAnswer::read(answer, true).expect("it is an answer");
        assert_eq!(answer.output, FunctionCallOutputBody::Text(expected.to_owned()));
    }

    #[test]
    fn what_the_model_reads() {
        let block = json!({"type": "text", "text": "hi"});
        text(json!({"content": [block]}), r#"[{"type":"text","text":"hi"}]"#);
        text(json!({"content": [block], "structuredContent": {"a": 1}}), r#"{"a":1}"#);
        text(json!({"content": [block], "structuredContent": null}), r#"[{"type":"text","text":"hi"}]"#);
        text(json!({}), "[]");
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let with_image = json!({"content": [block, image, {"type": "resource_link", "uri": "u"}]});
        let parts = |answer: ToolAnswer| serde_json::to_value(answer.output).expect("JSON");
        let shown = ToolAnswer::read(with_image.clone(), true).expect("it is an answer");
        assert_eq!(
            parts(shown),
            json!([{"type": "input_text", "text": "hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                {"type": "input_text", "text": r#"{"type":"resource_link","uri":"u"}"#}])
        );
        let blind = ToolAnswer::read(with_image, false).expect("it is an answer");
        assert!(parts(blind)[1]["text"].as_str().is_some_and(|text| text.contains("omitted")));
    }

    #[test]
    fn a_tool_that_failed_says_so_first() {
        let block = json!({"type": "text", "text": "no such row"});
        text(
            json!({"content": [block], "isError": true}),
            r#"the tool failed: [{"type":"text","text":"no such row"}]"#,
        );
        text(json!({"content": [block], "isError": false}), r#"[{"type":"text","text":"no such row"}]"#);
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        let failed = ToolAnswer::read(json!({"content": [image], "isError": true}), true);
        let FunctionCallOutputBody::Content(parts) = failed.expect("it is an answer").output else {
            panic!("an image")
        };
        let first = FunctionCallOutputContentItem::InputText { text: "the tool failed:".to_owned() };
        assert_eq!((parts.len(), &parts[0]), (2, &first));
    }

    #[test]
    fn what_is_no_result_is_an_error() {
        for bad in [json!("x"), json!(null), json!({"content": "x"})] {
            assert!(ToolAnswer::read(bad.clone(), true).is_err(), "{bad}");
        }
    }

    #[test]
    fn large_results_are_cut() {
        let large = json!({"content": [{"type": "text", "text": "x".repeat(5 * 1024 * 1024)},
            {"type": "image", "data": "x".repeat(1024), "mimeType": "image/png"}],
            "structuredContent": {"a": "x".repeat(5 * 1024 * 1024)}});
        let answer = ToolAnswer::read(large, true).expect("it is an answer");
        assert_eq!(answer.result.structured_content, None);
        assert_eq!(answer.result.content.len(), 2);
        let FunctionCallOutputBody::Text(text) = answer.output else { panic!("no image is left") };
        assert!(text.len() < MAX_RESULT + 200 && text.contains("bytes of the result were left out"));
    }
}
