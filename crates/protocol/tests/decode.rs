//! Errors of `decode` contain serde's text, which existing clients compare, and our path.

#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use oarlock_protocol::*;
use serde_json::{Value, json};

type Refusal = fn(&str) -> DecodeError;

fn refusal<T: Payload>(text: &str) -> DecodeError {
    match decode::<T>(text) {
        Ok(_) => panic!("should not decode: {text}"),
        Err(error) => error,
    }
}

/// Rows of payload, sentence and path.
fn check(rows: &[(Refusal, Value, &str, &str)]) {
    for (refusal, payload, sentence, path) in rows {
        let error = refusal(&payload.to_string());
        assert_eq!((error.to_string().as_str(), error.path()), (*sentence, *path), "{payload}");
    }
}

#[test]
fn a_missing_field_at_the_top_keeps_serdes_words() {
    check(&[
        (refusal::<ThreadReadParams>, json!({}), "missing field `threadId`", "threadId"),
        (refusal::<TurnStartParams>, json!({ "threadId": "t" }), "missing field `input`", "input"),
        (refusal::<TurnStartParams>, json!({ "input": [] }), "missing field `threadId`", "threadId"),
        (
            refusal::<FsCopyParams>,
            json!({ "sourcePath": "/a" }),
            "missing field `destinationPath`",
            "destinationPath",
        ),
        (refusal::<ThreadGoalSetParams>, json!({ "objective": "o" }), "missing field `threadId`", "threadId"),
    ]);
}

#[test]
fn a_missing_field_further_in_has_its_whole_path() {
    let input = |element: Value| json!({ "threadId": "t", "input": [element] });
    let history = |item: Value| json!({ "threadId": "t", "part": 0, "items": [item] });
    check(&[
        (
            refusal::<TurnStartParams>,
            input(json!({ "type": "text" })),
            "missing field `text` at `input[0].text`",
            "input[0].text",
        ),
        (
            refusal::<TurnStartParams>,
            json!({ "threadId": "t", "input": [{ "type": "text", "text": "a" }, { "type": "skill", "name": "s" }] }),
            "missing field `path` at `input[1].path`",
            "input[1].path",
        ),
        (
            refusal::<InitializeParams>,
            json!({ "clientInfo": { "name": "n" } }),
            "missing field `version` at `clientInfo.version`",
            "clientInfo.version",
        ),
        (
            refusal::<TurnStartParams>,
            input(json!({ "type": "text", "text": "a", "text_elements": [{ "byteRange": { "start": 0 } }] })),
            "missing field `end` at `input[0].text_elements[0].byteRange.end`",
            "input[0].text_elements[0].byteRange.end",
        ),
        (
            refusal::<RolloutLoadParams>,
            history(
                json!({ "ordinal": 0, "kind": "operation", "state": "started", "operationId": "o", "attempt": 1 }),
            ),
            "missing field `executor` at `items[0].executor`",
            "items[0].executor",
        ),
        (
            refusal::<RolloutLoadParams>,
            history(
                json!({ "ordinal": 0, "kind": "responseItem", "item": { "type": "function_call", "name": "n", "call_id": "c" } }),
            ),
            "missing field `arguments` at `items[0].item.arguments`",
            "items[0].item.arguments",
        ),
    ]);
}

#[test]
fn a_wrong_type_has_its_whole_path() {
    let input = |element: Value| json!({ "threadId": "t", "input": [element] });
    check(&[
        (
            refusal::<ThreadReadParams>,
            json!({ "threadId": 5 }),
            "invalid type: integer `5`, expected a string at `threadId`",
            "threadId",
        ),
        (
            refusal::<TurnStartParams>,
            input(json!({ "type": "text", "text": 5 })),
            "invalid type: integer `5`, expected a string at `input[0].text`",
            "input[0].text",
        ),
        (
            refusal::<CommandExecParams>,
            json!({ "command": ["ls", 7] }),
            "invalid type: integer `7`, expected a string at `command[1]`",
            "command[1]",
        ),
        (
            refusal::<ThreadListParams>,
            json!({ "archived": "yes" }),
            "invalid type: string \"yes\", expected a boolean at `archived`",
            "archived",
        ),
        (
            refusal::<ThreadStartParams>,
            json!({ "approvalPolicy": { "granular": { "sandbox_approval": 1, "rules": true, "mcp_elicitations": true } } }),
            "invalid type: integer `1`, expected a boolean at `approvalPolicy.granular.sandbox_approval`",
            "approvalPolicy.granular.sandbox_approval",
        ),
        (
            refusal::<TurnStartParams>,
            json!({ "threadId": "t", "input": [], "additionalContext": { "host/clock": { "value": 5, "kind": "untrusted" } } }),
            "invalid type: integer `5`, expected a string at `additionalContext.host/clock.value`",
            "additionalContext.host/clock.value",
        ),
    ]);
}

#[test]
fn untagged_unions_name_the_field_they_are_in() {
    let elicitation = |schema: Value| {
        json!({ "threadId": "t", "serverName": "s", "mode": "form", "message": "m",
            "requestedSchema": { "type": "object", "properties": { "berth": schema } } })
    };
    let none_of = |name: &str| format!("data did not match any variant of untagged enum {name}");
    check(&[
        (
            refusal::<ThreadListParams>,
            json!({ "cwd": 5 }),
            &format!("{} at `cwd`", none_of("ThreadListCwd")),
            "cwd",
        ),
        (
            refusal::<ServerRequestResolvedNotification>,
            json!({ "threadId": "t", "requestId": true }),
            &format!("{} at `requestId`", none_of("RequestId")),
            "requestId",
        ),
        (
            refusal::<GetConversationSummaryParams>,
            json!({ "conversationId": 5 }),
            &format!("{} at `conversationId`", none_of("GetConversationSummaryParams")),
            "conversationId",
        ),
        (
            refusal::<TurnStartParams>,
            json!({ "threadId": "t", "input": [], "toolOutput": { "name": "n", "output": [{ "type": "input_text" }] } }),
            &format!("{} at `toolOutput.output[0].text`", none_of("FunctionCallOutputBody")),
            "toolOutput.output[0].text",
        ),
        (
            refusal::<McpServerElicitationRequestParams>,
            elicitation(json!({ "type": "string", "format": "emoji" })),
            &format!(
                "{} at `requestedSchema.properties.berth.format`",
                none_of("McpElicitationPrimitiveSchema")
            ),
            "requestedSchema.properties.berth.format",
        ),
    ]);
}

#[test]
fn unknown_tags_and_words_list_the_known_ones() {
    let input = |element: Value| json!({ "threadId": "t", "input": [element] });
    let inputs = "expected one of `text`, `image`, `localImage`, `skill`, `mention`";
    check(&[
        (
            refusal::<TurnStartParams>,
            input(json!({ "type": "video", "url": "u" })),
            &format!("unknown variant `video`, {inputs} at `input[0].type`"),
            "input[0].type",
        ),
        (
            refusal::<TurnStartParams>,
            input(json!({ "url": "u" })),
            "missing field `type` at `input[0].type`",
            "input[0].type",
        ),
        (
            refusal::<ThreadListParams>,
            json!({ "sortKey": "x" }),
            "unknown variant `x`, expected one of `created_at`, `updated_at`, `recency_at`, `section_position` at `sortKey`",
            "sortKey",
        ),
        (
            refusal::<ThreadStartParams>,
            json!({ "approvalPolicy": "sometimes" }),
            "unknown variant `sometimes`, expected one of `untrusted`, `on-failure`, `on-request`, `never`, `granular` at `approvalPolicy`",
            "approvalPolicy",
        ),
        (
            refusal::<EnvironmentAddParams>,
            json!({ "environmentId": "e", "environment": { "type": "remote", "cwd": "/w" } }),
            "unknown variant `remote`, expected `local` or `command` at `environment.type`",
            "environment.type",
        ),
        (
            refusal::<FileChangeRequestApprovalResponse>,
            json!({ "decision": { "perhaps": {} } }),
            "unknown variant `perhaps`, expected one of `accept`, `acceptForSession`, `acceptWithArguments`, `respond`, `decline`, `cancel`, `defer` at `decision`",
            "decision",
        ),
    ]);
}

#[test]
fn numbers_out_of_range_name_the_type_and_the_field() {
    let item = |field: &str, value: Value| {
        let mut item = json!({ "type": "commandExecution", "id": "i", "command": "c", "cwd": "/w", "status": "failed", "commandActions": [] });
        item[field] = value;
        json!({ "item": item, "threadId": "t", "turnId": "u" })
    };
    check(&[
        (
            refusal::<ThreadRollbackParams>,
            json!({ "threadId": "t", "numTurns": -1 }),
            "invalid value: integer `-1`, expected u32 at `numTurns`",
            "numTurns",
        ),
        (
            refusal::<CommandExecResizeParams>,
            json!({ "processId": "p", "size": { "rows": 65_536, "cols": 80 } }),
            "invalid value: integer `65536`, expected u16 at `size.rows`",
            "size.rows",
        ),
        (
            refusal::<ThreadRollbackParams>,
            json!({ "threadId": "t", "numTurns": 1.5 }),
            "invalid type: floating point `1.5`, expected u32 at `numTurns`",
            "numTurns",
        ),
        (
            refusal::<ItemCompletedNotification>,
            item("exitCode", json!(3_000_000_000_i64)),
            "invalid value: integer `3000000000`, expected i32 at `item.exitCode`",
            "item.exitCode",
        ),
        (
            refusal::<ItemCompletedNotification>,
            item("durationMs", json!(u64::MAX)),
            "invalid value: integer `18446744073709551615`, expected i64 at `item.durationMs`",
            "item.durationMs",
        ),
    ]);
}

#[test]
fn a_relative_path_is_refused_in_the_words_clients_know() {
    let words = "AbsolutePathBuf deserialized without a base path";
    let roots = json!({ "type": "workspaceWrite", "writableRoots": ["/w", "build"] });
    check(&[
        (
            refusal::<FsReadFileParams>,
            json!({ "path": "data/husum.csv" }),
            &format!("{words} at `path`"),
            "path",
        ),
        (refusal::<FsReadFileParams>, json!({ "path": "" }), &format!("{words} at `path`"), "path"),
        (refusal::<FsReadFileParams>, json!({ "path": "C:" }), &format!("{words} at `path`"), "path"),
        (
            refusal::<PluginListParams>,
            json!({ "cwds": ["/w", "./here"] }),
            &format!("{words} at `cwds[1]`"),
            "cwds[1]",
        ),
        (
            refusal::<TurnStartParams>,
            json!({ "threadId": "t", "input": [], "sandboxPolicy": roots }),
            &format!("{words} at `sandboxPolicy.writableRoots[1]`"),
            "sandboxPolicy.writableRoots[1]",
        ),
        (
            refusal::<EnvironmentAddParams>,
            json!({ "environmentId": "e", "environment": { "type": "local", "cwd": "src" } }),
            &format!("{words} at `environment.cwd`"),
            "environment.cwd",
        ),
    ]);
    for absolute in ["/w", "C:\\w", "c:/w", "\\\\server\\share"] {
        let path = decode::<FsReadFileParams>(&json!({ "path": absolute }).to_string())
            .expect("an absolute path")
            .path;
        assert_eq!(path.as_str(), absolute);
    }
}

#[test]
fn fields_closed_types_do_not_know_are_named() {
    let permissions =
        json!({ "threadId": "t", "turnId": "u", "itemId": "i", "permissions": { "camera": true } });
    check(&[(
        refusal::<PermissionsRequestApprovalParams>,
        permissions,
        "unknown field `camera`, expected `network` or `fileSystem` at `permissions.camera`",
        "permissions.camera",
    )]);
    decode::<ThreadReadParams>(r#"{"threadId":"t","addedLater":{"a":[1]}}"#)
        .expect("open types ignore what they do not know");
}

#[test]
fn methods_without_params_take_null_and_an_empty_object() {
    for text in ["null", "{}", "[]", r#"{"ignored":true}"#] {
        assert_eq!(decode::<NoParams>(text).expect("anything will do"), NoParams);
    }
    assert_eq!(serde_json::to_string(&NoParams).expect("it can be written"), "null");
    check(&[(
        refusal::<ThreadReadParams>,
        Value::Null,
        "invalid type: null, expected struct ThreadReadParams",
        "",
    )]);
}

#[test]
fn missing_null_and_a_value_are_three_things() {
    type Tier = TriState<ServiceTier>;
    let tier = |text: &str| -> Tier { decode::<ThreadStartParams>(text).expect("it decodes").service_tier };
    assert_eq!(tier("{}"), TriState::Keep);
    assert_eq!(tier(r#"{"serviceTier":null}"#), TriState::Clear);
    assert_eq!(tier(r#"{"serviceTier":"fast"}"#), TriState::Set(ServiceTier::Fast));
    assert_eq!(
        tier(r#"{"serviceTier":"priority-eu"}"#),
        TriState::Set(ServiceTier::Other("priority-eu".to_owned()))
    );
    assert_eq!(TriState::Keep.apply(Some(1)), Some(1));
    assert_eq!(TriState::Clear.apply(Some(1)), None);
    assert_eq!(TriState::Set(2).apply(Some(1)), Some(2));
    check(&[(
        refusal::<ThreadGoalSetParams>,
        json!({ "threadId": "t", "tokenBudget": "all" }),
        "invalid type: string \"all\", expected i64 at `tokenBudget`",
        "tokenBudget",
    )]);
}

#[test]
fn broken_json_has_an_error_without_a_position() {
    let sentences = [
        ("", "EOF while parsing a value"),
        ("{", "EOF while parsing an object"),
        (r#"{"threadId":"t"} {}"#, "trailing characters"),
        (r#"{"threadId":"t","threadId":"t"}"#, "duplicate field `threadId`"),
        (r#"{"threadId":"\ud800"}"#, "unexpected end of hex escape"),
    ];
    for (text, sentence) in sentences {
        assert_eq!(refusal::<ThreadReadParams>(text).to_string(), sentence, "{text}");
    }
    let deep = format!(r#"{{"threadId":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(
        refusal::<ThreadReadParams>(&deep).to_string().contains("expected a string"),
        "no stack overflow either"
    );
}

#[test]
fn the_usual_mode_has_older_names() {
    for name in ["default", "code", "pair_programming", "execute", "custom"] {
        let mode = json!({ "mode": name, "settings": { "model": "m" } });
        let text = json!({ "threadId": "t", "input": [], "collaborationMode": mode }).to_string();
        let params = decode::<TurnStartParams>(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(params.collaboration_mode.map(|mode| mode.mode), Some(ModeKind::Default), "{name}");
    }
}
