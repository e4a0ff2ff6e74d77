"""How single models read and write."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from oarlock_protocol import (
    AskForApprovalGranular,
    CodexErrorInfo,
    CodexErrorInfoHttpConnectionFailed,
    DelegationLimits,
    ItemCompletedNotification,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    McpElicitationLegacyTitledEnumSchema,
    McpElicitationPrimitiveSchema,
    McpElicitationUntitledSingleSelectEnumSchema,
    McpServerElicitationRequestResponse,
    PlanType,
    PluginSource,
    RolloutItem,
    RolloutItemOperationStarted,
    RolloutItemTurnStarted,
    SandboxPolicy,
    ThreadItem,
    ThreadItemAgentMessage,
    ThreadMetadataGitInfoUpdateParams,
    ThreadReadParams,
    ThreadStartParams,
    TurnStartParams,
    UnknownCodexErrorInfo,
    UnknownPluginSource,
    UnknownRolloutItem,
    UnknownRolloutItemOperation,
    UnknownThreadItem,
    UnknownVariant,
    UserInputText,
    WireModel,
    read,
    write,
)

ITEM = {"type": "agentMessage", "id": "i1", "text": "hello"}
STARTED = {
    "kind": "operation",
    "state": "started",
    "ordinal": 7,
    "operationId": "t:u:c",
    "attempt": 1,
    "executor": "runtime",
}


def check(form: Any, wire: Any, arm: type[Any]) -> Any:
    """Reads the wire value as the given arm and writes it back, byte for byte."""
    value = read(form, wire)
    assert type(value) is arm
    assert json.dumps(write(value), sort_keys=True) == json.dumps(wire, sort_keys=True)
    return value


def refuse(form: Any, wire: Any) -> None:
    with pytest.raises(ValidationError):
        read(form, wire)


def test_a_tagged_union_gives_the_arm_of_its_tag() -> None:
    assert check(ThreadItem, ITEM, ThreadItemAgentMessage).text == "hello"


def test_an_unknown_arm_is_kept() -> None:
    item = check(ThreadItem, {"type": "hologram", "id": "i1", "beams": [1, {"x": None}]}, UnknownThreadItem)
    assert isinstance(item, UnknownVariant)
    assert item.model_extra == {"id": "i1", "beams": [1, {"x": None}]}


def test_an_unknown_arm_is_kept_inside_a_message() -> None:
    wire = {"item": {"type": "hologram", "id": "i1"}, "threadId": "t", "turnId": "u"}
    assert type(check(ItemCompletedNotification, wire, ItemCompletedNotification).item) is UnknownThreadItem


def test_a_known_arm_with_a_wrong_body_is_an_error() -> None:
    refuse(ThreadItem, {"type": "agentMessage", "id": "i1"})
    refuse(ThreadItem, {"type": "agentMessage", "id": "i1", "text": 5})


def test_a_tag_that_is_missing_or_no_string_is_an_error() -> None:
    refuse(ThreadItem, {"id": "i1", "text": "hello"})
    refuse(ThreadItem, {"type": 5})
    refuse(ThreadItem, "agentMessage")


def test_a_union_of_one_keeps_what_it_may_grow() -> None:
    check(PluginSource, {"type": "git", "url": "u"}, UnknownPluginSource)
    refuse(PluginSource, {"type": "local"})


def test_a_union_inside_a_union_has_a_tag_of_its_own() -> None:
    check(RolloutItem, STARTED, RolloutItemOperationStarted)
    check(RolloutItem, {"kind": "turnStarted", "ordinal": 1, "turnId": "u", "atMs": 2}, RolloutItemTurnStarted)
    check(RolloutItem, {**STARTED, "state": "paused"}, UnknownRolloutItemOperation)
    check(RolloutItem, {**STARTED, "kind": "weather"}, UnknownRolloutItem)
    refuse(RolloutItem, {**STARTED, "attempt": "one"})
    refuse(RolloutItem, {"kind": "operation", "ordinal": 7})


def test_an_arm_made_by_hand_writes_its_tags() -> None:
    assert UserInputText(text="hi").to_wire() == {"type": "text", "text": "hi"}
    operation = RolloutItemOperationStarted(ordinal=7, operation_id="t:u:c", attempt=1, executor="runtime")
    assert operation.to_wire() == STARTED
    assert UnknownRolloutItemOperation(state="paused").to_wire() == {"kind": "operation", "state": "paused"}
    assert TurnStartParams(thread_id="t", input=[UserInputText(text="hi")]).to_wire() == {
        "threadId": "t",
        "input": [{"type": "text", "text": "hi"}],
    }


def test_an_enum_keeps_strings_it_does_not_know() -> None:
    check(PlanType, "plus", str)
    check(PlanType, "galactic", str)
    refuse(PlanType, 5)


def test_a_keyed_union_is_strings_and_objects_known_and_unknown() -> None:
    check(CodexErrorInfo, "other", str)
    check(CodexErrorInfo, "brandNew", str)
    wire = {"httpConnectionFailed": {"httpStatusCode": 502}}
    failed = check(CodexErrorInfo, wire, CodexErrorInfoHttpConnectionFailed)
    assert failed.http_connection_failed.http_status_code == 502
    check(CodexErrorInfo, {"brandNew": {"a": [1]}}, UnknownCodexErrorInfo)
    refuse(CodexErrorInfo, {"httpConnectionFailed": {"httpStatusCode": "502"}})
    refuse(CodexErrorInfo, 5)


def test_a_keyed_arm_made_by_hand_is_taken_and_written() -> None:
    failed = CodexErrorInfoHttpConnectionFailed.from_wire({"httpConnectionFailed": {}})
    assert write(read(CodexErrorInfo, failed)) == {"httpConnectionFailed": {}}
    wire = {"granular": {"sandbox_approval": True, "rules": False, "mcp_elicitations": True}}
    assert ThreadStartParams(approval_policy=AskForApprovalGranular.from_wire(wire)).to_wire() == {
        "approvalPolicy": wire
    }


def test_names_and_wire_names_are_both_accepted() -> None:
    by_name = ThreadStartParams(model_provider="p")
    assert (
        by_name
        == ThreadStartParams.from_wire({"modelProvider": "p"})
        == ThreadStartParams.model_validate({"model_provider": "p"})
    )
    assert by_name.model_provider == "p"
    assert by_name.to_wire() == {"modelProvider": "p"}


def test_wire_names_that_are_not_camel_case_are_exact() -> None:
    response = McpServerElicitationRequestResponse.from_wire({"action": "accept", "_meta": {"a": 1}})
    assert response.meta == {"a": 1}
    assert response.to_wire() == {"action": "accept", "_meta": {"a": 1}}
    text = UserInputText.from_wire({"type": "text", "text": "x", "text_elements": []})
    assert text.to_wire() == {"type": "text", "text": "x", "text_elements": []}


def test_names_every_model_has_get_an_underscore() -> None:
    item = read(RolloutItem, {**STARTED, "schema": 3})
    assert item.schema_ == 3
    assert item.to_wire()["schema"] == 3


def test_left_out_and_null_stay_apart() -> None:
    for wire in ({}, {"sha": None}, {"sha": "abc", "branch": None}):
        check(ThreadMetadataGitInfoUpdateParams, wire, ThreadMetadataGitInfoUpdateParams)


def test_null_is_refused_where_only_leaving_out_is_meant() -> None:
    assert ThreadReadParams.from_wire({"threadId": "t"}).exclude_turns is False
    refuse(ThreadReadParams, {"threadId": "t", "excludeTurns": None})


def test_defaults_are_read_and_not_written() -> None:
    policy = read(SandboxPolicy, {"type": "workspaceWrite"})
    assert policy.writable_roots == []
    assert policy.read_only_access.type == "fullAccess"
    assert write(policy) == {"type": "workspaceWrite"}


def test_unknown_fields_are_kept() -> None:
    text = {"type": "text", "text": "x", "sparkle": {"a": [None, 1.0]}}
    wire = {"threadId": "t", "input": [text], "newThing": {"a": None}}
    check(TurnStartParams, wire, TurnStartParams)


def test_numbers_keep_their_kind_and_size() -> None:
    for usd in (1, 1.0, 0.1, 1e300, 2**70):
        check(DelegationLimits, {"usd": usd, "tokens": 2**64 - 1, "maxDepth": 2**80}, DelegationLimits)
    for wrong in ("1", True, 1.5):
        refuse(DelegationLimits, {"maxDepth": wrong})
    content = {"action": "accept", "content": [2**70, 1.0, 1]}
    check(McpServerElicitationRequestResponse, content, McpServerElicitationRequestResponse)


def test_a_union_without_a_tag_takes_the_first_arm_that_fits() -> None:
    check(JSONRPCMessage, {"id": 1, "method": "m"}, JSONRPCRequest)
    check(JSONRPCMessage, {"method": "m", "params": None}, JSONRPCNotification)
    untitled = {"type": "string", "enum": ["a"]}
    check(McpElicitationPrimitiveSchema, untitled, McpElicitationUntitledSingleSelectEnumSchema)
    titled = {**untitled, "enumNames": ["A"]}
    check(McpElicitationPrimitiveSchema, titled, McpElicitationLegacyTitledEnumSchema)


def test_models_are_frozen() -> None:
    params = ThreadReadParams(thread_id="t")
    with pytest.raises(ValidationError):
        params.thread_id = "u"
    assert params.model_copy(update={"exclude_turns": True}).to_wire() == {"threadId": "t", "excludeTurns": True}


def test_every_model_is_a_wire_model() -> None:
    for arm in (ThreadItemAgentMessage, UnknownThreadItem, McpElicitationLegacyTitledEnumSchema):
        assert issubclass(arm, WireModel)
