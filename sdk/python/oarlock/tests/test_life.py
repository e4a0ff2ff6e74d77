"""Lives of runs: observed, owned, timed, cancelled at any await, and readers that stop."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from oarlock import Agent, Approve, Completed, Host, Interrupted, Paused, Respond, TaskBusy, ToolContext, tool
from oarlock._buffer import EventBuffer
from oarlock.events import Event, ItemCompleted, TextDelta, ToolProgress, TurnCompleted, TurnStarted
from oarlock.testing import Call, ScriptedModel, Seen, offline_host
from stepping import cancelled_at
from test_functions import DESK, Till, hosts_on
from test_pending import until

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
