//! Handing model traffic and the record to the host: negotiation and the thread-level choices.

use super::prelude::*;

/// A host's offer in `initialize`.
#[wire]
pub struct HostDelegationOffer {
    /// Versions of the delegation wire the host speaks.
    pub versions: Vec<u32>,
    #[serde(default)]
    pub features: Vec<DelegationFeature>,
}

/// The agreed version and features. A host that made an offer and finds no such member must stop.
#[wire]
pub struct HostDelegationAgreed {
    pub version: u32,
    /// Those of the offer that the runtime supports too.
    pub features: Vec<DelegationFeature>,
    /// New for every process, for fencing and logs.
    pub runtime_instance_id: String,
}

/// Parts of delegation that are agreed one by one.
#[wire]
pub enum DelegationFeature {
    /// The host carries model requests.
    ModelTransport,
    /// The host keeps the record of a thread.
    ClientRollout,
    /// Everything that waits or has an effect is recorded under a durable id.
    Operations,
    /// The host decides where child agents run.
    Subagents,
    /// The host chooses the tools and who approves their calls.
    ToolSet,
    /// A turn can be suspended with `turn/suspend`.
    Suspend,
    /// Agreed by a runtime whose commands run as another user than itself, so that none can speak for it.
    CommandUser,
    /// A feature this release does not know; ignored.
    #[serde(untagged)]
    Other(String),
}

/// Who carries this thread's model requests, and how. At `oarlock host`, `mode` `full` makes the connection the one that
/// carries those of the task, and `direct` gives them back to the host's own provider; beside `mode`, `version` and
/// `provider`, a host takes none of the fields.
#[wire(omit_null)]
pub struct ThreadDelegation {
    #[serde(default)]
    pub mode: DelegationMode,
    /// Must equal the version agreed in `initialize`.
    pub version: u32,
    pub provider: Option<DelegatedProvider>,
    pub stream: Option<DelegatedStream>,
    pub subagents: Option<SubagentPlacement>,
    /// Fencing token of the host's lease. Must not be lower than any seen for this thread.
    pub host_epoch: Option<u64>,
}

/// Who talks to the provider.
#[wire]
#[derive(Default)]
pub enum DelegationMode {
    /// The runtime calls the provider itself.
    #[default]
    Direct,
    /// Every model request goes to the host.
    Full,
}

/// Who decides where child agents run.
#[wire]
pub enum SubagentPlacement {
    Runtime,
    Host,
}

/// The host's provider, so that requests are shaped for it.
#[wire]
pub struct DelegatedProvider {
    /// The host's own name for the provider.
    pub id: String,
    pub capabilities: ModelCapabilities,
}

/// Capabilities of a provider. Requests stay within them.
#[wire(omit_null)]
pub struct ModelCapabilities {
    pub wire: ModelWire,
    /// Calling functions at all.
    #[serde(default = "crate::yes")]
    pub tools: bool,
    /// Several calls in one response.
    #[serde(default = "crate::yes")]
    pub parallel_tool_calls: bool,
    /// Tools that take plain text instead of JSON.
    #[serde(default)]
    pub freeform_tools: bool,
    /// Tools grouped under a namespace.
    #[serde(default)]
    pub namespaced_tools: bool,
    /// Tools the provider runs itself, such as `web_search`.
    #[serde(default)]
    pub hosted_tools: Vec<String>,
    /// Images in the input.
    #[serde(default = "crate::yes")]
    pub images_in: bool,
    #[serde(default)]
    pub reasoning_replay: ReasoningReplay,
    /// Answers that follow a JSON Schema.
    #[serde(default = "crate::yes")]
    pub json_schema_output: bool,
    /// Going on from a response the provider has stored.
    #[serde(default)]
    pub server_state: bool,
    /// In tokens; unset when unknown.
    pub context_window: Option<u64>,
    pub max_output_tokens: Option<u64>,
}

/// The API the provider speaks.
#[wire]
pub enum ModelWire {
    /// OpenAI Responses.
    Responses,
    /// OpenAI-compatible chat completions.
    Chat,
    /// Anthropic Messages.
    Messages,
    Other,
}

/// How earlier reasoning may be sent back.
#[wire]
#[derive(Default)]
pub enum ReasoningReplay {
    /// Not at all.
    #[default]
    None,
    /// As a blob only the provider can read.
    Opaque,
    /// As text with the provider's signature.
    Signed,
}

/// Flow control and liveness of delegated streams.
#[wire(omit_null)]
pub struct DelegatedStream {
    /// Events the host may send before they are acknowledged; 256 when unset.
    pub window_events: Option<u32>,
    /// Bytes the host may send before they are acknowledged; 1,048,576 when unset.
    pub window_bytes: Option<u64>,
    /// How long the runtime waits for the first event.
    pub first_event_timeout_ms: Option<u64>,
    /// How long the runtime waits for the next event before it cancels and tries again.
    pub idle_timeout_ms: Option<u64>,
}

/// The bridge: model requests of one thread go to an endpoint the host runs.
#[wire(omit_null)]
pub struct SdkDelegationConfig {
    /// Base URL of the host's Responses endpoint, absolute, http or https.
    pub bridge_url: String,
    /// The provider id registered for this thread; `codex-sdk-v2` when unset.
    pub model_provider_id: Option<String>,
    /// How long a stream may be silent before it counts as broken.
    pub stream_idle_timeout_ms: Option<u64>,
}

/// Sent after `thread/started`, once the thread's provider points at the bridge.
#[wire]
pub struct SdkDelegationConfiguredNotification {
    pub thread_id: ThreadId,
    /// The provider id registered for this thread.
    pub model_provider: String,
    pub bridge_url: String,
}
