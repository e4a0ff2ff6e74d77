"""A task that this process follows: its notifications become events, its calls are judged and run here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4
from weakref import ref

import anyio
import oarlock_protocol as protocol

from ._buffer import EventBuffer
from ._errors import PROVIDER_FAILED, OarlockError, RpcError
from ._events import (
    DELTAS,
    CommandOutput,
    DeltaKind,
    Event,
    ItemCompleted,
    ModelRequestFinished,
    ModelRequestStarted,
    Notice,
    TextDelta,
    ToolDecided,
    ToolPending,
    TurnCompleted,
    TurnFailedEvent,
    TurnInterruptedEvent,
    TurnPausedEvent,
    TurnStarted,
    UsageUpdated,
    events_of,
    usage_of,
)
from ._inputs import to_user_input
from ._pending import Pending, pending_of, turn_of
from ._plan import AgentPlan
from ._records import record
from ._replay import RECORDED, recorded_events
from ._requests import RequestWatch
from ._results import Completed, Failed, Input, Interrupted, TurnResult, Usage
from ._run import Run
from ._usage import ROOT, AgentPath, UsageMeter, added
from ._worker import ToolWorker

if TYPE_CHECKING:
    from ._host import Host

log = logging.getLogger("oarlock")

# Between two looks at a turn that seems to wait.
_FIRST_LOOK = 0.02
_LAST_LOOK = 0.5


@record(kw_only=True)
class TurnEnd:
    """How a turn stands when a run of it is over."""

    turn_id: str
    status: str
    text: str
    usage: Usage
    usage_by_agent: Mapping[tuple[str, ...], Usage]
    error: Mapping[str, Any] | None = None
    pending: tuple[Pending, ...] = ()
    task_id: str = ""

    def facts(self) -> dict[str, Any]:
        """The fields that every result has."""
        return {
            "turn_id": self.turn_id,
            "text": self.text,
            "usage": self.usage,
            "usage_by_agent": self.usage_by_agent,
            "task_id": self.task_id,
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


class _TurnState:
    """A turn as far as it was heard of."""

    def __init__(self, turn_id: str, task_id: str) -> None:
        self.turn_id = turn_id
        self.task_id = task_id
        self.is_new = True
        """Its beginning has not been announced."""
        self.status = "inProgress"
        self.text = ""
        self.usage_by_agent: Mapping[AgentPath, Usage] = {ROOT: Usage()}
        self.error: Mapping[str, Any] | None = None
        self.open_operations: set[str] = set()
        self.decided: set[tuple[str, int]] = set()

    def end(self, pending: tuple[Pending, ...] = ()) -> TurnEnd:
        return TurnEnd(
            turn_id=self.turn_id,
            status=self.status,
            text=self.text,
            usage=reduce(added, self.usage_by_agent.values()),
            usage_by_agent=self.usage_by_agent,
            error=self.error,
            pending=pending,
            task_id=self.task_id,
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
        self.usage = UsageMeter()
        self._requests = RequestWatch()
        self._is_answered = False
        self._seq = 0
        self._running_item = ""
        self._running_text: list[str] = []
        self._listeners: list[ref[EventBuffer]] = []
        self._unheard: list[Event] = []
        self._is_settling = False
        self._has_news = False
        self._has_heard = False
        self.on_early_event: Callable[[Event], None] | None = None
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
        if method in DELTAS and self._is_delta(params):
            return self._take_texts(DELTAS[method], params["itemId"], [params["delta"]])
        # Counted, and not the host's `ordinal`: a replay from `thread/read` has none, and numbers are the same in both.
        if method in RECORDED:
            self._seq += 1
        # Of a turn that was under way when it was opened: its messages may come right behind the answer.
        if self.turn is None and method == "item/completed" and isinstance(turn_id := params.get("turnId"), str):
            self._turn_begins(turn_id)
        if method == "thread/tokenUsage/updated":
            self.take_usage(ROOT, params)
            return
        for event in events_of(self._seq, method, params):
            if isinstance(event, TurnStarted):
                self._turn_begins(event.turn_id)
            if isinstance(event, ItemCompleted) and (rest := self._missing_text(event)) is not None:
                self.emit(rest)
            self._note(event)
            begins = self._requests.saw(event)
            self.emit(event)
            if isinstance(event, TurnStarted) and self.turn is not None and self.turn.is_new:
                self.turn.is_new = False
                begins = self._requests.turn_begins()
            if begins:
                self._request_begins()
            match event:
                case TurnCompleted(turn_id=turn_id):
                    self._turn_ends(turn_id, "completed")
                case TurnInterruptedEvent(turn_id=turn_id):
                    self._turn_ends(turn_id, "interrupted")
                case TurnFailedEvent(turn_id=turn_id, error=error):
                    self._turn_ends(turn_id, "failed", error)

    def take_deltas(self, method: str, found: Sequence[Mapping[str, Any]]) -> None:
        """Pieces of one item that came together: there are thousands in a second, and none is looked at alone."""
        if self.on_notification is not None or not all(map(self._is_delta, found)):
            for params in found:
                self.take(method, params)
            return
        self._take_texts(DELTAS[method], found[0]["itemId"], [params["delta"] for params in found])

    @staticmethod
    def _is_delta(params: Mapping[str, Any]) -> bool:
        return isinstance(params.get("delta"), str) and isinstance(params.get("itemId"), str)

    def _take_texts(self, kind: DeltaKind, item_id: str, texts: Sequence[str]) -> None:
        if kind is not CommandOutput:
            if kind is TextDelta:
                if item_id != self._running_item:
                    self._running_item, self._running_text = item_id, []
                self._running_text += texts
            self._is_answered = True
            if self._requests.answers():
                self._request_begins()
        if self.run is not None:
            self.run._feed_deltas(kind, self._seq, item_id, texts)
        elif self.on_early_event is not None:
            self.on_early_event(kind(seq=self._seq, item_id=item_id, text="".join(texts)))
        for listener in self._listening():
            listener.feed_deltas(kind, self._seq, item_id, texts)

    def take_usage(self, path: AgentPath, params: Any) -> None:
        """Tokens of an agent of this task, which may have been heard of before."""
        try:
            tokens = params["tokenUsage"]
            total, last = usage_of(tokens["total"]), usage_of(tokens["last"])
        except (KeyError, TypeError):
            log.debug("thread/tokenUsage/updated cannot be read")
            return
        used = self.usage.take(path, total, last, is_answered=self._is_answered)
        if path == ROOT and used is None and self._requests.opened():
            self._request_begins()
        if self.turn is not None and self.turn.status == "inProgress":
            self.turn.usage_by_agent = self.usage.of_turn()
        if used is not None:
            if path == ROOT:
                self._requests.answered()
            self.emit(ModelRequestFinished(seq=self._seq, usage=used, path=path))
            if path == ROOT:
                self.emit(UsageUpdated(seq=self._seq, usage=total))

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
            decision = operation.decision
            # Announced when it is stored, and again when the operation begins and ends.
            if decision is not None and (key := (operation.operation_id, decision.decided_at_ms)) not in turn.decided:
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
        elif self.on_early_event is not None:
            self.on_early_event(event)
        elif isinstance(event, Notice) and not self._listeners:
            self._unheard.append(event)
        if self._listeners:
            for listener in self._listening():
                listener.feed(event)

    def notice(self, message: str) -> None:
        log.warning("task %s: %s", self.task_id, message)
        self.emit(Notice(seq=self._seq, message=message))

    @property
    def seq(self) -> int:
        return self._seq

    def listen(self) -> EventBuffer:
        buffer = EventBuffer()
        for notice in self.unheard():
            buffer.feed(notice)
        # A listener may just leave.
        self._listeners.append(ref(buffer, self._listeners.remove))
        return buffer

    def _listening(self) -> list[EventBuffer]:
        return [buffer for listener in list(self._listeners) if (buffer := listener()) is not None]

    def unheard(self) -> list[Event]:
        """Notices from before there was anybody to hear them, for the first who listens."""
        notices, self._unheard = self._unheard, []
        return notices

    def close(self, error: OarlockError) -> None:
        """The connection is gone for good."""
        if self.run is not None:
            self.run._fail(error)
        for listener in self._listening():
            listener.close()

    # ---- the turn ----

    def _request_begins(self) -> None:
        if self.turn is not None and self.turn.status == "inProgress":
            self.emit(ModelRequestStarted(seq=self._seq, turn_id=self.turn.turn_id))

    def _turn_begins(self, turn_id: str) -> None:
        if self.turn is None or self.turn.turn_id != turn_id:
            self.turn = _TurnState(turn_id, self.task_id)
            self.usage.turn_begins()

    def running_text(self) -> TextDelta | None:
        """The message that is being written, as far as it is there."""
        if not self._running_text:
            return None
        return TextDelta(seq=self._seq, item_id=self._running_item, text="".join(self._running_text))

    def _missing_text(self, event: ItemCompleted) -> TextDelta | None:
        """The end of a message whose deltas did not all come: they come once, and a lost connection loses some."""
        item_id, text = event.message() or ("", "")
        came = "".join(self._running_text) if self._running_item == item_id else ""
        if came == text or not text.startswith(came):
            return None
        return TextDelta(seq=event.seq, item_id=item_id, text=text[len(came) :])

    def _note(self, event: Event) -> None:
        match event:
            case ItemCompleted() | TurnCompleted() | TurnInterruptedEvent() | TurnFailedEvent():
                self._running_text = []
        if self.turn is None:
            return
        match event:
            case ItemCompleted() if (message := event.message()) is not None:
                self.turn.text = message[1]
                self._has_heard = True
                self._is_answered = True

    def _turn_ends(self, turn_id: str, status: str, error: Mapping[str, Any] | None = None) -> None:
        if self.turn is None or self.turn.turn_id != turn_id:
            self.turn = _TurnState(turn_id, self.task_id)
        state = self.turn
        if state.status != "inProgress":
            return
        state.status = status
        if status == "failed" and self.host._opened().own_provider_refused(self.thread_id):
            # The wire calls it `other`.
            error = {**(error or {"message": "the turn failed"}), "code": PROVIDER_FAILED}
        state.error = error
        state.open_operations.clear()
        self._requests.turn_ends()
        end = state.end()
        if self.run is not None and self.run._turn_id == turn_id:
            self.run._turn_ended(end)
        if self.on_turn_end is not None:
            self.on_turn_end(end)

    def expect_resync(self) -> None:
        """What is heard from now on is newer than what the store will say."""
        self._has_heard = False

    def resync(self, thread: protocol.Thread) -> None:
        """Takes over what the store says: after opening, and after a connection was lost."""
        if not thread.turns:
            return
        self._seq = max(self._seq, sum(1 for _ in recorded_events(thread.turns)))
        last = thread.turns[-1]
        self._turn_begins(last.id)
        assert self.turn is not None
        # It may have begun long ago, and be waiting.
        self.turn.is_new = False
        for item in last.items:
            if isinstance(item, protocol.ThreadItemAgentMessage) and not self._has_heard:
                self.turn.text = item.text
        if last.status != "inProgress":
            self._turn_ends(last.id, last.status, last.error.to_wire() if last.error is not None else None)
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
        params = {
            "threadId": self.thread_id,
            "expectedTurnId": turn_id,
            "input": to_user_input(input),
            "inputId": str(uuid4()),
        }
        await self.host._ask("turn/steer", params)

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
