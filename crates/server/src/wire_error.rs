//! Errors as the wire has them. The only file with JSON-RPC codes.

use std::sync::LazyLock;

use host::{ClientStreamError, TaskError};
use protocol::{CLIENT_REQUESTS, CodexErrorInfo, DecodeError, TurnError};
use rpc::{EncodedLine, Id, shorten};
use runtime::{
    CommandExecError, DelegationError, PluginError, Refusal, RuntimeError, SearchError, ThreadError,
};
use serde_json::Value;

/// A longer name is a mistake or an attack: it is cut, and gets no list of all the others.
const LONGEST_NAME: usize = 64;

static METHODS: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<String> = CLIENT_REQUESTS.iter().map(|row| format!("`{}`", row.name)).collect();
    names.join(", ")
});

/// Why a request failed, for the client.
#[derive(Debug, Clone, PartialEq)]
pub struct WireError {
    pub code: i64,
    pub message: String,
    /// Data that a client must act on. Left out when there is none.
    pub data: Option<Value>,
}

impl WireError {
    pub const INVALID_REQUEST: i64 = -32600;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    pub const OVERLOADED: i64 = -32001;

    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Almost everything: a bad shape, something that is not there, a conflict with the state of things.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, message)
    }

    /// Input that is too large, and values that a method refuses.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The request was fine and the server failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(Self::OVERLOADED, "Server overloaded; retry later.")
    }

    /// For a handler that ended without an answer, as by a panic.
    pub(crate) fn unanswered() -> Self {
        Self::internal("internal error: the request ended without an answer")
    }

    pub(crate) fn not_initialized() -> Self {
        Self::invalid_request("Not initialized")
    }

    pub(crate) fn already_initialized() -> Self {
        Self::invalid_request("Already initialized")
    }

    /// The words are those that known clients look for.
    pub(crate) fn unknown_method(name: &str) -> Self {
        let mut message = format!("Invalid request: unknown variant `{}`", shorten(name, LONGEST_NAME));
        if name.len() <= LONGEST_NAME {
            message.push_str(", expected one of ");
            message.push_str(&METHODS);
        }
        Self::invalid_request(message)
    }

    /// A method of the protocol that this server does not carry out.
    pub(crate) fn not_supported(method: &'static str) -> Self {
        Self::invalid_request(format!("{method} is not supported yet"))
    }

    /// A method of an app-server that a host does not carry out, with the place where that is done.
    pub(crate) fn not_at_a_host(method: &'static str) -> Self {
        let changes = ["config/", "account/", "skills/config/", "plugin/", "experimentalFeature/enablement/"];
        let place = match changes.iter().any(|start| method.starts_with(start)) {
            true => {
                "change the configuration and the accounts of a host on its machine, with `oarlock` there"
            }
            false => "use an app-server for it",
        };
        let message = format!("{method} is not supported by a host; {place}");
        Self::invalid_request(message).with_data(serde_json::json!({ "code": "notSupported" }))
    }

    /// A method about tasks, which an app-server does not have.
    pub(crate) fn only_for_hosts(method: &'static str) -> Self {
        Self::invalid_request(format!("{method} is a method of `oarlock host`, and this is an app-server"))
    }

    /// Nothing new begins while the server waits for its last turns.
    pub(crate) fn stopping() -> Self {
        let message = "the server is stopping and begins nothing new; ask again when it is back";
        Self::invalid_request(message).with_data(serde_json::json!({ "code": "stopping" }))
    }

    pub(crate) fn experimental(reason: &str) -> Self {
        Self::invalid_request(format!("{reason} requires experimentalApi capability"))
    }

    pub(crate) fn no_params() -> Self {
        Self::invalid_request("Invalid request: missing field `params`")
    }

    pub(crate) fn params_are_no_object() -> Self {
        Self::invalid_request("Invalid request: invalid type: expected an object at `params`")
    }

    pub(crate) fn to_line(&self, id: &Id) -> EncodedLine {
        // Text and numbers always can be written as JSON; a connection skips an empty line.
        rpc::error(Some(id), self.code, &self.message, &self.data).unwrap_or_default()
    }
}

impl From<DecodeError> for WireError {
    fn from(error: DecodeError) -> Self {
        Self::invalid_request(format!("Invalid request: {}", shorten(&error.to_string(), 900)))
    }
}

/// Without a `_` arm: a new kind of failure must choose its code.
impl From<RuntimeError> for WireError {
    fn from(error: RuntimeError) -> Self {
        use RuntimeError as E;
        let code = match &error {
            E::InvalidThreadId(_)
            | E::UnknownThread(_)
            | E::NotLoaded(_)
            | E::NoRecord(_)
            | E::NotArchived(_)
            | E::AtWork(_)
            | E::Undeletable { .. }
            | E::UnreadableRecord { .. }
            | E::NothingSaid(_)
            | E::NoTurnsKept
            | E::NoRollbackInMemory
            | E::NoGoalInMemory(_)
            | E::ThreadExists(_)
            | E::EmptyHistory
            | E::HistoryWhileLoaded(_)
            | E::OtherPath { .. }
            | E::EmptyCommand
            | E::EmptyName
            | E::EmptyGitInfo
            | E::EmptyGitField(_)
            | E::DynamicTool(_)
            | E::RelativeSkillRoot(_)
            | E::BuiltinTool(_)
            | E::Field { .. }
            | E::NoBridge(_)
            | E::Forbidden(_)
            | E::ContextKey(_)
            | E::Environment(_)
            | E::InvalidCursor(_)
            | E::Cursor(_)
            | E::Config(_)
            | E::ConfigEdit { .. }
            | E::FeatureEnablement(_)
            | E::UnknownMcpServer(_)
            | E::McpLogin(_)
            | E::Login(_)
            | E::LoginFailed(_)
            | E::NoRealtime(_)
            | E::Realtime(_)
            | E::InvalidLoginId(_)
            | E::NoElicitation
            | E::GitDiff(_)
            | E::NoConversation(_)
            | E::NoFeedback => Self::INVALID_REQUEST,
            E::Thread(error) => thread_code(error),
            E::Files(error) if error.is_bad_request() => Self::INVALID_REQUEST,
            E::Search(SearchError::TooManyWalks(_)) => Self::OVERLOADED,
            E::Search(SearchError::NoRoots) | E::Files(_) => Self::INTERNAL,
            E::Search(_) => Self::INVALID_REQUEST,
            E::CommandExec(error) => command_exec_code(error),
            E::Delegation(error) => delegation_code(error),
            E::InputTooLarge { .. } | E::SkillSelector => Self::INVALID_PARAMS,
            E::Plugin(PluginError::Store { .. } | PluginError::Config(_)) => Self::INTERNAL,
            E::Plugin(_) => Self::INVALID_REQUEST,
            E::InvalidConfig(_)
            | E::ConfigWrite(_)
            | E::RequiredMcpServers(_)
            | E::ExternalAgent(_)
            | E::Credentials(_)
            | E::LimitsUnread(_)
            | E::UnreadableSummary { .. }
            | E::FeedbackWrite(_)
            | E::Provider(_)
            | E::Defect => Self::INTERNAL,
        };
        let data = match &error {
            E::InputTooLarge { max, actual } => Some(serde_json::json!({
                "input_error_code": "input_too_large",
                "max_chars": max,
                "actual_chars": actual,
            })),
            E::ConfigEdit { code, .. } => Some(serde_json::json!({ "config_write_error_code": code })),
            E::Delegation(error) => Some(error.data()),
            E::Thread(ThreadError::Refused(refusal @ Refusal::NotSteerable(turn_kind))) => {
                let error = TurnError {
                    message: refusal.to_string(),
                    codex_error_info: Some(CodexErrorInfo::ActiveTurnNotSteerable { turn_kind: *turn_kind }),
                    additional_details: None,
                };
                serde_json::to_value(error).ok()
            }
            _ => None,
        };
        Self { data, ..Self::new(code, error.to_string()) }
    }
}

/// Without a `_` arm: a new kind of failure must choose its code.
impl From<TaskError> for WireError {
    fn from(error: TaskError) -> Self {
        use TaskError as E;
        let message = error.to_string();
        let coded = |code: &str, more: Value| {
            let mut data = serde_json::json!({ "code": code });
            if let (Some(data), Value::Object(more)) = (data.as_object_mut(), more) {
                data.extend(more);
            }
            Self::invalid_params(message.clone()).with_data(data)
        };
        match error {
            E::UnknownThread(_)
            | E::InvalidThreadId(_)
            | E::NotLoaded(_)
            | E::NoRecord(_)
            | E::NotArchived(_)
            | E::NothingSaid(_)
            | E::EmptyName
            | E::InvalidCursor(_) => Self::invalid_request(message),
            E::CarrierTaken { by, .. } => coded("carrierTaken", serde_json::json!({ "by": by })),
            E::Stream(error) => error.into(),
            E::UnknownOperation(_) => coded("unknownOperation", Value::Null),
            E::AlreadyDecided(first) => {
                let decision = serde_json::to_value(&first.decision).unwrap_or_default();
                let by = first.by.clone();
                coded("alreadyDecided", serde_json::json!({ "decision": decision, "by": by }))
            }
            E::DigestMismatch { .. } => coded("digestMismatch", Value::Null),
            E::DecisionNotAvailable { available, .. } => {
                coded("decisionNotAvailable", serde_json::json!({ "available": available }))
            }
            E::NotWaiting(_) => coded("notWaiting", Value::Null),
            E::UnknownPlacement(_) => coded("unknownPlacement", Value::Null),
            E::PlacementInUse { .. } => coded("placementInUse", Value::Null),
            E::Placement(_) => coded("placementFailed", Value::Null),
            E::PlacementUnreachable { site, .. } => {
                coded("placementUnreachable", serde_json::json!({ "site": site }))
            }
            E::SandboxUnavailable { .. } => coded("sandboxUnavailable", Value::Null),
            E::Field { .. } => Self::invalid_params(message),
            E::Refused(refused) => {
                let data = refused.data.and_then(|data| serde_json::from_str(data.get()).ok());
                Self { code: refused.code, message: refused.message, data }
            }
            E::OwnedElsewhere { address, .. } => {
                coded("ownedElsewhere", serde_json::json!({ "address": address }))
            }
            E::RuntimeGone(_) => coded("runtimeGone", Value::Null),
            E::OwnerLost(_) => coded("ownerLost", Value::Null),
            E::Unreadable(_) | E::Store(_) => Self::internal(message),
        }
    }
}

fn thread_code(error: &ThreadError) -> i64 {
    use ThreadError as E;
    match error {
        E::Refused(_)
        | E::NoExpectedTurn
        | E::OtherTurn { .. }
        | E::NothingToInterrupt
        | E::NoMetadataInMemory(_)
        | E::Gone(_)
        | E::HeldElsewhere(_) => WireError::INVALID_REQUEST,
        E::Delegation(error) => delegation_code(error),
        E::Storage(_) => WireError::INTERNAL,
    }
}

impl From<ClientStreamError> for WireError {
    fn from(error: ClientStreamError) -> Self {
        let code = if error.is_overload() { Self::OVERLOADED } else { Self::INVALID_PARAMS };
        Self::new(code, error.to_string()).with_data(error.data())
    }
}

fn delegation_code(error: &DelegationError) -> i64 {
    if error.is_overload() { WireError::OVERLOADED } else { WireError::INVALID_PARAMS }
}

fn command_exec_code(error: &CommandExecError) -> i64 {
    use CommandExecError as E;
    match error {
        E::EmptyCommand
        | E::Config(_)
        | E::NoProcessId
        | E::Duplicate(_)
        | E::Unknown(_)
        | E::Ended(_)
        | E::Policy(_)
        | E::NoStdin
        | E::StdinClosed
        | E::NotATerminal => WireError::INVALID_REQUEST,
        E::SizeWithoutTerminal
        | E::EmptySize
        | E::TwoCaps
        | E::TwoTimeouts
        | E::NegativeTimeout(_)
        | E::LongProcessId
        | E::NothingToWrite
        | E::Base64(_) => WireError::INVALID_PARAMS,
        E::Panicked(_) | E::Spawn(_) | E::Failed(_) | E::Write(_) | E::Resize(_) => WireError::INTERNAL,
        // As for overload: the same request succeeds once there is room.
        E::TooMany(_) | E::TooMuchInput => WireError::OVERLOADED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_method_is_told_which_there_are() {
        let message = WireError::unknown_method("hats/list").message;
        assert!(message.starts_with(
            "Invalid request: unknown variant `hats/list`, expected one of `initialize`, `thread/start`, "
        ));
        assert!(message.ends_with("`fuzzyFileSearch/sessionStop`"));
    }

    #[test]
    fn a_long_name_gets_a_short_answer() {
        assert!(WireError::unknown_method(&"x".repeat(1 << 20)).message.len() < 200);
    }

    #[test]
    fn data_is_left_out_when_there_is_none() {
        let line = |error: WireError| String::from_utf8(error.to_line(&Id::from(3))).unwrap_or_default();
        assert_eq!(
            line(WireError::overloaded()),
            "{\"id\":3,\"error\":{\"code\":-32001,\"message\":\"Server overloaded; retry later.\"}}\n"
        );
        assert_eq!(
            line(WireError::invalid_params("no").with_data(serde_json::json!({"a": 1}))),
            "{\"id\":3,\"error\":{\"code\":-32602,\"message\":\"no\",\"data\":{\"a\":1}}}\n"
        );
    }
}
