"""One turn, as a caller follows it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, cast

import anyio

from ._buffer import EventBuffer
from ._errors import OarlockError, TaskBusy
from ._events import DeltaKind, Event, OutputDelta, TextDelta
from ._output import OutputForm, repair_request
from ._results import Completed, Failed, Input, Interrupted, Paused
from ._tracing import end_span, start_span, within
from ._typing import T_co

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from ._follow import TaskFollower, TurnEnd

# How long leaving `async with run` waits for the interrupted turn to end.
_LEAVE_WITHIN = 10.0

RunState = Literal["new", "running", "done"]


class Run(Generic[T_co]):
    """A turn of a task. It starts at the first `await`, `async for` or `async with`, once.

    Awaiting and iterating observe: leaving them early lets the turn go on. `async with` owns: leaving it early
    interrupts the turn.
    """

    def __init__(
        self,
        begin: Callable[[Run[Any]], Any],
        *,
        spawn: Callable[..., None],
        output: OutputForm[Any] | None,
        timeout: float | None,
        label: str,
    ) -> None:
        self._begin = begin
        self._spawn = spawn
        self._output = output
        self._timeout = timeout
        self._label = label
        self._state: RunState = "new"
        self._events = EventBuffer()
        self._ended = anyio.Event()
        self._result: Completed[Any] | Paused | Interrupted | Failed | None = None
        self._error: BaseException | None = None
        self._follower: TaskFollower | None = None
        self._turn_id = ""
        self._is_timed_out = False
        self._was_repaired = False
        self._partial = ""
        self._timer: anyio.CancelScope | None = None
        self._repair: Callable[[str], Any] | None = None
        self._span: Span | None = None

    def __await__(self) -> Generator[Any, None, Completed[T_co] | Paused | Interrupted | Failed]:
        return self._wait().__await__()

    def __aiter__(self) -> AsyncIterator[Event]:
        self._start()
        return _RunEvents(self)

    async def __aenter__(self) -> Run[T_co]:
        self._start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._ended.is_set():
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(_LEAVE_WITHIN):
            try:
                await self.interrupt()
                await self._ended.wait()
            except OarlockError:
                # The turn ended by itself, or the host is gone; there is nothing to stop.
                return

    def text_deltas(self) -> AsyncIterator[str]:
        """The agent's text as it is written."""
        self._start()
        return _TextDeltas(self)

    async def print(self) -> None:
        """Shows the turn on standard output as it happens, with colours where that is a terminal."""
        from ._show import TurnPrinter

        printer = TurnPrinter(sys.stdout)
        async for event in self:
            printer.show(event)
        printer.end((await self._wait()).status)

    async def steer(self, input: Input) -> None:
        """Adds input to the turn that runs."""
        self._start()
        await self._begun()
        assert self._follower is not None
        await self._follower.steer(self._turn_id, input)

    async def interrupt(self) -> None:
        """Stops the turn. Nothing where it has ended."""
        if self._state == "new" or self._ended.is_set():
            return
        await self._begun()
        if not self._ended.is_set():
            assert self._follower is not None
            await self._follower.interrupt(self._turn_id)

    def __repr__(self) -> str:
        status = self._result.status if self._result is not None else self._state
        return f"<Run {self._label}: {status}>"

    def _repr_html_(self) -> str:
        """For notebooks: how it stands, what waits, the text."""
        from html import escape

        result = self._result
        status = result.status if result is not None else self._state
        waits = "".join(f"<li><code>{escape(call.describe())}</code></li>" for call in getattr(result, "pending", ()))
        text = f"<pre>{escape(result.text)}</pre>" if result is not None and result.text else ""
        return (
            f"<div><b>Run {escape(self._label)}</b>: {escape(status)}{f'<ul>{waits}</ul>' if waits else ''}{text}</div>"
        )

    # ---- what follows is for the task that the run belongs to ----

    async def _next_event(self) -> Event:
        event = await self._events.next()
        if event is None:
            self._raise_or_stop()
        return event

    def _raise_or_stop(self) -> NoReturn:
        """The end of an iteration."""
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def _wait(self) -> Completed[T_co] | Paused | Interrupted | Failed:
        self._start()
        await self._ended.wait()
        if self._error is not None:
            raise self._error
        assert self._result is not None
        return cast("Completed[T_co] | Paused | Interrupted | Failed", self._result)

    async def _begun(self) -> None:
        """The turn has an id, or will have none."""
        while self._turn_id == "" and not self._ended.is_set():
            await self._news.wait()

    def _start(self) -> None:
        if self._state != "new":
            return
        self._state = "running"
        self._news = anyio.Event()
        self._span = start_span("oarlock.turn", run=self._label)
        self._spawn(self._drive)
        if self._timeout is not None:
            self._spawn(self._watch_time)

    async def _drive(self) -> None:
        """Not in the caller's task: cancelling a caller leaves the turn alone."""
        try:
            with within(self._span):
                await self._begin(self)
        except Exception as error:
            self._fail(error)

    async def _watch_time(self) -> None:
        assert self._timeout is not None
        with anyio.CancelScope() as self._timer:
            await anyio.sleep(self._timeout)
            if self._ended.is_set():
                return
            self._is_timed_out = True
            try:
                await self.interrupt()
            except OarlockError:
                # It ended in the same moment.
                return

    def _attach(self, follower: TaskFollower, turn_id: str) -> None:
        """The turn is known from now on; its events come by `_feed`."""
        if follower.run is not None and follower.run is not self:
            raise TaskBusy(f"task {follower.task_id}: another run follows its turn", task_id=follower.task_id)
        self._follower = follower
        self._turn_id = turn_id
        follower.run = self
        for notice in follower.unheard():
            self._feed(notice)
        self._news.set()

    def _feed(self, event: Event) -> None:
        self._events.feed(event)
        if self._output is not None and isinstance(event, TextDelta):
            self._feed_partial(event.seq, event.text)

    def _feed_deltas(self, kind: DeltaKind, seq: int, item_id: str, texts: Sequence[str]) -> None:
        self._events.feed_deltas(kind, seq, item_id, texts)
        if self._output is not None and kind is TextDelta:
            self._feed_partial(seq, "".join(texts))

    def _feed_partial(self, seq: int, text: str) -> None:
        assert self._output is not None
        self._partial += text
        if (partial := self._output.partial(self._partial)) is not None:
            self._events.feed(OutputDelta(seq=seq, partial=partial))

    def _turn_ended(self, end: TurnEnd) -> None:
        """The turn is over: the result is there, unless the answer has to be given again."""
        match end.status:
            case "completed":
                self._complete(end)
            case "interrupted":
                reason: Literal["interrupted", "timeout"] = "timeout" if self._is_timed_out else "interrupted"
                self._finish(Interrupted(**end.facts(), reason=reason))
            case _:
                self._finish(Failed(**end.facts(), error=end.error or {"message": "the turn failed"}))

    def _complete(self, end: TurnEnd) -> None:
        if self._output is None:
            return self._finish(Completed(**end.facts(), output=end.text))
        from pydantic_core import ValidationError

        try:
            return self._finish(Completed(**end.facts(), output=self._output.read(end.text)))
        except ValidationError as error:
            if self._was_repaired or self._repair is None:
                problem = {"message": f"the answer does not have the form asked for: {error}", "code": "invalidOutput"}
                return self._finish(Failed(**end.facts(), error=problem))
            self._was_repaired = True
            self._partial = ""
            self._detach()
            self._spawn(self._ask_again, repair_request(error))

    async def _ask_again(self, request: str) -> None:
        assert self._repair is not None
        try:
            with within(self._span):
                await self._repair(request)
        except Exception as error:
            self._fail(error)

    def _paused(self, end: TurnEnd) -> None:
        self._finish(Paused(**end.facts(), pending=end.pending))

    def _finish(self, result: Completed[Any] | Paused | Interrupted | Failed) -> None:
        self._result = result
        self._end()

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._end()

    def _end(self) -> None:
        self._state = "done"
        self._end_span()
        self._detach()
        self._events.close()
        if self._timer is not None:
            self._timer.cancel()
        self._news.set()
        self._ended.set()

    def _end_span(self) -> None:
        status = self._result.status if self._result is not None else "raised"
        error = None
        if isinstance(self._result, Failed):
            error = str(self._result.error.get("message", "the turn failed"))
        elif self._error is not None:
            error = type(self._error).__name__
        task_id = self._follower.task_id if self._follower is not None else ""
        end_span(self._span, error=error, status=status, task_id=task_id, turn_id=self._turn_id)

    def _detach(self) -> None:
        if self._follower is not None and self._follower.run is self:
            self._follower.run = None


class _RunEvents:
    """Not a generator: one that is left half-way has to be closed, and an observer may just leave."""

    def __init__(self, run: Run[Any]) -> None:
        self._run = run
        self._take = run._events.take

    def __aiter__(self) -> _RunEvents:
        return self

    async def __anext__(self) -> Event:
        return self._take() or await self._run._next_event()


class _TextDeltas:
    def __init__(self, run: Run[Any]) -> None:
        self._run = run
        self._take = run._events.take_text

    def __aiter__(self) -> _TextDeltas:
        return self

    async def __anext__(self) -> str:
        while (text := self._take()) is None:
            if not await self._run._events.more():
                self._run._raise_or_stop()
        return text
