//! Spans as OTLP writes them in JSON: ids in hexadecimal digits, times and whole numbers as text.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use crate::span::{AttributeValue, SpanRecord};

const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// The body of `POST /v1/traces`.
pub(crate) fn request(resource: &[(String, String)], version: &str, spans: &[SpanRecord]) -> Value {
    let resource: Vec<Value> = resource.iter().map(|(name, word)| attribute(name, &text(word))).collect();
    json!({
        "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{
                "scope": { "name": "oarlock", "version": version },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

fn span(record: &SpanRecord) -> Value {
    let attributes = record.attributes.iter().map(|(name, value)| {
        let value = match value {
            AttributeValue::Word(word) => text(word),
            AttributeValue::Number(number) => json!({ "intValue": number.to_string() }),
        };
        attribute(name, &value)
    });
    let is_request = record.name.ends_with(".request");
    let mut span = json!({
        "traceId": HEXLOWER.encode(&record.context.trace),
        "spanId": HEXLOWER.encode(&record.context.span),
        "name": record.name,
        "kind": if is_request { CLIENT } else { INTERNAL },
        "startTimeUnixNano": record.began_ns.to_string(),
        "endTimeUnixNano": record.ended_ns.to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
        "status": if record.has_failed { json!({ "code": FAILED }) } else { json!({}) },
    });
    if let Some(parent) = &record.parent {
        span["parentSpanId"] = json!(HEXLOWER.encode(parent));
    }
    if let Some(state) = &record.context.state {
        span["traceState"] = json!(**state);
    }
    span
}

fn text(word: &str) -> Value {
    json!({ "stringValue": word })
}

fn attribute(name: &str, value: &Value) -> Value {
    json!({ "key": name, "value": value })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::TraceContext;

    #[test]
    fn a_span_is_written_as_the_protocol_says() {
        let context = TraceContext {
            trace: [0xab; 16],
            span: [0x0c; 8],
            is_sampled: true,
            state: Some(Arc::from("a=1")),
        };
        let record = SpanRecord {
            name: "model.request",
            context,
            parent: Some([0x0d; 8]),
            began_ns: 1_700_000_000_000_000_001,
            ended_ns: 1_700_000_000_000_000_002,
            attributes: vec![
                ("gen_ai.request.model", AttributeValue::Word("m-1".to_owned())),
                ("gen_ai.usage.input_tokens", AttributeValue::Number(-7)),
            ],
            has_failed: true,
        };
        let resource = [("service.name".to_owned(), "s".to_owned())];
        let expected = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
            "scopeSpans": [{
                "scope": {"name": "oarlock", "version": "1.2"},
                "spans": [{
                    "traceId": "abababababababababababababababab",
                    "spanId": "0c0c0c0c0c0c0c0c",
                    "name": "model.request",
                    "kind": 3,
                    "startTimeUnixNano": "1700000000000000001",
                    "endTimeUnixNano": "1700000000000000002",
                    "attributes": [
                        {"key": "gen_ai.request.model", "value": {"stringValue": "m-1"}},
                        {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "-7"}},
                    ],
                    "status": {"code": 2},
                    "parentSpanId": "0d0d0d0d0d0d0d0d",
                    "traceState": "a=1",
                }],
            }],
        }]});
        assert_eq!(request(&resource, "1.2", &[record]), expected);
    }
}
