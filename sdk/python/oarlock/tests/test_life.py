"""Lives of runs: observed, owned, timed, cancelled at any await, and readers that stop."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest
from oarlock_protocol import Thread

from oarlock import (
    Agent,
    Approve,
    Completed,
    Host,
    Interrupted,
    Local,
    Offline,
    Paused,
    Respond,
    TaskBusy,
    ToolContext,
    tool,
)
from oarlock._buffer import EventBuffer
from oarlock._transports import ProcessTransport
from oarlock.events import Event, ItemCompleted, TextDelta, ToolProgress, TurnCompleted, TurnStarted
from oarlock.testing import Call, Hang, ScriptedModel, Seen, offline_host
from oarlock.tools import ExecCommand
from stepping import cancelled_at
from test_functions import DESK, Till, hosts_on
from test_pending import is_alive, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("needs_provides")]


@dataclass
class Gate:
    """Holds a tool until it is opened."""

    entered: anyio.Event = field(default_factory=anyio.Event)
    opened: anyio.Event = field(default_factory=anyio.Event)


@tool(effects="readonly")
async def hold(ctx: ToolContext[Gate]) -> str:
    """Holds until it is let go."""
    await ctx.progress("in")
    ctx.deps.entered.set()
    await ctx.deps.opened.wait()
    return "held"


WAITER = Agent(name="waiter", deps_type=Gate, tools=[hold], tool_set="replace")
HELLO = Agent(name="hello", tool_set="replace")


async def test_who_only_observes_may_leave() -> None:
    gate = Gate()
    async with offline_host(ScriptedModel(Call("hold"), "done")) as host:
        task = await host.start(WAITER, deps=gate)
        run = task.run("go", timeout=60)
        async for event in run:
            if isinstance(event, ToolProgress):
                break
        with anyio.move_on_after(0.05) as scope:
            await run
        assert scope.cancelled_caught
        # Another observer, and another run of the same turn: neither stops it.
        with pytest.raises(TaskBusy):
            task.run("again")
        gate.opened.set()
        assert (await run).unwrap() == "done"
        assert (await task.resume()).unwrap() == "done"


async def test_a_run_starts_once() -> None:
    model = ScriptedModel("once")
    async with offline_host(model) as host:
        run = host.run(HELLO, "go", timeout=60)
        results: list[Completed[str]] = []

        async def observe() -> None:
            result = await run
            assert isinstance(result, Completed)
            results.append(result)

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(observe)
    assert [result.output for result in results] == ["once"] * 3
    assert len(model.seen) == 1


async def test_leaving_an_owned_run_by_an_error_interrupts_it() -> None:
    gate = Gate()
    async with Host(provider=ScriptedModel(Call("hold"), "done")) as host:
        task = await host.start(WAITER, deps=gate)
        run = task.run("go")
        with pytest.raises(ZeroDivisionError):
            async with run:
                await gate.entered.wait()
                raise ZeroDivisionError
        assert isinstance(await run, Interrupted)


async def test_a_timeout_of_a_turn_that_waits_for_nobody() -> None:
    gate = Gate()
    async with Host(provider=ScriptedModel(Call("hold"), "done")) as host:
        result = await host.run(WAITER, "go", deps=gate, timeout=0.5)
    assert isinstance(result, Interrupted)
    assert result.reason == "timeout"


async def test_a_reader_that_stops_stops_only_itself() -> None:
    words = " ".join(f"word{number}" for number in range(2_000))
    async with offline_host(ScriptedModel(words, "short")) as host:
        task = await host.start(HELLO)
        run = task.run("go", timeout=120)
        read: list[Event] = []
        async for event in run:
            read.append(event)
            if isinstance(event, TextDelta):
                break
        # It reads no more. Another task of the same connection goes on, and so does this turn.
        await run._ended.wait()
        assert (await host.run(HELLO, "go", timeout=60)).unwrap() == "short"
        assert len(run._events) < 400
        read += [event async for event in run]
        result = await run
    text = "".join(event.text for event in read if isinstance(event, TextDelta))
    assert text == result.text == words
    assert isinstance(read[-1], TurnCompleted)


async def test_deltas_of_one_item_are_joined_in_order() -> None:
    buffer = EventBuffer()
    for number in range(1_000):
        buffer.feed(TextDelta(item_id=str(number // 500), text=f"{number},"))
    buffer.close()
    assert len(buffer) == 258
    texts: list[str] = []
    while (event := await buffer.next()) is not None:
        assert isinstance(event, TextDelta)
        texts.append(event.text)
    assert "".join(texts) == "".join(f"{number}," for number in range(1_000))


async def test_two_processes_that_open_a_store_at_once_share_it(tmp_path: Path) -> None:
    opened: list[str] = []

    async def open_one(name: str) -> None:
        async with Host(store=tmp_path / "runs.db", provider=ScriptedModel()) as host:
            await host.tasks()
            opened.append(name)
            await until(lambda: len(opened) == 3)

    async with anyio.create_task_group() as group:
        for name in ("a", "b", "c"):
            group.start_soon(open_one, name)
    assert sorted(opened) == ["a", "b", "c"]


@pytest.mark.parametrize("adopt", [False, True])
async def test_opening_a_store_of_yesterday_spends_nothing_unless_it_should(tmp_path: Path, adopt: bool) -> None:
    store, yesterday, today = tmp_path / "runs.db", ScriptedModel(Hang()), ScriptedModel("done")
    async with Host(store=store, provider=yesterday) as host:
        task = await host.start(HELLO, task_id="A-17")
        aiter(task.run("go"))
        await until(lambda: len(yesterday.seen) == 1)
    async with Host(store=store, provider=today, adopt=adopt) as host:
        if adopt:
            await until(lambda: len(today.seen) == 1)
        else:
            await anyio.sleep(1.5)
            assert today.seen == []
        task = await host.open("A-17", HELLO)
        assert (await task.resume(timeout=60)).unwrap() == "done"
    assert len(today.seen) == 1


def answer(seen: Seen) -> str | Call:
    """The same whenever it is asked: a call, and then an end."""
    return f"done: {seen.last_output}" if seen.last_output else Call("refund", {"order": "A-17", "cents": 1})


async def work(store: Path, till: Till, marks: list[str]) -> str:
    """A task from wherever it stands to its end, with a person who says yes."""
    async with Host(store=store, provider=ScriptedModel(*[answer] * 20)) as host:
        marks.append("open")
        task = await host.start(DESK, task_id="A-17", if_exists="open", deps=till)
        marks.append("started")
        run = task.resume(timeout=60) if await task.history() else task.run("go", timeout=60)
        while isinstance(result := await run, Paused):
            for call in result.pending:
                if call.outcome == "unknown":
                    assert call.allowed >= {"retry", "respond", "reject"}
                    await task.decide(call, Respond("it is not known"))
                else:
                    assert "decided" not in marks, "the decision was lost"
                    await task.decide(call, Approve())
                    marks.append("decided")
            run = task.resume(timeout=60)
        return result.status


# All of them take minutes; these are spread over the whole life. `scripts/figures` goes through all.
STEPS = range(1, 60) if os.environ.get("OARLOCK_FAULTS") == "all" else (2, 7, 16, 28)


@pytest.mark.parametrize("step", STEPS)
async def test_cancelled_at_an_await(step: int, tmp_path: Path) -> None:
    store, till = tmp_path / "runs.db", Till(tmp_path / "till")
    marks: list[str] = []
    with anyio.fail_after(60):
        await cancelled_at(step, lambda: work(store, till, marks))
    # Nothing is left behind but the store.
    with anyio.fail_after(10):
        await until(lambda: not hosts_on(store))
    assert await work(store, till, marks) in ("completed", "interrupted")
    assert len(till.lines()) <= 1


async def test_the_last_to_leave_ends_the_host(tmp_path: Path) -> None:
    store, may_leave, has_left = tmp_path / "runs.db", anyio.Event(), anyio.Event()
    agent = Agent(name="sleeper", tools=[ExecCommand], tool_set="replace", sandbox="danger-full-access")
    wait = f"while ! test -e {tmp_path}/go; do sleep 0.05; done"
    command = f"touch {tmp_path}/begun; {wait}; echo x >> {tmp_path}/runs"

    async def first(*, task_status: anyio.abc.TaskStatus[int]) -> None:
        async with Host(store=store, provider=Offline()) as host:
            transport = host._opened().transport
            assert isinstance(transport, ProcessTransport)
            task_status.started(transport.pid)
            await may_leave.wait()
        has_left.set()

    with anyio.fail_after(90):
        async with anyio.create_task_group() as group:
            pid = await group.start(first)
            async with Host(store=store, provider=Offline(), backend=Local(tmp_path)) as second:
                task = await second.start(agent)
                run = task.run(f"run {command}", timeout=60)
                group.start_soon(run._wait)
                await until((tmp_path / "begun").exists)
                # Whoever started the host leaves; the turn of the other goes on, in the same host.
                may_leave.set()
                await has_left.wait()
                assert is_alive(pid)
                (tmp_path / "go").touch()
                assert (await run).status == "completed"
                assert is_alive(pid)
            await until(lambda: is_over(pid))
    assert (tmp_path / "runs").read_text() == "x\n"


def is_over(pid: int) -> bool:
    """Gone, or waiting to be reaped by this process."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z"


async def test_events_are_replayed_and_followed() -> None:
    async with offline_host(ScriptedModel("one", "two", "three")) as host:
        task = await host.start(HELLO)
        live: list[Event] = []
        run = task.run("go", timeout=60)
        live += [event async for event in run]
        run = task.run("go", timeout=60)
        live += [event async for event in run]
        replayed: list[Event] = []
        async for event in task.events(after=0):
            replayed.append(event)
            if isinstance(event, TurnCompleted) and sum(isinstance(e, TurnCompleted) for e in replayed) == 2:
                break
        kept = (TurnStarted, ItemCompleted, TurnCompleted)
        assert [(type(e), e.seq) for e in replayed if isinstance(e, kept)] == [
            (type(e), e.seq) for e in live if isinstance(e, kept)
        ]
        # From the middle, and on to what comes.
        after = next(event.seq for event in live if isinstance(event, TurnCompleted))
        events = task.events(after=after)
        first = await anext(aiter(events))
        assert isinstance(first, TurnStarted) and first.seq > after
        await task.run("go", timeout=60)
        text = ""
        async for event in events:
            if isinstance(event, TextDelta):
                text += event.text
            if isinstance(event, TurnCompleted) and text:
                break
        assert text.endswith("three")


async def test_a_task_without_its_agent_has_the_events_of_its_record() -> None:
    kept = (TurnStarted, ItemCompleted, TurnCompleted)
    async with offline_host(ScriptedModel("one", "two")) as host:
        task = await host.start(HELLO, task_id="A-17")
        live = [event async for event in task.run("go", timeout=60)]
        reader = await host.open("A-17")
        events = reader.events(after=0)
        read = [await anext(events) for _ in range(4)]
        assert [(type(e), e.seq) for e in read] == [(type(e), e.seq) for e in live if isinstance(e, kept)]
        # From now on.
        later = reader.events()
        with anyio.move_on_after(0.2):
            await anext(later)
        await task.run("go", timeout=60)
        with anyio.fail_after(60):
            assert [type(await anext(later)) for _ in range(4)] == [type(event) for event in read]
            assert isinstance(await anext(events), TurnStarted)


async def test_a_turn_that_ends_while_its_task_is_opened_has_its_text() -> None:
    async with offline_host(ScriptedModel()) as host:
        task = await host.start(HELLO)
        follower = task._follower
        follower.expect_resync()
        # Right behind the answer of `thread/resume`, and read before whoever waits for that goes on.
        item = {"type": "agentMessage", "id": "i", "text": "done"}
        follower.take("item/completed", {"threadId": follower.thread_id, "turnId": "u", "item": item})
        turn: dict[str, Any] = {"id": "u", "items": [], "status": "completed", "error": None}
        follower.take("turn/completed", {"threadId": follower.thread_id, "turn": turn})
        before = {**item, "text": "I begin."}
        started = (await host._ask("thread/read", {"threadId": follower.thread_id}))["thread"]
        started["turns"] = [{**turn, "status": "inProgress", "items": [before]}]
        follower.resync(Thread.from_wire(started))
        assert (await task.resume(timeout=60)).unwrap() == "done"
