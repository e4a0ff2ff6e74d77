"""Decisions about what waits, and how they are written on the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import oarlock_protocol as protocol

from ._errors import ConfigError
from ._records import record
from ._typing import JSON


@record()
class Approve:
    """Run it. With `scope="session"`, also the same thing again for as long as the task lives."""

    scope: Literal["call", "session"] = "call"


@record()
class Reject:
    """Do not run it."""

    message: str | None = None
    """Shown to the model."""
    end_turn: bool = False


@record()
class Defer:
    """Not by me, not now: it waits for somebody else."""

    note: str | None = None
    """For operators; never shown to the model."""


@record()
class Replace:
    """Run something else instead: a command, or the same tool with other arguments."""

    command: Sequence[str] | None = None
    arguments: Mapping[str, JSON] | None = None

    def __post_init__(self) -> None:
        if (self.command is None) == (self.arguments is None):
            raise ConfigError("Replace takes exactly one of `command` and `arguments`")


@record()
class Respond:
    """Run nothing and give this result."""

    result: JSON
    success: bool = True


@record()
class Answer:
    """Answers questions of the agent, by their ids."""

    answers: Mapping[str, str | Sequence[str]]


@record()
class Grant:
    """Grants permissions that were asked for; never more."""

    permissions: Mapping[str, JSON]
    scope: Literal["turn", "session"] = "turn"


@record()
class Retry:
    """Run it again; only where the outcome is unknown."""


Decision: TypeAlias = Approve | Reject | Defer | Replace | Respond | Answer | Grant | Retry


def text_of(result: JSON) -> str:
    """A result as the model reads it: text as it is, the rest as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)


def _items(text: str) -> list[protocol.DynamicToolCallOutputContentItem]:
    return [protocol.DynamicToolCallOutputContentItemInputText(text=text)]


def _answers(answers: Mapping[str, str | Sequence[str]]) -> dict[str, dict[str, list[str]]]:
    return {key: {"answers": [given] if isinstance(given, str) else list(given)} for key, given in answers.items()}


def to_wire(decision: Decision) -> protocol.OperationDecision | None:
    """As `operation/decide` takes it; nothing for a decision that leaves the question open."""
    match decision:
        case Approve(scope=scope):
            return protocol.OperationDecisionApprove(scope=scope)
        case Reject(message=message, end_turn=end_turn):
            return protocol.OperationDecisionReject(message=message, end_turn=end_turn)
        case Replace(command=command, arguments=arguments):
            if command is not None:
                return protocol.OperationDecisionReplace(command=list(command))
            return protocol.OperationDecisionReplace(arguments=dict(arguments or {}))
        case Respond(result=result, success=success):
            return protocol.OperationDecisionRespond(content_items=_items(text_of(result)), success=success)
        case Answer(answers=answers):
            return protocol.OperationDecisionRespond(
                content_items=_items(json.dumps({"answers": _answers(answers)})), success=True
            )
        case Grant(permissions=permissions, scope=scope):
            granted = json.dumps({"permissions": dict(permissions), "scope": scope})
            return protocol.OperationDecisionRespond(content_items=_items(granted), success=True)
        case Retry():
            return protocol.OperationDecisionRetry()
        case Defer():
            return None


def name_of(decision: Decision) -> str:
    """As `Pending.allowed` lists it."""
    return type(decision).__name__.lower()
