"""Events of a turn: a closed set for `match`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from typing import Any, TypeAlias

from oarlock_protocol import (
    SERVER_NOTIFICATIONS,
    AgentMessageDeltaNotification,
    CommandExecutionOutputDeltaNotification,
    ConfigWarningNotification,
    ErrorNotification,
    ItemCompletedNotification,
    ItemStartedNotification,
    McpToolCallProgressNotification,
    ReasoningSummaryTextDeltaNotification,
    ReasoningTextDeltaNotification,
    ThreadTokenUsageUpdatedNotification,
    TokenUsageBreakdown,
    TurnCompletedNotification,
    TurnDiffUpdatedNotification,
    TurnPlanUpdatedNotification,
    TurnStartedNotification,
    WireModel,
)
from pydantic import ValidationError

from ._pending import Pending
from ._results import Usage
from ._typing import JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened in a turn."""

    seq: int = 0
    """Grows within a task. Deltas may share that of the event before them."""

    def to_json(self) -> Mapping[str, JSON]:
        """As JSON, with the kind of the event as `type`; fit for server-sent events with `seq` as their id."""
        return {"type": _snake(type(self).__name__), **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStarted(Event):
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCompleted(Event):
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPausedEvent(Event):
    """The turn can do nothing more until somebody decides."""

    turn_id: str
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnInterruptedEvent(Event):
    turn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailedEvent(Event):
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
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStarted(Event):
    item: WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCompleted(Event):
    item: WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput(Event):
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanUpdated(Event):
    steps: Sequence[Mapping[str, JSON]]
    explanation: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffUpdated(Event):
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
    item_id: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequestFinished(Event):
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpawned(Event):
    path: tuple[str, ...]
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFinished(Event):
    path: tuple[str, ...]
    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageUpdated(Event):
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
    if isinstance(value, WireModel):
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


def usage_of(tokens: TokenUsageBreakdown) -> Usage:
    return Usage(
        input_tokens=tokens.input_tokens,
        cached_input_tokens=tokens.cached_input_tokens,
        output_tokens=tokens.output_tokens,
        reasoning_tokens=tokens.reasoning_output_tokens,
    )


def read_notification(method: str, params: Any) -> Any:
    """The params as their model; nothing for a method this release does not know, or params it cannot read."""
    table: Mapping[str, Any] = SERVER_NOTIFICATIONS
    row = table.get(method)
    if row is None:
        return None
    try:
        return row.read_params(params)
    except ValidationError:
        return None


def _turn_ended(seq: int, notification: TurnCompletedNotification) -> list[Event]:
    turn = notification.turn
    match turn.status:
        case "failed":
            error = turn.error.to_wire() if turn.error else {"message": "the turn failed"}
            return [TurnFailedEvent(seq=seq, turn_id=turn.id, error=error)]
        case "interrupted":
            return [TurnInterruptedEvent(seq=seq, turn_id=turn.id)]
        case _:
            return [TurnCompleted(seq=seq, turn_id=turn.id)]


_READERS: dict[str, Callable[[int, Any], list[Event]]] = {}


def _on(model: type[Any], make: Callable[[int, Any], list[Event]]) -> None:
    _READERS[model.__name__] = make


_on(AgentMessageDeltaNotification, lambda seq, n: [TextDelta(seq=seq, item_id=n.item_id, text=n.delta)])
_on(ReasoningTextDeltaNotification, lambda seq, n: [ReasoningDelta(seq=seq, item_id=n.item_id, text=n.delta)])
_on(ReasoningSummaryTextDeltaNotification, lambda seq, n: [ReasoningDelta(seq=seq, item_id=n.item_id, text=n.delta)])
_on(CommandExecutionOutputDeltaNotification, lambda seq, n: [CommandOutput(seq=seq, item_id=n.item_id, text=n.delta)])
_on(ItemStartedNotification, lambda seq, n: [ItemStarted(seq=seq, item=n.item)])
_on(ItemCompletedNotification, lambda seq, n: [ItemCompleted(seq=seq, item=n.item)])
_on(McpToolCallProgressNotification, lambda seq, n: [ToolProgress(seq=seq, item_id=n.item_id, text=n.message)])
_on(TurnStartedNotification, lambda seq, n: [TurnStarted(seq=seq, turn_id=n.turn.id)])
_on(TurnCompletedNotification, _turn_ended)
_on(TurnDiffUpdatedNotification, lambda seq, n: [DiffUpdated(seq=seq, diff=n.diff)])
_on(
    TurnPlanUpdatedNotification,
    lambda seq, n: [PlanUpdated(seq=seq, steps=[step.to_wire() for step in n.plan], explanation=n.explanation)],
)
_on(
    ThreadTokenUsageUpdatedNotification,
    lambda seq, n: [
        ModelRequestFinished(seq=seq, usage=usage_of(n.token_usage.last)),
        UsageUpdated(seq=seq, usage=usage_of(n.token_usage.total)),
    ],
)
_on(
    ErrorNotification,
    lambda seq, n: [Notice(seq=seq, message=n.error.message)],
)
_on(ConfigWarningNotification, lambda seq, n: [Notice(seq=seq, message=n.summary)])

# States of the connection and of the thread, which the SDK itself follows.
_QUIET = {"thread/started", "thread/status/changed", "operation/updated", "serverRequest/resolved", "thread/closed"}


def events_of(seq: int, method: str, params: Any, read: Any) -> list[Event]:
    """The events that a notification makes."""
    if read is not None and (make := _READERS.get(type(read).__name__)):
        return make(seq, read)
    if method in _QUIET:
        return []
    return [Raw(seq=seq, method=method, params=params if isinstance(params, Mapping) else {})]
