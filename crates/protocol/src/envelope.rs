//! The JSON-RPC envelope as types: what surrounds every message on the wire. There is no `jsonrpc` member.

use std::fmt;

use protocol_macros::wire;
use serde_json::Value;

/// Pairs a response with its request on one connection.
#[wire(untagged)]
#[derive(Eq, Hash, PartialOrd, Ord)]
pub enum RequestId {
    String(String),
    Integer(i64),
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(id) => f.write_str(id),
            Self::Integer(id) => write!(f, "{id}"),
        }
    }
}

/// Trace context of a request, as W3C defines it. Accepted and passed on, never required.
#[wire(as_is, omit_null)]
pub struct W3cTraceContext {
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

/// Any message. The first shape that fits wins.
#[wire(untagged, name = "JSONRPCMessage")]
pub enum JsonRpcMessage {
    Request(JsonRpcRequest),
    Notification(JsonRpcNotification),
    Response(JsonRpcResponse),
    Error(JsonRpcError),
}

/// A request that expects a response.
#[wire(omit_null, name = "JSONRPCRequest")]
pub struct JsonRpcRequest {
    pub id: RequestId,
    pub method: String,
    pub params: Option<Value>,
    pub trace: Option<W3cTraceContext>,
}

/// A message that expects no response.
#[wire(omit_null, name = "JSONRPCNotification")]
pub struct JsonRpcNotification {
    pub method: String,
    pub params: Option<Value>,
}

/// The successful answer to a request.
#[wire(name = "JSONRPCResponse")]
pub struct JsonRpcResponse {
    pub id: RequestId,
    pub result: Value,
}

/// The answer to a request that failed.
#[wire(name = "JSONRPCError")]
pub struct JsonRpcError {
    pub error: JsonRpcErrorError,
    pub id: RequestId,
}

/// Why a request failed.
#[wire(omit_null, name = "JSONRPCErrorError")]
pub struct JsonRpcErrorError {
    pub code: i64,
    pub data: Option<Value>,
    pub message: String,
}
