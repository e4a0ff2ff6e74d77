"""A task that this process follows: its notifications become events, its calls are judged and run here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4
from weakref import WeakSet

import anyio
import oarlock_protocol as protocol

from ._buffer import EventBuffer
from ._errors import OarlockError, RpcError
from ._events import (
    Event,
    ItemCompleted,
    ModelRequestFinished,
    Notice,
    TextDelta,
    ToolDecided,
    ToolPending,
    TurnCompleted,
    TurnFailedEvent,
    TurnInterruptedEvent,
    TurnPausedEvent,
    events_of,
    read_notification,
)
from ._inputs import to_user_input
from ._pending import Pending, pending_of, turn_of
from ._plan import AgentPlan
from ._replay import RECORDED, recorded_events
from ._results import Completed, Failed, Input, Interrupted, TurnResult, Usage
from ._run import Run
from ._worker import ToolWorker

if TYPE_CHECKING:
    from ._host import Host

log = logging.getLogger("oarlock")

# Between two looks at a turn that seems to wait.
_FIRST_LOOK = 0.02
_LAST_LOOK = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """How a turn stands when a run of it is over."""

    turn_id: str
    status: str
    text: str
    usage: Usage
    usage_by_agent: Mapping[tuple[str, ...], Usage]
    error: Mapping[str, Any] | None = None
    pending: tuple[Pending, ...] = ()

    def facts(self) -> dict[str, Any]:
        """The fields that every result has."""
        return {
            "turn_id": self.turn_id,
            "text": self.text,
            "usage": self.usage,
            "usage_by_agent": self.usage_by_agent,
        }

    def result(self) -> TurnResult[str]:
        """As a run without `output=` gives it."""
        match self.status:
            case "completed":
                return Completed(**self.facts(), output=self.text)
            case "interrupted":
                return Interrupted(**self.facts())
            case _:
                return Failed(**self.facts(), error=self.error or {"message": "the turn failed"})


@dataclass(slots=True)
class _TurnState:
    """A turn as far as it was heard of."""

    turn_id: str
    status: str = "inProgress"
    text: str = ""
    usage: Usage = field(default_factory=Usage)
    error: Mapping[str, Any] | None = None
    open_operations: set[str] = field(default_factory=set)
    decided: set[tuple[str, int]] = field(default_factory=set)

    def end(self, pending: tuple[Pending, ...] = ()) -> TurnEnd:
        return TurnEnd(
            turn_id=self.turn_id,
            status=self.status,
            text=self.text,
            usage=self.usage,
            usage_by_agent={("root",): self.usage},
            error=self.error,
            pending=pending,
        )


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        cached_input_tokens=one.cached_input_tokens + other.cached_input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        reasoning_tokens=one.reasoning_tokens + other.reasoning_tokens,
    )


class TaskFollower:
    """One task on one connection. Everything but the requests happens without waiting, in the order of the wire."""

    def __init__(self, host: Host, *, task_id: str, thread_id: str, plan: AgentPlan | None, deps: Any) -> None:
        self.host = host
        self.task_id = task_id
        self.thread_id = thread_id
        self.plan = plan
        self.run: Run[Any] | None = None
        self.turn: _TurnState | None = None
        self.worker = ToolWorker(self, deps) if plan is not None else None
        self._seq = 0
        self._has_ordinals = False
        self._running_item = ""
        self._running_text: list[str] = []
        self._listeners: WeakSet[EventBuffer] = WeakSet()
        self._is_settling = False
        self._has_news = False
        self.on_turn_end: Callable[[TurnEnd], None] | None = None
        self.on_notification: Callable[[str, Any], None] | None = None

    def replace_agent(self, plan: AgentPlan, deps: Any) -> None:
        """Opened again, with what its agent is now."""
        self.plan = plan
        self.worker = ToolWorker(self, deps)

    # ---- what the host says ----

    def take(self, method: str, params: Any) -> None:
        """A notification about this task's root."""
        if self.on_notification is not None:
            self.on_notification(method, params)
        read = read_notification(method, params)
        ordinal = params.get("ordinal") if isinstance(params, Mapping) else None
        if isinstance(ordinal, int):
            self._has_ordinals = True
            self._seq = max(self._seq, ordinal)
        elif not self._has_ordinals and method in RECORDED:
            self._seq += 1
        if method == "turn/started" and read is not None:
            self._turn_begins(read.turn.id)
        for event in events_of(self._seq, method, params, read):
            if isinstance(event, ItemCompleted) and (rest := self._missing_text(event)) is not None:
                self.emit(rest)
            self._note(event)
            self.emit(event)
        if method == "turn/completed" and read is not None:
            self._turn_ends(read.turn)

    def take_operation(self, notification: protocol.OperationUpdatedNotification) -> None:
        """An operation of this task, or of one of its children, has changed."""
        operation = notification.operation
        waits = self._needs_decision(operation)
        turn = self.turn
        if turn is None and waits:
            self._turn_begins(turn_of(operation))
            turn = self.turn
        if turn is None:
            return
        if not waits:
            turn.open_operations.discard(operation.operation_id)
            key = (operation.operation_id, operation.attempt)
            # Announced when it is stored, and again when it is in the record.
            if operation.decision is not None and operation.state == "decided" and key not in turn.decided:
                turn.decided.add(key)
                self.emit(_decided(self._seq, operation))
            return
        turn.open_operations.add(operation.operation_id)
        if self.worker is not None:
            self.worker.judge_soon(operation)
        else:
            self.emit(ToolPending(seq=self._seq, call=pending_of(operation, task_id=self.task_id)))
        self._settle_soon()

    def emit(self, event: Event) -> None:
        if self.run is not None:
            self.run._feed(event)
        if len(self._listeners):
            for listener in list(self._listeners):
                listener.feed(event)

    def notice(self, message: str) -> None:
        log.warning("task %s: %s", self.task_id, message)
        self.emit(Notice(seq=self._seq, message=message))

    @property
    def seq(self) -> int:
        return self._seq

    def listen(self) -> EventBuffer:
        buffer = EventBuffer()
        self._listeners.add(buffer)
        return buffer

    def close(self, error: OarlockError) -> None:
        """The connection is gone for good."""
        if self.run is not None:
            self.run._fail(error)
        for listener in list(self._listeners):
            listener.close()

    # ---- the turn ----

    def _turn_begins(self, turn_id: str) -> None:
        if self.turn is None or self.turn.turn_id != turn_id:
            self.turn = _TurnState(turn_id)

    def running_text(self) -> TextDelta | None:
        """The message that is being written, as far as it is there."""
        if not self._running_text:
            return None
        return TextDelta(seq=self._seq, item_id=self._running_item, text="".join(self._running_text))

    def _missing_text(self, event: ItemCompleted) -> TextDelta | None:
        """The end of a message whose deltas did not all come: they come once, and a lost connection loses some."""
        item = event.item
        if not isinstance(item, protocol.ThreadItemAgentMessage) or not item.text:
            return None
        came = "".join(self._running_text) if self._running_item == item.id else ""
        if came == item.text or not item.text.startswith(came):
            return None
        return TextDelta(seq=event.seq, item_id=item.id, text=item.text[len(came) :])

    def _note(self, event: Event) -> None:
        match event:
            case TextDelta(item_id=item_id, text=text):
                if item_id != self._running_item:
                    self._running_item, self._running_text = item_id, []
                self._running_text.append(text)
            case ItemCompleted() | TurnCompleted() | TurnInterruptedEvent() | TurnFailedEvent():
                self._running_text = []
        if self.turn is None:
            return
        match event:
            case ItemCompleted(item=protocol.ThreadItemAgentMessage(text=text)):
                self.turn.text = text
            case ModelRequestFinished(usage=usage):
                self.turn.usage = _added(self.turn.usage, usage)

    def _turn_ends(self, turn: protocol.Turn) -> None:
        if self.turn is None or self.turn.turn_id != turn.id:
            self.turn = _TurnState(turn.id)
        state = self.turn
        if state.status != "inProgress":
            return
        state.status = turn.status
        state.error = turn.error.to_wire() if turn.error is not None else None
        state.open_operations.clear()
        end = state.end()
        if self.run is not None and self.run._turn_id == turn.id:
            self.run._turn_ended(end)
        if self.on_turn_end is not None:
            self.on_turn_end(end)

    def resync(self, thread: protocol.Thread) -> None:
        """Takes over what the store says: after opening, and after a connection was lost."""
        if not thread.turns:
            return
        if not self._has_ordinals:
            self._seq = max(self._seq, sum(1 for _ in recorded_events(thread.turns)))
        last = thread.turns[-1]
        self._turn_begins(last.id)
        assert self.turn is not None
        for item in last.items:
            if isinstance(item, protocol.ThreadItemAgentMessage):
                self.turn.text = item.text
        if last.status != "inProgress":
            self._turn_ends(last)
        else:
            self._settle_soon()

    # ---- waiting for decisions ----

    def _settle_soon(self) -> None:
        # Noted also while a look is under way: its answer may be from before.
        self._has_news = True
        if not self._is_settling:
            self._is_settling = True
            self.host._spawn(self._settle)

    async def _settle(self) -> None:
        """Looks until the turn goes on, is over, or does nothing but wait."""
        pause = _FIRST_LOOK
        try:
            while self.turn is not None and self.turn.status == "inProgress":
                if self.worker is None or not self.worker.is_judging:
                    self._has_news = False
                    is_settled = await self._look()
                    if not self._has_news and (is_settled or not self.turn.open_operations):
                        return
                await anyio.sleep(pause)
                pause = min(pause * 2, _LAST_LOOK)
        except OarlockError as error:
            log.debug("task %s: cannot look whether it waits: %s", self.task_id, error)
        finally:
            self._is_settling = False

    def _needs_decision(self, operation: protocol.Operation) -> bool:
        if operation.state not in ("proposed", "unknown"):
            return False
        return self.worker is None or not self.worker.runs_unasked(operation)

    async def _look(self) -> bool:
        """Whether the turn waits and nothing else of it runs."""
        params = protocol.TaskReadParams(thread_id=self.thread_id)
        answer = await self.host._request(protocol.CLIENT_REQUESTS["task/read"], params)
        turn = self.turn
        if turn is None or turn.status != "inProgress":
            return True
        waiting = [row for row in answer.operations if self._needs_decision(row)]
        turn.open_operations = {row.operation_id for row in waiting}
        unheard = [row for row in waiting if self.worker is not None and self.worker.judge_soon(row)]
        if not waiting or unheard or self._has_news or answer.task.state not in ("waiting", "suspended"):
            return False
        deps = self.worker.deps if self.worker is not None else None
        pending = tuple(pending_of(row, task_id=self.task_id, deps=deps) for row in waiting)
        if self.run is not None:
            self.emit(TurnPausedEvent(seq=self._seq, turn_id=turn.turn_id, pending=pending))
            self.run._paused(turn.end(pending))
        return True

    # ---- requests ----

    async def steer(self, turn_id: str, input: Input) -> None:
        params = protocol.TurnSteerParams(
            thread_id=self.thread_id,
            expected_turn_id=turn_id,
            input=to_user_input(input),
            input_id=str(uuid4()),
        )
        await self.host._request(protocol.CLIENT_REQUESTS["turn/steer"], params)

    async def interrupt(self, turn_id: str) -> None:
        params = protocol.TurnInterruptParams(thread_id=self.thread_id, turn_id=turn_id)
        try:
            await self.host._request(protocol.CLIENT_REQUESTS["turn/interrupt"], params)
        except RpcError as error:
            # The turn may have ended meanwhile; then there is nothing to stop.
            log.debug("task %s: not interrupted: %s", self.task_id, error)


def _decided(seq: int, operation: protocol.Operation) -> ToolDecided:
    assert operation.decision is not None
    by = operation.decision.on_behalf_of or operation.decision.by
    word: Literal["?"] | str = getattr(operation.decision.decision, "type", "?")
    return ToolDecided(seq=seq, operation_id=operation.operation_id, tool=operation.tool, decision=word, by=by)
