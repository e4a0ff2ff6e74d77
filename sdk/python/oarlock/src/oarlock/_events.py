"""Events of a turn: a closed set for `match`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import oarlock_protocol as protocol

from ._pending import Pending
from ._records import record
from ._results import Usage
from ._typing import JSON

log = logging.getLogger("oarlock")


@record(kw_only=True)
class Event:
    """Something that happened in a turn."""

    seq: int = 0
    """Its place in the task's record, the same in every process. What is not recorded has that of the event before."""

    def to_json(self) -> Mapping[str, JSON]:
        """As JSON, with the kind of the event as `type`; fit for server-sent events with `seq` as their id."""
        return {"type": _snake(type(self).__name__), **{f.name: _plain(getattr(self, f.name)) for f in fields(self)}}


@record(kw_only=True)
class TurnStarted(Event):
    """A turn began."""

    turn_id: str


@record(kw_only=True)
class TurnCompleted(Event):
    """The turn is done."""

    turn_id: str


@record(kw_only=True)
class TurnPausedEvent(Event):
    """The turn can do nothing more until somebody decides."""

    turn_id: str
    pending: tuple[Pending, ...]


@record(kw_only=True)
class TurnInterruptedEvent(Event):
    """The turn was stopped."""

    turn_id: str


@record(kw_only=True)
class TurnFailedEvent(Event):
    """The turn failed; the task can go on with another one."""

    turn_id: str
    error: Mapping[str, JSON]


@record(kw_only=True)
class TextDelta(Event):
    """More text of the agent's message."""

    item_id: str
    text: str


@record(kw_only=True)
class OutputDelta(Event):
    """A structured answer as far as it has arrived, unvalidated."""

    partial: JSON


@record(kw_only=True)
class ReasoningDelta(Event):
    """More of the model's reasoning."""

    item_id: str
    text: str


class _ItemEvent(Event):
    """An event of an item, whose model is made when somebody looks: most programs want the text and no models."""

    __slots__ = ("_wire",)

    @classmethod
    def of(cls, seq: int, wire: Mapping[str, Any]) -> Self:
        if not isinstance(wire["type"], str):
            raise TypeError("an item without a type")
        event = cls.__new__(cls)
        object.__setattr__(event, "seq", seq)
        object.__setattr__(event, "_wire", wire)
        return event

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name != "item":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            wire = self._wire
            item = protocol.read(protocol.ThreadItem, wire)
            object.__setattr__(self, "item", item)
            return item

    def wire(self) -> Mapping[str, Any]:
        """The item as the wire has it."""
        wire: Any = getattr(self, "_wire", None)
        return wire if wire is not None else self.item.to_wire()  # type: ignore[attr-defined,no-any-return]

    def message(self) -> tuple[str, str] | None:
        """The id and the text of an item that is a message of the agent."""
        wire = self.wire()
        return (wire["id"], wire["text"]) if wire["type"] == "agentMessage" else None


@record(kw_only=True)
class ItemStarted(_ItemEvent):
    """An item of the turn began: a message, a command, a call."""

    item: protocol.WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@record(kw_only=True)
class ItemCompleted(_ItemEvent):
    """An item of the turn is over, with all that belongs to it."""

    item: protocol.WireModel
    """One of the `ThreadItem…` models of `oarlock_protocol`."""


@record(kw_only=True)
class CommandOutput(Event):
    """More output of a command."""

    item_id: str
    text: str


@record(kw_only=True)
class PlanUpdated(Event):
    """The agent made or changed its plan."""

    steps: Sequence[Mapping[str, JSON]]
    explanation: str | None


@record(kw_only=True)
class DiffUpdated(Event):
    """What the turn changed in files so far, as a unified diff."""

    diff: str


@record(kw_only=True)
class ToolPending(Event):
    """A call waits for a decision."""

    call: Pending


@record(kw_only=True)
class ToolDecided(Event):
    """A call was decided, here or elsewhere."""

    operation_id: str
    tool: str
    decision: str
    by: str


@record(kw_only=True)
class ToolProgress(Event):
    """A tool that runs said how far it is."""

    item_id: str
    text: str


@record(kw_only=True)
class ModelRequestStarted(Event):
    """The model is asked."""

    turn_id: str


@record(kw_only=True)
class ModelRequestFinished(Event):
    """The model answered one request."""

    usage: Usage
    path: tuple[str, ...] = ("root",)
    """Of the agent that asked."""


@record(kw_only=True)
class AgentSpawned(Event):
    """A child agent was started."""

    path: tuple[str, ...]
    thread_id: str


@record(kw_only=True)
class AgentFinished(Event):
    """A child agent is done."""

    path: tuple[str, ...]
    thread_id: str


@record(kw_only=True)
class PlacementProgress(Event):
    """The place in which the task runs is being made."""

    step: str
    """`pulling`, `creating`, `staging`, `workspace` or `setup`."""
    done: int
    """Bytes, or commands of the setup."""
    total: int | None = None
    line: str | None = None
    """Of the output of a setup command."""


@record(kw_only=True)
class UsageUpdated(Event):
    """Tokens of the task so far."""

    usage: Usage
    """Of all turns, without child agents."""


@record(kw_only=True)
class Notice(Event):
    """Something to know: a warning of the host, a policy that raised, a changed definition."""

    message: str


@record(kw_only=True)
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
    | ModelRequestStarted
    | ModelRequestFinished
    | AgentSpawned
    | AgentFinished
    | PlacementProgress
    | UsageUpdated
    | Notice
    | Raw
)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Event")).lower()


def _plain(value: Any) -> JSON:
    if hasattr(value, "to_wire"):
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


def usage_of(tokens: Mapping[str, Any]) -> Usage:
    """As the wire has it."""
    return Usage(
        input_tokens=tokens["inputTokens"],
        cached_input_tokens=tokens["cachedInputTokens"],
        output_tokens=tokens["outputTokens"],
        reasoning_tokens=tokens["reasoningOutputTokens"],
    )


def turn_ended(seq: int, turn_id: str, status: str, error: Mapping[str, JSON] | None) -> Event:
    """The event of a turn that is over, by its status."""
    match status:
        case "failed":
            return TurnFailedEvent(seq=seq, turn_id=turn_id, error=error or {"message": "the turn failed"})
        case "interrupted":
            return TurnInterruptedEvent(seq=seq, turn_id=turn_id)
        case _:
            return TurnCompleted(seq=seq, turn_id=turn_id)


def _ended(seq: int, n: Mapping[str, Any]) -> list[Event]:
    turn = n["turn"]
    return [turn_ended(seq, turn["id"], turn["status"], turn.get("error"))]


def _progress(seq: int, n: Mapping[str, Any]) -> list[Event]:
    done = n["done"]
    return [PlacementProgress(seq=seq, step=n["step"], done=done, total=n.get("total"), line=n.get("line"))]


DeltaKind: TypeAlias = type[TextDelta] | type[ReasoningDelta] | type[CommandOutput]
DELTAS: Mapping[str, DeltaKind] = {
    "item/agentMessage/delta": TextDelta,
    "item/reasoning/textDelta": ReasoningDelta,
    "item/reasoning/summaryTextDelta": ReasoningDelta,
    "item/commandExecution/outputDelta": CommandOutput,
}
"""Pieces of text by their notification: nearly all of what a host sends, and read without any detour."""

# By method, from what the wire has: the generated models are loaded when somebody looks at an item.
_READERS: dict[str, Callable[[int, Mapping[str, Any]], list[Event]]] = {
    "item/started": lambda seq, n: [ItemStarted.of(seq, n["item"])],
    "item/completed": lambda seq, n: [ItemCompleted.of(seq, n["item"])],
    "item/mcpToolCall/progress": lambda seq, n: [ToolProgress(seq=seq, item_id=n["itemId"], text=n["message"])],
    "turn/started": lambda seq, n: [TurnStarted(seq=seq, turn_id=n["turn"]["id"])],
    "turn/completed": _ended,
    "turn/diff/updated": lambda seq, n: [DiffUpdated(seq=seq, diff=n["diff"])],
    "turn/plan/updated": lambda seq, n: [PlanUpdated(seq=seq, steps=n["plan"], explanation=n.get("explanation"))],
    "placement/progress": _progress,
    "error": lambda seq, n: [Notice(seq=seq, message=n["error"]["message"])],
    "configWarning": lambda seq, n: [Notice(seq=seq, message=n["summary"])],
}

# States of the connection and of the thread, which the SDK itself follows.
_QUIET = {
    "thread/started",
    "thread/status/changed",
    "thread/resynced",
    "operation/updated",
    "serverRequest/resolved",
    "thread/closed",
}


def delta_of(seq: int, method: str, params: Mapping[str, Any]) -> TextDelta | ReasoningDelta | CommandOutput:
    """The event of one of `DELTAS`."""
    text = params["delta"]
    if not isinstance(text, str):
        raise TypeError("a delta that is no text")
    return DELTAS[method](seq=seq, item_id=params["itemId"], text=text)


def events_of(seq: int, method: str, params: Any) -> list[Event]:
    """The events that a notification makes. What cannot be read, or is newer than this release, stays as it came."""
    if (make := _READERS.get(method)) is not None or method in DELTAS:
        try:
            return make(seq, params) if make is not None else [delta_of(seq, method, params)]
        except (KeyError, TypeError, ValueError, AttributeError):
            log.debug("%s cannot be read", method)
    elif method in _QUIET:
        return []
    return [Raw(seq=seq, method=method, params=params if isinstance(params, Mapping) else {})]
