//! From a prepared request to the message for a host.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine::digest_of;
use model::{Metadata, ModelFailure, OutputFormat, PreparedRequest, Purpose, RequestBody};
use protocol::{
    ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, ModelCapabilities, ModelRequestHint,
    ModelRequestId, ModelRequestParams, ModelRequestPurpose, Raw, ReasoningReplay, ResponseItem, SegmentId,
};

use super::failure;
use super::session::{HostSession, RequestLane};

const FREEFORM_TOOLS: &str = "freeformTools";
const NAMESPACED_TOOLS: &str = "namespacedTools";
const HOSTED_TOOL: &str = "hostedTool:";
const IMAGE_INPUT: &str = "imageInput";
const ENCRYPTED_REASONING: &str = "encryptedReasoning";
const JSON_SCHEMA_OUTPUT: &str = "jsonSchemaOutput";

/// Requests reasoning in the encrypted form that only the provider can read.
const ENCRYPTED_CONTENT: &str = "reasoning.encrypted_content";

/// The ids of an attempt. They are the same after a restart, so that a host can answer from its record.
#[derive(Debug, Clone)]
pub(super) struct RequestIds {
    segment: SegmentId,
    pub(super) request: ModelRequestId,
    retry_of: Option<ModelRequestId>,
}

impl RequestIds {
    pub(super) fn of(metadata: &Metadata) -> Self {
        let Metadata { turn_id, segment, attempt, .. } = metadata;
        let kind = match metadata.purpose {
            Purpose::Turn => "",
            Purpose::Compaction => "c",
            Purpose::Review => "r",
            Purpose::Memory => "m",
        };
        let segment = format!("{turn_id}:{kind}{segment}");
        let request = |attempt: u32| ModelRequestId::new(format!("{segment}:a{attempt}"));
        let retry_of = (*attempt > 1).then(|| request(attempt - 1));
        Self { request: request(*attempt), retry_of, segment: SegmentId::new(segment.clone()) }
    }
}

/// The message, or why the provider cannot serve the request.
pub(super) fn message(
    session: &HostSession,
    ids: &RequestIds,
    request: PreparedRequest,
) -> Result<ModelRequestParams, ModelFailure> {
    let PreparedRequest { body, metadata } = request;
    let body = match session.capabilities() {
        Some(capabilities) => fitted(body, capabilities),
        None => body,
    };
    let requires = requires(&body);
    if let Some(capabilities) = session.capabilities()
        && let Some(missing) = requires.iter().find(|feature| !supports(capabilities, feature))
    {
        return Err(failure::unsupported(missing));
    }
    let cache_prefix_items = match RequestLane::of(metadata.purpose) {
        RequestLane::Turn => session.shared_prefix(&body),
        RequestLane::Aux => 0,
    };
    // The digest is of the value, not of its text: parsing numbers could change their last digit.
    let written = serde_json::to_value(&*body)
        .and_then(|value| Ok((Raw::parse(value.to_string())?, digest_of(&value))));
    let (json, request_digest) = written.map_err(|error| {
        // The body consists only of strings, numbers and JSON.
        failure::protocol_error(&format_args!("the request cannot be written: {error}"))
    })?;
    Ok(ModelRequestParams {
        thread_id: metadata.thread_id,
        turn_id: metadata.turn_id,
        segment_id: ids.segment.clone(),
        model_request_id: ids.request.clone(),
        attempt: metadata.attempt,
        retry_of: ids.retry_of.clone(),
        agent_path: metadata.agent_path.to_vec(),
        purpose: match metadata.purpose {
            Purpose::Turn => ModelRequestPurpose::Turn,
            Purpose::Compaction => ModelRequestPurpose::Compaction,
            Purpose::Review => ModelRequestPurpose::Review,
            Purpose::Memory => ModelRequestPurpose::Memory,
        },
        body: json,
        request_digest,
        tool_set_digest: metadata.tool_set_digest.to_string(),
        requires,
        window: session.window(),
        deadline_ms: None,
        // The provider stores nothing, so repeating a request only gives a second response.
        hint: Some(ModelRequestHint { replay_safe: true, cache_prefix_items }),
    })
}

/// Without earlier reasoning, if the provider does not accept it.
fn fitted(body: Arc<RequestBody>, capabilities: &ModelCapabilities) -> Arc<RequestBody> {
    let is_reasoning = |item: &ResponseItem| matches!(item, ResponseItem::Reasoning { .. });
    let fits = capabilities.reasoning_replay != ReasoningReplay::None
        || (body.include.is_empty() && !body.input.iter().any(|item| is_reasoning(item)));
    if fits {
        return body;
    }
    let mut fitted = (*body).clone();
    fitted.include.retain(|wanted| wanted != ENCRYPTED_CONTENT);
    fitted.input.retain(|item| !is_reasoning(item));
    Arc::new(fitted)
}

/// The features in a body that not every provider supports, sorted.
fn requires(body: &RequestBody) -> Vec<String> {
    let mut features = BTreeSet::new();
    for tool in &body.tools {
        match tool["type"].as_str() {
            Some("function") | None => {}
            Some("custom") => drop(features.insert(FREEFORM_TOOLS.to_owned())),
            Some("namespace") => drop(features.insert(NAMESPACED_TOOLS.to_owned())),
            Some(hosted) => drop(features.insert(format!("{HOSTED_TOOL}{hosted}"))),
        }
    }
    if body.input.iter().any(|item| has_image(item)) {
        features.insert(IMAGE_INPUT.to_owned());
    }
    if body.include.iter().any(|wanted| wanted == ENCRYPTED_CONTENT) {
        features.insert(ENCRYPTED_REASONING.to_owned());
    }
    let format = body.text.as_ref().and_then(|text| text.format.as_ref());
    if matches!(format, Some(OutputFormat::JsonSchema { .. })) {
        features.insert(JSON_SCHEMA_OUTPUT.to_owned());
    }
    features.into_iter().collect()
}

fn has_image(item: &ResponseItem) -> bool {
    let in_output = |output: &FunctionCallOutputBody| match output {
        FunctionCallOutputBody::Text(_) => false,
        FunctionCallOutputBody::Content(items) => {
            items.iter().any(|item| matches!(item, FunctionCallOutputContentItem::InputImage { .. }))
        }
    };
    match item {
        ResponseItem::Message { content, .. } => {
            content.iter().any(|part| matches!(part, ContentItem::InputImage { .. }))
        }
        ResponseItem::FunctionCallOutput { output, .. }
        | ResponseItem::CustomToolCallOutput { output, .. } => in_output(output),
        _ => false,
    }
}

fn supports(capabilities: &ModelCapabilities, feature: &str) -> bool {
    match feature {
        FREEFORM_TOOLS => capabilities.freeform_tools,
        NAMESPACED_TOOLS => capabilities.namespaced_tools,
        IMAGE_INPUT => capabilities.images_in,
        ENCRYPTED_REASONING => capabilities.reasoning_replay != ReasoningReplay::None,
        JSON_SCHEMA_OUTPUT => capabilities.json_schema_output,
        hosted => {
            let name = hosted.strip_prefix(HOSTED_TOOL).unwrap_or(hosted);
            capabilities.hosted_tools.iter().any(|tool| tool == name)
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{ThreadId, TurnId};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{ScriptedHost, terms};

    fn body() -> Value {
        let text = json!({"type": "input_text", "text": "héllo \"you\"\n"});
        let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AA=="});
        let parameters = json!({"type": "object", "maximum": 1.5});
        json!({
            "model": "m",
            "instructions": "Be useful.",
            "input": [{"type": "message", "role": "user", "content": [text, image]}],
            "tools": [
                {"type": "function", "name": "f", "parameters": parameters},
                {"type": "custom", "name": "apply_patch"},
                {"type": "web_search"},
            ],
            "tool_choice": "auto",
            "parallel_tool_calls": true,
            "reasoning": null,
            "store": false,
            "stream": true,
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "t",
            "text": {"format": {"type": "json_schema", "strict": true, "schema": {"type": "object"}, "name": "n"}},
        })
    }

    fn prepared(body: Value, metadata: Metadata) -> PreparedRequest {
        PreparedRequest { body: Arc::new(serde_json::from_value(body).expect("a body")), metadata }
    }

    fn made(
        session: &HostSession,
        body: Value,
        metadata: Metadata,
    ) -> Result<ModelRequestParams, ModelFailure> {
        message(session, &RequestIds::of(&metadata), prepared(body, metadata))
    }

    fn first() -> Metadata {
        Metadata::first(ThreadId::new("t"), TurnId::new("u1"))
    }

    fn session(terms: protocol::ThreadDelegation) -> HostSession {
        HostSession::new(ThreadId::new("t"), terms, Arc::new(ScriptedHost::default()))
    }

    #[test]
    fn a_request_is_the_body_with_its_digest_and_what_it_uses() {
        let session = session(terms(&json!({"windowEvents": 3, "windowBytes": 99})));
        let made = made(&session, body(), first()).expect("a request");
        assert_eq!(made.body.get(), body().to_string(), "as it would be sent to a provider");
        // Computed by another implementation of the RFC.
        assert_eq!(
            made.request_digest,
            "sha256:d54a703260719578763536a5fe4798c0a354e5bfc88d6df84b99c034e15aa19f"
        );
        let uses = [
            "encryptedReasoning",
            "freeformTools",
            "hostedTool:web_search",
            "imageInput",
            "jsonSchemaOutput",
        ];
        assert_eq!(made.requires, uses);
        assert_eq!((made.window.events, made.window.bytes), (3, 99));
    }

    #[test]
    fn ids_differ_between_turns_compactions_and_attempts() {
        for (purpose, segment, attempt, request, retry_of) in [
            (Purpose::Turn, 0, 1, "u1:0:a1", None),
            (Purpose::Turn, 2, 3, "u1:2:a3", Some("u1:2:a2")),
            (Purpose::Compaction, 0, 2, "u1:c0:a2", Some("u1:c0:a1")),
            (Purpose::Review, 1, 1, "u1:r1:a1", None),
        ] {
            let ids = RequestIds::of(&Metadata { purpose, segment, attempt, ..first() });
            assert_eq!(ids.request.as_str(), request);
            assert_eq!(ids.retry_of.as_ref().map(ModelRequestId::as_str), retry_of);
        }
    }

    #[test]
    fn unsupported_features_are_refused_or_left_out() {
        let session_with = |change: &dyn Fn(&mut ModelCapabilities)| {
            let mut terms = terms(&json!({}));
            change(&mut terms.provider.as_mut().expect("a provider").capabilities);
            session(terms)
        };
        type Change = fn(&mut ModelCapabilities);
        let cases: [(&str, Change); 4] = [
            ("imageInput", |able| able.images_in = false),
            ("freeformTools", |able| able.freeform_tools = false),
            ("hostedTool:web_search", |able| able.hosted_tools.clear()),
            ("jsonSchemaOutput", |able| able.json_schema_output = false),
        ];
        for (feature, change) in cases {
            let failure = made(&session_with(&change), body(), first()).expect_err(feature);
            assert!(failure.message.contains(feature) && !failure.is_retryable(), "{failure}");
        }
        let mut with_reasoning = body();
        let thought = json!({"type": "reasoning", "summary": [], "encrypted_content": "x"});
        with_reasoning["input"].as_array_mut().expect("items").push(thought);
        let forgetful = session_with(&|able| able.reasoning_replay = ReasoningReplay::None);
        let made = made(&forgetful, with_reasoning, first()).expect("a request");
        assert!(!made.body.get().contains("reasoning.encrypted") && !made.body.get().contains("summary"));
        assert!(!made.requires.iter().any(|feature| feature == ENCRYPTED_REASONING));
    }

    #[test]
    fn the_shared_prefix_of_two_requests_is_cached() {
        let session = session(terms(&json!({})));
        let first_request = prepared(body(), first());
        let mut longer = (*first_request.body).clone();
        longer.input.push(Arc::new(ResponseItem::Other));
        let ids = RequestIds::of(&first());
        let prefix = |request: PreparedRequest| {
            message(&session, &ids, request).expect("a request").hint.expect("a hint").cache_prefix_items
        };
        assert_eq!(prefix(first_request), 0);
        assert_eq!(prefix(PreparedRequest { body: Arc::new(longer), metadata: first() }), 1);
    }
}
