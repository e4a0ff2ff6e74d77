//! One step of a script: what it expects of a request and what it answers.

use std::time::Duration;

use model::RequestBody;
use serde::Deserialize;
use serde_json::Value;

use super::conversation::Conversation;
use super::emit::{EmittedUsage, Emitter};
use super::reply::{OfflineReply, Outcome};

/// As it is written. Exactly one kind of answer: `events`, `fail`, or `text` and calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScriptStep {
    #[serde(default)]
    expect: Expect,
    /// Raw events, sent as they are.
    #[serde(default)]
    events: Option<Vec<Value>>,
    /// An HTTP answer that is not a success.
    #[serde(default)]
    fail: Option<Fail>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    call: Option<ScriptedCall>,
    /// Several calls in one response.
    #[serde(default)]
    calls: Vec<ScriptedCall>,
    /// Instead of an estimate.
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    delay_ms: u64,
    /// Leaves the end of the response out and keeps the connection open.
    #[serde(default)]
    hang: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Expect {
    last_user_contains: Option<String>,
    last_output_contains: Option<String>,
    tool_offered: Option<String>,
    tool_not_offered: Option<String>,
    model: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Fail {
    status: u16,
    #[serde(default)]
    body: FailBody,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum FailBody {
    Text(String),
    Json(Value),
}

impl Default for FailBody {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    /// The group of the tool.
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default)]
    call_id: Option<String>,
    /// An object, or text that is sent as it is.
    #[serde(default)]
    arguments: Option<Value>,
    /// Makes it a call of a custom tool.
    #[serde(default)]
    input: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
}

impl ScriptStep {
    /// The problem with the step itself, if there is one.
    pub(super) fn complaint(&self) -> Option<&'static str> {
        let says = self.text.is_some() || self.call.is_some() || !self.calls.is_empty();
        let kinds = [self.events.is_some(), self.fail.is_some(), says].into_iter().filter(|is| *is).count();
        let status = self.fail.as_ref().map_or(400, |fail| fail.status);
        let calls = || self.call.iter().chain(&self.calls);
        if kinds == 0 {
            Some("answers nothing: give it `text`, `call`, `calls`, `events` or `fail`")
        } else if kinds > 1 {
            Some("answers in several ways: `events`, `fail`, and `text` or calls exclude each other")
        } else if !(300..600).contains(&status) {
            Some("fails with a status that is no failure: use 300 to 599")
        } else if self.usage.is_some() && !says {
            Some("has `usage` without `text` or calls to go with it")
        } else if self.hang && self.fail.is_some() {
            Some("fails and hangs: a failure always ends")
        } else if calls().any(|call| call.arguments.is_some() && call.input.is_some()) {
            Some(
                "has a call with both `arguments` and `input`: a custom tool takes `input`, a function `arguments`",
            )
        } else {
            None
        }
    }

    /// How the request differs from what was expected.
    pub(super) fn mismatch(&self, body: &RequestBody) -> Option<String> {
        let Expect { last_user_contains, last_output_contains, tool_offered, tool_not_offered, model } =
            &self.expect;
        let conversation = Conversation::read(body);
        let lacks = |what: &str, wanted: &Option<String>, found: &str| {
            let wanted = wanted.as_ref().filter(|wanted| !found.contains(wanted.as_str()))?;
            Some(format!("the last {what} does not contain {wanted:?}; it is {found:?}"))
        };
        let names: Vec<&str> = body.tools.iter().filter_map(|tool| tool.get("name")?.as_str()).collect();
        let last_output = conversation.results.last().map_or("", String::as_str);
        lacks("user message", last_user_contains, conversation.request())
            .or_else(|| lacks("tool output", last_output_contains, last_output))
            .or_else(|| {
                let wanted = tool_offered.as_ref().filter(|wanted| !names.contains(&wanted.as_str()))?;
                Some(format!("the tool {wanted} is not offered; offered: {}", names.join(", ")))
            })
            .or_else(|| {
                let unwanted = tool_not_offered.as_ref().filter(|name| names.contains(&name.as_str()))?;
                Some(format!("the tool {unwanted} is offered"))
            })
            .or_else(|| {
                let wanted = model.as_ref().filter(|wanted| **wanted != body.model)?;
                Some(format!("the model is {}, not {wanted}", body.model))
            })
    }

    pub(super) fn reply(&self, body: &RequestBody) -> OfflineReply {
        let outcome = match (&self.events, &self.fail) {
            (Some(events), _) => Outcome::Events {
                events: events.iter().map(Value::to_string).collect(),
                stays_open: self.hang,
            },
            (None, Some(Fail { status, body })) => {
                let body = match body {
                    FailBody::Text(text) => text.clone(),
                    FailBody::Json(value) => value.to_string(),
                };
                Outcome::Refused { status: *status, body }
            }
            (None, None) => Outcome::Events { events: self.said(body), stays_open: self.hang },
        };
        OfflineReply { delay: Duration::from_millis(self.delay_ms), outcome }
    }

    fn said(&self, body: &RequestBody) -> Vec<String> {
        let mut emitter = Emitter::new(body);
        if let Some(text) = &self.text {
            emitter.message(text);
        }
        for ScriptedCall { name, namespace, call_id, arguments, input } in self.call.iter().chain(&self.calls)
        {
            let arguments = match arguments {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => "{}".to_owned(),
            };
            match input {
                Some(input) => emitter.custom_call(name, input, call_id.as_deref()),
                None => {
                    let tool = (namespace.as_deref(), name.as_str());
                    emitter.function_call(tool, &arguments, call_id.as_deref());
                }
            }
        }
        let usage = self
            .usage
            .map(|tokens| EmittedUsage { input: tokens.input_tokens, output: tokens.output_tokens });
        if self.hang { emitter.unfinished() } else { emitter.completed(usage) }
    }
}
