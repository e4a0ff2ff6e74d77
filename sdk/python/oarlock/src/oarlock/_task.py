"""One durable unit of work: a cursor into the host's store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, overload
from uuid import uuid4

import oarlock_protocol as protocol
from typing_extensions import Unpack

from ._decisions import Decision
from ._errors import ConfigError, RpcError, TaskBusy, TransportClosed
from ._events import Event
from ._files import Files
from ._follow import TaskFollower
from ._inputs import to_user_input
from ._output import OutputForm
from ._pending import Pending
from ._replay import RecordedEvents, TaskEvents
from ._results import Input
from ._run import Run
from ._typing import JSON, D, T

if TYPE_CHECKING:
    from ._host import Host


class TurnSettings(TypedDict, total=False):
    """Choices that hold for this turn and later ones."""

    model: str
    effort: str
    sandbox: Literal["read-only", "workspace-write", "danger-full-access"]
    cwd: str


_SANDBOXES = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "danger-full-access": "dangerFullAccess"}


def _turn_settings(settings: TurnSettings) -> dict[str, Any]:
    wire: dict[str, Any] = dict(settings)
    if sandbox := wire.pop("sandbox", None):
        if sandbox not in _SANDBOXES:
            raise ConfigError(f"sandbox: expected one of {', '.join(_SANDBOXES)}, not {sandbox!r}")
        wire["sandboxPolicy"] = {"type": _SANDBOXES[sandbox]}
    return wire


class Task(Generic[D]):
    """A root thread and its children. Everything that must survive is in the host's store under `id`."""

    id: str
    files: Files

    def __init__(self, host: Host, follower: TaskFollower, *, workspace: str, is_open: bool) -> None:
        self.id = follower.task_id
        self.files = Files(host, follower.thread_id, workspace)
        self._host = host
        self._follower = follower
        self._is_open = is_open

    def __repr__(self) -> str:
        return f"<Task {self.id}: {self._status()}>"

    def _status(self) -> str:
        turn = self._follower.turn
        if turn is None:
            return "no turn yet"
        if turn.status == "inProgress":
            return f"{len(turn.open_operations)} wait for a decision" if turn.open_operations else "running"
        return turn.status

    def _repr_html_(self) -> str:
        """For notebooks: its id, how its last turn stands, and that turn's text."""
        from html import escape

        turn = self._follower.turn
        text = f"<pre>{escape(turn.text)}</pre>" if turn is not None and turn.text else ""
        return f"<div><b>Task {escape(self.id)}</b>: {escape(self._status())}{text}</div>"

    @overload
    def run(self, input: Input, *, timeout: float | None = None, **settings: Unpack[TurnSettings]) -> Run[str]: ...
    @overload
    def run(
        self, input: Input, *, output: type[T], timeout: float | None = None, **settings: Unpack[TurnSettings]
    ) -> Run[T]: ...
    def run(
        self,
        input: Input,
        *,
        output: type[Any] | None = None,
        timeout: float | None = None,
        **settings: Unpack[TurnSettings],
    ) -> Run[Any]:
        """A new turn. It starts when the run is first awaited, iterated or entered.

        Args:
            input: text, or a sequence of texts, images and skills
            output: the type of the answer; an answer that does not fit is asked for once more
            timeout: seconds after which the turn is interrupted
            **settings: `model`, `effort`, `sandbox`, `cwd`
        """
        self._need_agent()
        self._check_free()
        form = OutputForm(output) if output is not None else None
        wire = _turn_settings(settings)

        async def begin(run: Run[Any]) -> None:
            await self._start_turn(run, input, form, wire)

        return Run(begin, spawn=self._host._spawn, output=form, timeout=timeout, label=f"of task {self.id}")

    def _need_agent(self) -> None:
        if not self._is_open:
            raise ConfigError(f"task {self.id} was opened to read and decide only; open it with its agent to run it")

    def _check_free(self) -> None:
        turn = self._follower.turn
        if self._follower.run is not None or (turn is not None and turn.status == "inProgress"):
            waits = "waits for a decision" if turn is not None and turn.open_operations else "runs"
            raise TaskBusy(
                f"task {self.id}: a turn {waits}; `resume()` follows it, `interrupt()` of its run stops it",
                task_id=self.id,
            )

    async def _start_turn(
        self, run: Run[Any], input: Input, form: OutputForm[Any] | None, wire: dict[str, Any]
    ) -> None:
        self._check_free()
        turn_id = str(uuid4())

        async def repair(text: str) -> None:
            await self._start_turn(run, text, form, {})

        run._repair = repair
        # Before the request: its events may be here before its answer is.
        self._follower._turn_begins(turn_id)
        run._attach(self._follower, turn_id)
        params = {
            "threadId": self._follower.thread_id,
            "input": to_user_input(input),
            "inputId": str(uuid4()),
            "turnId": turn_id,
            **({"outputSchema": form.schema} if form is not None else {}),
            **wire,
        }
        try:
            answer = await self._host._ask("turn/start", params, task_id=self.id)
        except BaseException:
            if self._follower.turn is not None and self._follower.turn.turn_id == turn_id:
                self._follower.turn = None
            raise
        if answer["turn"]["id"] != turn_id:
            raise TaskBusy(f"task {self.id}: another process runs a turn, and the input joined it", task_id=self.id)

    @overload
    def resume(self, *, timeout: float | None = None) -> Run[str]: ...
    @overload
    def resume(self, *, output: type[T], timeout: float | None = None) -> Run[T]: ...
    def resume(self, *, output: type[Any] | None = None, timeout: float | None = None) -> Run[Any]:
        """Follows the turn that runs or waits; of a task at rest, gives how its last turn ended."""
        self._need_agent()
        form = OutputForm(output) if output is not None else None

        async def begin(run: Run[Any]) -> None:
            turn = self._follower.turn
            if turn is None:
                raise ConfigError(f"task {self.id} has no turn to resume; `run` starts one")
            run._attach(self._follower, turn.turn_id)
            if turn.status != "inProgress":
                run._turn_ended(turn.end())
            else:
                self._follower._settle_soon()

        return Run(begin, spawn=self._host._spawn, output=form, timeout=timeout, label=f"of task {self.id}")

    async def pending(self) -> tuple[Pending, ...]:
        """Calls that wait for a decision, also with no runtime alive."""
        return tuple(await self._host.pending(task_id=self.id))

    async def decide(self, call: Pending | str, decision: Decision, *, by: str | None = None) -> None:
        """Decides a call; in the store before anything runs.

        Args:
            call: from `pending()`, or the id of an operation
            decision: `Approve()`, `Reject(…)`, `Replace(…)`, `Respond(…)`, `Answer(…)`, `Retry()`
            by: who decided, where this program only passes it on
        """
        await self._host.decide(call, decision, by=by)

    def events(self, *, after: int | None = None) -> AsyncIterator[Event]:
        """Follows every turn of the task, also those that others start.

        Of a task that was opened without its agent, these are the events that its record has.

        Args:
            after: the `seq` of an event; what was recorded after it is replayed first, all of it after 0. Unset, from
                now on
        """
        if not self._is_open:
            return RecordedEvents(after, self._turns)
        return TaskEvents(self._follower, after, self._turns)

    async def suspend(self, *, snapshot: bool = True) -> None:
        """Ends the runtime; a turn stays where it is.

        Args:
            snapshot: of a task in a placement: keep its workspace as it is now, should the place be lost
        """
        params = protocol.TaskSuspendParams(thread_id=self._follower.thread_id)
        await self._host._request(protocol.CLIENT_REQUESTS["task/suspend"], params, task_id=self.id)
        if not snapshot:
            return
        if (place := await self._host._placement_of(self._follower.thread_id)) is not None:
            kept = protocol.PlacementSnapshotParams(placement_id=place.id)
            await self._host._request(protocol.CLIENT_REQUESTS["placement/snapshot"], kept, task_id=self.id)

    async def fork(self, *, after_turn: str | None = None) -> Task[D]:
        """A new task with a copy of the history.

        Args:
            after_turn: the last turn of the copy; unset, all of them
        """
        kept: int | None = None
        if after_turn is not None:
            turns = [turn.id for turn in await self._turns()]
            if after_turn not in turns:
                raise ConfigError(f"after_turn: task {self.id} has no turn {after_turn}")
            kept = turns.index(after_turn) + 1
        params = protocol.ThreadForkParams(thread_id=self._follower.thread_id)
        # Asked twice, it would make two copies.
        method = protocol.CLIENT_REQUESTS["thread/fork"]
        answer = await self._host._request(method, params, task_id=self.id, again=False)
        if kept is not None:
            await self._keep_turns(answer.thread.id, kept)
        plan = self._follower.plan
        worker = self._follower.worker
        return await self._host._open_thread(
            answer.thread.id, plan, worker.deps if worker is not None else None, task_id=answer.thread.id
        )

    async def _keep_turns(self, thread_id: str, kept: int) -> None:
        """Drops the turns of a copy after so many. Counted again each time: asked twice, a host drops twice as many."""
        while (surplus := len(await self._turns(thread_id)) - kept) > 0:
            dropped = protocol.ThreadRollbackParams(thread_id=thread_id, num_turns=surplus)
            with suppress(TransportClosed):
                method = protocol.CLIENT_REQUESTS["thread/rollback"]
                await self._host._request(method, dropped, task_id=self.id, again=False)

    async def history(self) -> Sequence[Mapping[str, JSON]]:
        """The turns with their items, as the wire has them."""
        return [turn.to_wire() for turn in await self._turns()]

    async def _turns(self, thread_id: str | None = None) -> Sequence[protocol.Turn]:
        """Of this task, or of a copy of it."""
        params = protocol.ThreadReadParams(thread_id=thread_id or self._follower.thread_id, include_turns=True)
        try:
            answer = await self._host._request(protocol.CLIENT_REQUESTS["thread/read"], params, task_id=self.id)
        except RpcError as error:
            # A host has no turns to show of a task that nothing was said to yet.
            if "not materialized yet" in str(error):
                return []
            raise
        return answer.thread.turns

    async def archive(self) -> None:
        """Puts the task away; it is kept."""
        params = protocol.ThreadArchiveParams(thread_id=self._follower.thread_id)
        await self._host._request(protocol.CLIENT_REQUESTS["thread/archive"], params, task_id=self.id)

    async def delete(self) -> None:
        """Removes the task with its records, for good."""
        params = protocol.TaskDeleteParams(thread_id=self._follower.thread_id)
        await self._host._request(protocol.CLIENT_REQUESTS["task/delete"], params, task_id=self.id)
        self._host._forget(self._follower)
