//! The experimental gate: what a connection without the capability may not send, and what it is not sent.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use oarlock_protocol::*;
use serde_json::{Value, json};

/// The descriptor a payload of type `T` is refused with.
fn used<T: Payload>(payload: &Value) -> Option<&'static str> {
    decode::<T>(&payload.to_string()).unwrap_or_else(|error| panic!("{error}: {payload}")).experimental_use()
}

/// The payload as a stable connection sees it.
fn stripped<T: Payload>(payload: &Value) -> Value {
    let mut value = decode::<T>(&payload.to_string()).unwrap_or_else(|error| panic!("{error}: {payload}"));
    value.strip_experimental();
    serde_json::to_value(&value).expect("wire types can be written")
}

type Use = fn(&Value) -> Option<&'static str>;

fn check_uses(rows: &[(Use, Value, Option<&str>)]) {
    for (used, payload, expected) in rows {
        assert_eq!(used(payload), *expected, "{payload}");
    }
}

const THREAD: &str = "0199b2f4-6c1e-7d30-9a41-5e0c8f2b7d16";

fn granular() -> Value {
    json!({ "granular": { "sandbox_approval": true, "rules": true, "mcp_elicitations": true } })
}

/// A payload that names a thread, with one more field.
fn of_thread(name: &str, value: Value) -> Value {
    let mut payload = json!({ "threadId": THREAD });
    payload[name] = value;
    payload
}

fn turn_with(name: &str, value: Value) -> Value {
    let mut payload = json!({ "threadId": THREAD, "input": [] });
    payload[name] = value;
    payload
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "Finds a tide gauge.", "inputSchema": {} })
}

#[test]
fn request_fields_have_the_descriptors_clients_know() {
    let message = json!({ "type": "message", "role": "user", "content": [] });
    check_uses(&[
        (
            used::<ThreadStartParams>,
            json!({ "dynamicTools": [tool("gauge")] }),
            Some("thread/start.dynamicTools"),
        ),
        (
            used::<ThreadStartParams>,
            json!({ "mockExperimentalField": "x" }),
            Some("thread/start.mockExperimentalField"),
        ),
        (
            used::<ThreadStartParams>,
            json!({ "experimentalRawEvents": true }),
            Some("thread/start.experimentalRawEvents"),
        ),
        // The name of the descriptor is older than the name of the field.
        (
            used::<ThreadStartParams>,
            json!({ "persistExtendedHistory": true }),
            Some("thread/start.persistFullHistory"),
        ),
        (used::<ThreadResumeParams>, of_thread("history", json!([message])), Some("thread/resume.history")),
        (used::<ThreadResumeParams>, of_thread("path", json!("/r.jsonl")), Some("thread/resume.path")),
        (
            used::<ThreadResumeParams>,
            of_thread("persistExtendedHistory", json!(true)),
            Some("thread/resume.persistFullHistory"),
        ),
        (used::<ThreadForkParams>, of_thread("path", json!("/r.jsonl")), Some("thread/fork.path")),
        (
            used::<ThreadForkParams>,
            of_thread("persistExtendedHistory", json!(true)),
            Some("thread/fork.persistFullHistory"),
        ),
        (
            used::<TurnStartParams>,
            turn_with("collaborationMode", json!({ "mode": "plan", "settings": { "model": "m" } })),
            Some("turn/start.collaborationMode"),
        ),
    ]);
}

#[test]
fn request_variants_have_the_descriptors_clients_know() {
    let tokens = json!({ "type": "chatgptAuthTokens", "accessToken": "t", "chatgptAccountId": "a" });
    check_uses(&[
        (used::<ThreadStartParams>, json!({ "approvalPolicy": granular() }), Some("askForApproval.granular")),
        (
            used::<ThreadResumeParams>,
            of_thread("approvalPolicy", granular()),
            Some("askForApproval.granular"),
        ),
        (used::<ThreadForkParams>, of_thread("approvalPolicy", granular()), Some("askForApproval.granular")),
        (used::<TurnStartParams>, turn_with("approvalPolicy", granular()), Some("askForApproval.granular")),
        (used::<LoginAccountParams>, tokens, Some("account/login/start.chatgptAuthTokens")),
        (used::<LoginAccountParams>, json!({ "type": "chatgpt" }), None),
    ]);
}

#[test]
fn fields_of_this_project_are_named_after_their_method() {
    let delegation = json!({ "mode": "full", "version": 1 });
    let item = json!({ "ordinal": 0, "kind": "rolledBack", "numTurns": 1 });
    let turn = json!({ "id": "u", "items": [], "status": "completed" });
    let operation = json!({ "operationId": "o", "argumentsDigest": "d" });
    let fields = [
        ("delegation", delegation),
        ("rolloutOwnership", json!("server")),
        ("initialItems", json!([item])),
        ("turnHistory", json!([turn])),
        ("initialItemsRef", json!({ "parts": 1, "digest": "d" })),
        ("resolvedOperations", json!([operation])),
        ("resumeTurn", json!(true)),
        ("toolSet", json!({ "mode": "default" })),
    ];
    for (name, value) in fields {
        assert_eq!(
            used::<ThreadStartParams>(&json!({ name: value })),
            Some(format!("thread/start.{name}").as_str())
        );
        assert_eq!(
            used::<ThreadResumeParams>(&of_thread(name, value.clone())),
            Some(format!("thread/resume.{name}").as_str())
        );
        assert_eq!(
            used::<ThreadForkParams>(&of_thread(name, value)),
            Some(format!("thread/fork.{name}").as_str())
        );
    }
    let context = json!({ "k": { "value": "v", "kind": "untrusted" } });
    let environments = json!([{ "environmentId": "local", "cwd": "/w" }]);
    let steer =
        json!({ "threadId": THREAD, "input": [], "expectedTurnId": "u", "additionalContext": context });
    let offer = json!({ "clientInfo": { "name": "n", "version": "1" }, "capabilities": { "hostDelegation": { "versions": [1] } } });
    check_uses(&[
        (
            used::<ThreadStartParams>,
            json!({ "environments": environments }),
            Some("thread/start.environments"),
        ),
        (
            used::<ThreadStartParams>,
            json!({ "sdkDelegation": { "bridgeUrl": "http://h" } }),
            Some("thread/start.sdkDelegation"),
        ),
        (used::<ThreadStartParams>, json!({ "builtinTools": ["shell"] }), Some("thread/start.builtinTools")),
        (used::<ThreadStartParams>, json!({ "builtinTools": [] }), Some("thread/start.builtinTools")),
        (used::<ThreadStartParams>, json!({ "builtinTools": null }), None),
        (
            used::<ThreadStartParams>,
            json!({ "manualToolExecution": true }),
            Some("thread/start.manualToolExecution"),
        ),
        (used::<ThreadStartParams>, json!({ "threadId": THREAD }), Some("thread/start.threadId")),
        (used::<TurnStartParams>, turn_with("environments", environments), Some("turn/start.environments")),
        (
            used::<TurnStartParams>,
            turn_with("additionalContext", context),
            Some("turn/start.additionalContext"),
        ),
        (used::<TurnSteerParams>, steer, Some("turn/steer.additionalContext")),
        (used::<InitializeParams>, offer, Some("initialize.hostDelegation")),
    ]);
}

#[test]
fn empty_and_false_are_not_in_use() {
    check_uses(&[
        (used::<ThreadStartParams>, json!({}), None),
        (used::<ThreadStartParams>, json!({ "dynamicTools": [] }), None),
        (used::<ThreadStartParams>, json!({ "dynamicTools": null }), None),
        (
            used::<ThreadStartParams>,
            json!({ "persistExtendedHistory": false, "experimentalRawEvents": false }),
            None,
        ),
        (used::<ThreadStartParams>, json!({ "approvalPolicy": "never", "model": "m" }), None),
        (used::<ThreadResumeParams>, of_thread("history", json!([])), None),
        (used::<ThreadResumeParams>, of_thread("persistExtendedHistory", json!(false)), None),
        (used::<TurnStartParams>, turn_with("environments", json!([])), None),
        (used::<TurnStartParams>, turn_with("additionalContext", json!({})), None),
        // An empty string is a value.
        (
            used::<ThreadStartParams>,
            json!({ "mockExperimentalField": "" }),
            Some("thread/start.mockExperimentalField"),
        ),
    ]);
}

#[test]
fn only_the_first_in_field_order_is_reported() {
    check_uses(&[
        (
            used::<ThreadStartParams>,
            json!({ "persistExtendedHistory": true, "mockExperimentalField": "x", "dynamicTools": [tool("gauge")] }),
            Some("thread/start.dynamicTools"),
        ),
        (
            used::<ThreadStartParams>,
            json!({ "dynamicTools": [tool("gauge")], "approvalPolicy": granular() }),
            Some("askForApproval.granular"),
        ),
        (
            used::<ThreadResumeParams>,
            json!({ "threadId": THREAD, "approvalPolicy": granular(), "path": "/r.jsonl" }),
            Some("thread/resume.path"),
        ),
        (
            used::<ThreadStartParams>,
            json!({ "persistExtendedHistory": true, "experimentalRawEvents": false, "dynamicTools": [] }),
            Some("thread/start.persistFullHistory"),
        ),
    ]);
}

#[test]
fn uses_inside_lists_and_maps_are_found() {
    let profile = json!({ "config": { "profiles": { "calm": {}, "wild": { "approval_policy": granular() } } }, "origins": {} });
    let thread = json!({
        "data": [{ "id": "t", "preview": "", "ephemeral": false, "modelProvider": "p", "createdAt": 0, "updatedAt": 0,
            "status": { "type": "idle" }, "cwd": "/w", "cliVersion": "0", "source": "cli", "turns": [
                { "id": "u", "items": [], "status": "failed", "error": { "message": "m", "codexErrorInfo": "modelNotFound" } }] }]
    });
    check_uses(&[
        (used::<ConfigReadResponse>, profile, Some("askForApproval.granular")),
        (
            used::<ConfigRequirementsReadResponse>,
            json!({ "requirements": { "allowedApprovalPolicies": ["never", granular()] } }),
            Some("askForApproval.granular"),
        ),
        (used::<ThreadListResponse>, thread, Some("codexErrorInfo.modelNotFound")),
    ]);
}

fn approval_request() -> Value {
    json!({
        "threadId": THREAD, "turnId": "u", "itemId": "call_1", "startedAtMs": 5, "reason": "network", "command": "uv sync", "cwd": "/w",
        "additionalPermissions": { "network": { "enabled": true }, "fileSystem": null, "macos": null },
        "skillMetadata": { "pathToSkillsMd": "/s/SKILL.md" },
        "availableDecisions": [
            "accept", { "acceptWithCommandOverride": { "command": ["true"] } }, { "acceptWithArguments": { "arguments": {} } },
            { "respond": { "contentItems": [], "success": true } }, { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["uv"] } }, "cancel"
        ],
        "operationId": "t:u:call_1", "argumentsDigest": "sha256:00"
    })
}

#[test]
fn a_stable_connection_gets_the_stable_part_of_an_approval_request() {
    assert_eq!(
        stripped::<CommandExecutionRequestApprovalParams>(&approval_request()),
        json!({
            "threadId": THREAD, "turnId": "u", "itemId": "call_1", "startedAtMs": 5, "reason": "network", "command": "uv sync", "cwd": "/w",
            "availableDecisions": ["accept", { "acceptWithExecpolicyAmendment": { "execpolicy_amendment": ["uv"] } }, "cancel"]
        })
    );
}

#[test]
fn a_stable_connection_gets_no_experimental_error_info() {
    let with = |info: Value| json!({ "message": "m", "codexErrorInfo": info, "additionalDetails": null });
    for hidden in ["rateLimitExceeded", "sessionBudgetExceeded", "modelNotFound"] {
        assert_eq!(stripped::<TurnError>(&with(json!(hidden))), with(Value::Null));
    }
    for shown in [
        json!("usageLimitExceeded"),
        json!({ "httpConnectionFailed": { "httpStatusCode": 502 } }),
        Value::Null,
    ] {
        assert_eq!(stripped::<TurnError>(&with(shown.clone())), with(shown));
    }
    let completed = |info: &str| {
        json!({ "threadId": THREAD, "turn": { "id": "u", "items": [], "status": "failed", "error": with(json!(info)),
            "startedAt": null, "completedAt": null, "durationMs": null } })
    };
    let mut expected = completed("modelNotFound");
    expected["turn"]["error"]["codexErrorInfo"] = Value::Null;
    assert_eq!(stripped::<TurnCompletedNotification>(&completed("modelNotFound")), expected);
    assert_eq!(stripped::<TurnCompletedNotification>(&completed("other")), completed("other"));
}

#[test]
fn what_stable_schemas_list_is_not_stripped() {
    let mut everything = granular();
    everything["granular"]["skill_approval"] = json!(false);
    everything["granular"]["request_permissions"] = json!(false);
    let requirements = json!({ "requirements": {
        "allowedApprovalPolicies": [everything, "never"], "allowedSandboxModes": null, "allowedWebSearchModes": null,
        "featureRequirements": null, "enforceResidency": null, "network": null } });
    assert_eq!(stripped::<ConfigRequirementsReadResponse>(&requirements), requirements);
    let config = json!({ "config": { "approvals_reviewer": "user", "approval_policy": granular(), "apps": {} }, "origins": {} });
    let seen = stripped::<ConfigReadResponse>(&config);
    assert_eq!(seen["config"]["approvals_reviewer"], "user");
    assert_eq!(seen["config"]["approval_policy"]["granular"]["rules"], true);
    assert_eq!(seen["config"]["apps"], Value::Null);
}

#[test]
fn other_experimental_fields_are_stripped_from_what_the_server_sends() {
    let resolved = json!({ "threadId": THREAD, "requestId": 7 });
    let mut with_reason = resolved.clone();
    with_reason["reason"] = json!("suspended");
    assert_eq!(stripped::<ServerRequestResolvedNotification>(&with_reason), resolved);
    let change = json!({ "threadId": THREAD, "turnId": "u", "itemId": "call_1", "startedAtMs": 0, "reason": null, "grantRoot": null });
    let mut with_operation = change.clone();
    with_operation["operationId"] = json!("t:u:call_1");
    with_operation["argumentsDigest"] = json!("sha256:00");
    assert_eq!(stripped::<FileChangeRequestApprovalParams>(&with_operation), change);
}

/// The methods known clients ask the capability for.
const KNOWN_EXPERIMENTAL: [&str; 12] = [
    "thread/increment_elicitation",
    "thread/decrement_elicitation",
    "thread/backgroundTerminals/clean",
    "thread/realtime/start",
    "thread/realtime/appendAudio",
    "thread/realtime/appendText",
    "thread/realtime/stop",
    "collaborationMode/list",
    "mock/experimentalMethod",
    "fuzzyFileSearch/sessionStart",
    "fuzzyFileSearch/sessionUpdate",
    "fuzzyFileSearch/sessionStop",
];

#[test]
fn an_experimental_method_is_refused_by_its_name() {
    let tables = [CLIENT_REQUESTS, SERVER_REQUESTS, SERVER_NOTIFICATIONS, CLIENT_NOTIFICATIONS];
    for method in tables.into_iter().flatten() {
        let expected = (method.stage != MethodStage::Stable).then_some(method.name);
        assert_eq!(method.experimental_descriptor(), expected, "{}", method.name);
    }
    for name in KNOWN_EXPERIMENTAL {
        let method = CLIENT_REQUESTS.iter().find(|method| method.name == name).expect("the table has it");
        assert_eq!(method.experimental_descriptor(), Some(name));
    }
}
