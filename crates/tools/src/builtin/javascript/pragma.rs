//! The first line of a script with its options.

use std::time::Duration;

use serde::Deserialize;

use crate::ToolError;

const REPL: &str = "// codex-js-repl:";
const SCRIPT: &str = "// @exec:";
const REPL_LIMIT: Duration = Duration::from_secs(30);
/// Limit of a cell's requested time.
const LONGEST_LIMIT: Duration = Duration::from_secs(3_600);

fn failed<T>(text: impl Into<String>) -> Result<T, ToolError> {
    Err(ToolError::Failed(text.into()))
}

/// The code of a cell, and its time limit.
pub(super) fn repl_cell(input: &str) -> Result<(&str, Duration), ToolError> {
    let (pragma, code) = split(input, REPL);
    if code.trim().is_empty() {
        return failed(
            "js_repl expects raw JavaScript tool input (non-empty). Provide JS source text, optionally with \
             first-line `// codex-js-repl: ...`.",
        );
    }
    let begin = code.trim_start();
    if begin.starts_with("```") {
        return failed(
            "js_repl expects raw JavaScript source, not markdown code fences. Resend plain JS only (optional first \
             line `// codex-js-repl: ...`).",
        );
    }
    let is_json = |first: char| {
        begin.starts_with(first) && serde_json::from_str::<serde::de::IgnoredAny>(begin.trim_end()).is_ok()
    };
    if is_json('{') || is_json('"') {
        return failed(
            "js_repl is a freeform tool and expects raw JavaScript source. Resend plain JS only (optional first \
             line `// codex-js-repl: ...`); do not send JSON (`{\"code\":...}`), quoted code, or markdown fences.",
        );
    }
    let mut limit = REPL_LIMIT;
    for setting in pragma.unwrap_or_default().split_whitespace() {
        match setting.split_once('=') {
            Some(("timeout_ms", value)) => match value.parse::<u64>() {
                Ok(0) => return failed("js_repl pragma timeout_ms must be greater than zero"),
                Ok(ms) => limit = Duration::from_millis(ms).min(LONGEST_LIMIT),
                Err(_) => {
                    return failed(format!("js_repl pragma timeout_ms must be an integer; got `{value}`"));
                }
            },
            Some((name, _)) => {
                return failed(format!("js_repl pragma only supports timeout_ms; got `{name}`"));
            }
            None => {
                return failed(format!(
                    "js_repl pragma expects space-separated key=value pairs; got `{setting}`"
                ));
            }
        }
    }
    Ok((code, limit))
}

/// The options of a script.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptOptions {
    pub(super) yield_time_ms: Option<u64>,
    pub(super) max_output_tokens: Option<u64>,
}

pub(super) fn script(input: &str) -> Result<(&str, ScriptOptions), ToolError> {
    let (pragma, code) = split(input, SCRIPT);
    if code.trim().is_empty() {
        return failed(
            "exec expects raw JavaScript source text (non-empty). Provide JS only, optionally with first-line \
             `// @exec: {\"yield_time_ms\": 10000, \"max_output_tokens\": 1000}`.",
        );
    }
    let Some(pragma) = pragma else { return Ok((code, ScriptOptions::default())) };
    let fields = match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(pragma) {
        Ok(fields) => fields,
        Err(error) => return failed(format!("exec pragma must be a JSON object: {error}")),
    };
    let known = ["yield_time_ms", "max_output_tokens"];
    if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
        return failed(format!(
            "exec pragma only supports `yield_time_ms` and `max_output_tokens`; got `{name}`"
        ));
    }
    match serde_json::from_value(fields.into()) {
        Ok(options) => Ok((code, options)),
        Err(error) => failed(format!("exec pragma takes whole numbers: {error}")),
    }
}

/// The options in a first line with this prefix, and the code after it.
fn split<'a>(input: &'a str, begin: &str) -> (Option<&'a str>, &'a str) {
    let (first, rest) = input.split_once('\n').unwrap_or((input, ""));
    match first.trim_start().strip_prefix(begin) {
        Some(pragma) => (Some(pragma.trim()), rest),
        None => (None, input),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_raw_javascript_with_a_limit() {
        for (input, expected) in [
            ("1 + 1", Ok(("1 + 1", 30_000))),
            ("// codex-js-repl: timeout_ms=300\nlet a", Ok(("let a", 300))),
            ("// codex-js-repl:\nlet a", Ok(("let a", 30_000))),
            ("{ let a = 1; }", Ok(("{ let a = 1; }", 30_000))),
            ("// codex-js-repl: timeout_ms=99999999999\n1", Ok(("1", 3_600_000))),
            ("", Err("js_repl expects raw JavaScript tool input (non-empty)")),
            ("// codex-js-repl: timeout_ms=1", Err("js_repl expects raw JavaScript tool input (non-empty)")),
            ("{\"code\": \"1\"}", Err("js_repl is a freeform tool")),
            ("\"quoted\"", Err("js_repl is a freeform tool")),
            ("```js\n1\n```", Err("js_repl expects raw JavaScript source, not markdown code fences")),
            (
                "// codex-js-repl: timeout_ms=abc\n1",
                Err("js_repl pragma timeout_ms must be an integer; got `abc`"),
            ),
            ("// codex-js-repl: timeout_ms=0\n1", Err("js_repl pragma timeout_ms must be greater than zero")),
            ("// codex-js-repl: foo=1\n1", Err("js_repl pragma only supports timeout_ms; got `foo`")),
            (
                "// codex-js-repl: foo\n1",
                Err("js_repl pragma expects space-separated key=value pairs; got `foo`"),
            ),
        ] {
            match (repl_cell(input), expected) {
                (Ok((code, limit)), Ok((expected, ms))) => {
                    assert_eq!((code, limit), (expected, Duration::from_millis(ms)));
                }
                (Err(error), Err(expected)) => assert!(error.to_string().starts_with(expected), "{error}"),
                (found, _) => panic!("{input}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_script_sets_its_wait_and_output_limit() {
        let (code, options) =
            script("// @exec: {\"yield_time_ms\": 300, \"max_output_tokens\": 7}\nx()").expect("fine");
        assert_eq!((code, options.yield_time_ms, options.max_output_tokens), ("x()", Some(300), Some(7)));
        assert_eq!(script("x()").expect("fine").0, "x()");
        for (input, expected) in [
            (" ", "exec expects raw JavaScript source text (non-empty)."),
            (
                "// @exec: {\"foo\":1}\n1",
                "exec pragma only supports `yield_time_ms` and `max_output_tokens`; got `foo`",
            ),
            ("// @exec: 5\n1", "exec pragma must be a JSON object"),
            ("// @exec: {\"yield_time_ms\":\"a\"}\n1", "exec pragma takes whole numbers"),
        ] {
            let error = script(input).expect_err("a problem").to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
