//! Owns every wire type, the tables of methods, their schemas and the experimental gate. Must not know async, I/O, or
//! the runtime.

mod decode;
mod diagnose;
mod envelope;
mod gate;
mod method;
mod methods;
mod scalar;
pub mod schemas;
mod tag_first;
mod text;
mod types;

pub use decode::{DecodeError, decode};
pub use envelope::{
    JsonRpcError, JsonRpcErrorError, JsonRpcMessage, JsonRpcNotification, JsonRpcRequest, JsonRpcResponse,
    RequestId, W3cTraceContext,
};
pub use gate::ExperimentalGate;
pub use method::{
    ClientRole, Method, MethodStage, Named, NoParams, NotificationMethod, OrderKey, Payload, RequestMethod,
    SchemaFolder, WireType,
};
pub use methods::*;
pub use scalar::{
    AbsolutePath, AgentPath, EnvironmentId, ItemId, ModelRequestId, OperationId, Raw, SegmentId, ThreadId,
    TriState, TurnId,
};
pub use tag_first::{Frequent, TagFirst};
pub use text::{from_members, from_value};
pub use types::*;

/// For `#[serde(default = "crate::yes")]`.
fn yes() -> bool {
    true
}
