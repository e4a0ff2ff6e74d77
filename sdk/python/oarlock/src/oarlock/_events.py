"""Events of a turn: a closed set for `match`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeAlias

import oarlock_protocol as protocol
from pydantic_core import ValidationError

from ._pending import Pending
from ._results import Usage
from ._typing import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a turn."""

    seq: int = 0
    """Its place in the task's record, the same in every process. What is not recorded has that of the event before."""

    def to_json(self) -> Mapping[str, JSON]:
        """As JSON, with the kind of the event as `type`; fit for server-sent events with `seq` as their id."""
        return {"type": _snake(type(self).__name__), **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    """A turn began."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted(Event):
    """The turn is done."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPausedEvent(Event):
    """The turn can do nothing more until somebody decides."""

    turn_id: str
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterruptedEvent(Event):
    """The turn was stopped."""

    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailedEvent(Event):
    """The turn failed; the task can go on with another one."""

    turn_id: str
    error: Mapping[str, JSON]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """More text of the agent's message."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDelta(Event):
    """A structured answer as far as it has arrived, unvalidated."""

    partial: JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningDelta(Event):
    """More of the model's reasoning."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStarted(Event):
    """An item of the turn began: a message, a command, a call."""

    item: protocol.WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompleted(Event):
    """An item of the turn is over, with all that belongs to it."""

    item: protocol.WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput(Event):
    """More output of a command."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpdated(Event):
    """The agent made or changed its plan."""

    steps: Sequence[Mapping[str, JSON]]
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffUpdated(Event):
    """What the turn changed in files so far, as a unified diff."""

    diff: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPending(Event):
    """A call waits for a decision."""

    call: Pending


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDecided(Event):
    """A call was decided, here or elsewhere."""

    operation_id: str
    tool: str
    decision: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """A tool that runs said how far it is."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequestFinished(Event):
    """The model answered one request."""

    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpawned(Event):
    """A child agent was started."""

    path: tuple[str, ...]
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinished(Event):
    """A child agent is done."""

    path: tuple[str, ...]
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageUpdated(Event):
    """Tokens of the task so far."""

    usage: Usage
    """Of the whole task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(Event):
    """Something to know: a warning of the host, a policy that raised, a changed definition."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw(Event):
    """A notification that this release of the SDK has no event for."""

    method: str
    params: Mapping[str, JSON]


AnyEvent: TypeAlias = (
    TurnStarted
    | TurnCompleted
    | TurnPausedEvent
    | TurnInterruptedEvent
    | TurnFailedEvent
    | TextDelta
    | OutputDelta
    | ReasoningDelta
    | ItemStarted
    | ItemCompleted
    | CommandOutput
    | PlanUpdated
    | DiffUpdated
    | ToolPending
    | ToolDecided
    | ToolProgress
    | ModelRequestFinished
    | AgentSpawned
    | AgentFinished
    | UsageUpdated
    | Notice
    | Raw
)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Event")).lower()


def _plain(value: Any) -> JSON:
    if isinstance(value, protocol.WireModel):
        return value.to_wire()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if f.name != "deps"}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Sequence | frozenset | set):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return repr(value)


def usage_of(tokens: protocol.TokenUsageBreakdown) -> Usage:
    return Usage(
        input_tokens=tokens.input_tokens,
        cached_input_tokens=tokens.cached_input_tokens,
        output_tokens=tokens.output_tokens,
        reasoning_tokens=tokens.reasoning_output_tokens,
    )


def read_notification(method: str, params: Any) -> Any:
    """The params as their model; nothing for a method this release does not know, or params it cannot read."""
    table: Mapping[str, Any] = protocol.SERVER_NOTIFICATIONS
    row = table.get(method)
    if row is None:
        return None
    try:
        return row.read_params(params)
    except ValidationError:
        return None


def turn_ended(seq: int, turn: protocol.Turn) -> Event:
    match turn.status:
        case "failed":
            error = turn.error.to_wire() if turn.error else {"message": "the turn failed"}
            return TurnFailedEvent(seq=seq, turn_id=turn.id, error=error)
        case "interrupted":
            return TurnInterruptedEvent(seq=seq, turn_id=turn.id)
        case _:
            return TurnCompleted(seq=seq, turn_id=turn.id)


# By method: nothing of the generated models is needed before the first notification is read.
_READERS: dict[str, Callable[[int, Any], list[Event]]] = {
    "item/agentMessage/delta": lambda seq, n: [TextDelta(seq=seq, item_id=n.item_id, text=n.delta)],
    "item/reasoning/textDelta": lambda seq, n: [ReasoningDelta(seq=seq, item_id=n.item_id, text=n.delta)],
    "item/reasoning/summaryTextDelta": lambda seq, n: [ReasoningDelta(seq=seq, item_id=n.item_id, text=n.delta)],
    "item/commandExecution/outputDelta": lambda seq, n: [CommandOutput(seq=seq, item_id=n.item_id, text=n.delta)],
    "item/started": lambda seq, n: [ItemStarted(seq=seq, item=n.item)],
    "item/completed": lambda seq, n: [ItemCompleted(seq=seq, item=n.item)],
    "item/mcpToolCall/progress": lambda seq, n: [ToolProgress(seq=seq, item_id=n.item_id, text=n.message)],
    "turn/started": lambda seq, n: [TurnStarted(seq=seq, turn_id=n.turn.id)],
    "turn/completed": lambda seq, n: [turn_ended(seq, n.turn)],
    "turn/diff/updated": lambda seq, n: [DiffUpdated(seq=seq, diff=n.diff)],
    "turn/plan/updated": lambda seq, n: [
        PlanUpdated(seq=seq, steps=[step.to_wire() for step in n.plan], explanation=n.explanation)
    ],
    "thread/tokenUsage/updated": lambda seq, n: [
        ModelRequestFinished(seq=seq, usage=usage_of(n.token_usage.last)),
        UsageUpdated(seq=seq, usage=usage_of(n.token_usage.total)),
    ],
    "error": lambda seq, n: [Notice(seq=seq, message=n.error.message)],
    "configWarning": lambda seq, n: [Notice(seq=seq, message=n.summary)],
}

# States of the connection and of the thread, which the SDK itself follows.
_QUIET = {"thread/started", "thread/status/changed", "operation/updated", "serverRequest/resolved", "thread/closed"}


def events_of(seq: int, method: str, params: Any, read: Any) -> list[Event]:
    """The events that a notification makes."""
    if read is not None and (make := _READERS.get(method)):
        return make(seq, read)
    if method in _QUIET:
        return []
    return [Raw(seq=seq, method=method, params=params if isinstance(params, Mapping) else {})]
