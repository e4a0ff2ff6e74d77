"""Tokens of turns: each request counts once, whatever is said twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock import Agent, Approve, Host, Local, Paused, Task, TurnResult, Usage
from oarlock._usage import ROOT, UsageMeter
from oarlock.events import Event, ModelRequestFinished, ModelRequestStarted
from oarlock.testing import Call, Say, ScriptedModel, Seen, offline_host
from oarlock.tools import ExecCommand, SpawnAgent, WaitAgent

LOOK = Call("exec_command", {"cmd": "true"})
WORKER = Agent(name="worker", tools=[ExecCommand], tool_set="replace", ask="host", sandbox="danger-full-access")
FREE = Agent(name="free", tools=[ExecCommand], tool_set="replace", sandbox="danger-full-access")


async def approve_all(task: Task[object], result: TurnResult[str]) -> TurnResult[str]:
    while isinstance(result, Paused):
        await task.decide(result.pending[0], Approve())
        result = await task.resume(timeout=60)
    return result


@pytest.mark.anyio
async def test_turns_and_pauses_count_each_request_once(tmp_path: Path) -> None:
    async with offline_host(ScriptedModel("one", LOOK, LOOK, LOOK, "two"), backend=Local(tmp_path)) as host:
        task = await host.start(WORKER, task_id="A-17")
        first = await task.run("go", timeout=60)
        assert first.usage == Usage(input_tokens=10, output_tokens=5)
        run = task.run("go", timeout=60)
        events: list[Event] = [event async for event in run]
        paused = await run
        assert paused.usage == Usage(input_tokens=10, output_tokens=5)
        finished = [event for event in events if isinstance(event, ModelRequestFinished)]
        assert [event.usage for event in finished] == [Usage(input_tokens=10, output_tokens=5)]
        second = await approve_all(task, paused)
        assert second.usage == Usage(input_tokens=40, output_tokens=20)
        assert second.usage_by_agent == {("root",): second.usage}
        [counted] = await host.usage(task_id="A-17")
        assert counted.input_tokens == first.usage.input_tokens + second.usage.input_tokens


@pytest.mark.anyio
async def test_every_request_begins_and_ends(tmp_path: Path) -> None:
    model = ScriptedModel(LOOK, Say("I looked."), LOOK, LOOK, "done")
    async with offline_host(model, backend=Local(tmp_path)) as host:
        task = await host.start(FREE)
        for words in (["started", "finished"] * 2, ["started", "finished"] * 3):
            run = task.run("go", timeout=60)
            found = [event async for event in run if isinstance(event, ModelRequestStarted | ModelRequestFinished)]
            assert ["started" if isinstance(event, ModelRequestStarted) else "finished" for event in found] == words
            assert {event.turn_id for event in found if isinstance(event, ModelRequestStarted)} == {(await run).turn_id}


@pytest.mark.anyio
async def test_a_turn_that_waits_asks_nothing(tmp_path: Path) -> None:
    model = ScriptedModel(LOOK, "done")
    async with Host(store=tmp_path / "runs.db", provider=model, backend=Local(tmp_path)) as host:
        task = await host.start(WORKER, task_id="A-17")
        assert (await task.run("go", timeout=60)).status == "paused"
    async with Host(store=tmp_path / "runs.db", provider=model, backend=Local(tmp_path)) as host:
        task = await host.open("A-17", WORKER)
        run = task.resume(timeout=60)
        assert not [event async for event in run if isinstance(event, ModelRequestStarted)]
        await task.decide((await task.pending())[0], Approve())
        run = task.resume(timeout=60)
        assert len([event async for event in run if isinstance(event, ModelRequestStarted)]) == 1


@pytest.mark.anyio
async def test_an_opened_task_counts_what_this_process_followed(tmp_path: Path) -> None:
    model = ScriptedModel("one", "two", LOOK, "three")
    async with Host(store=tmp_path / "runs.db", provider=model, backend=Local(tmp_path)) as host:
        task = await host.start(WORKER, task_id="A-17")
        await task.run("go", timeout=60)
    async with Host(store=tmp_path / "runs.db", provider=model, backend=Local(tmp_path)) as host:
        task = await host.open("A-17", WORKER)
        assert (await task.run("go", timeout=60)).usage.input_tokens == 10
        assert (await approve_all(task, await task.run("go", timeout=60))).usage.input_tokens == 20


@pytest.mark.anyio
async def test_a_child_agent_has_its_own_line() -> None:
    spawned: list[str] = []

    def step(seen: Seen) -> Call | str:
        if "count the sheep" in seen.last_user:
            return "twelve"
        if not seen.last_output:
            return Call("spawn_agent", {"message": "count the sheep"})
        if "agent_id" in seen.last_output:
            spawned.append(seen.last_output.split('"')[3])
            return Call("wait_agent", {"targets": spawned})
        return "twelve sheep"

    agent = Agent(name="farmer", tools=[SpawnAgent, WaitAgent], tool_set="replace")
    async with offline_host(ScriptedModel(step, step, step, step)) as host:
        task = await host.start(agent, task_id="A-17")
        result = await task.run("how many?", timeout=60)
        assert result.unwrap() == "twelve sheep"
        assert {path: usage.input_tokens for path, usage in result.usage_by_agent.items()} == {
            ("root",): 30,
            ("root", spawned[0]): 10,
        }
        [counted] = await host.usage(task_id="A-17")
        assert counted.input_tokens == result.usage.input_tokens == 40


@given(st.lists(st.tuples(st.integers(0, 1_000), st.integers(0, 3), st.booleans()), max_size=30))
def test_whatever_is_said_twice_counts_once(requests: list[tuple[int, int, bool]]) -> None:
    meter = UsageMeter()
    meter.starts_at_zero(ROOT)
    total, of_turn = 0, 0
    for tokens, repeats, is_new_turn in requests:
        if is_new_turn:
            meter.turn_begins()
            of_turn = 0
        total, of_turn = total + tokens, of_turn + tokens
        for _ in range(repeats + 1):
            meter.take(ROOT, Usage(input_tokens=total), Usage(input_tokens=tokens), is_answered=False)
        assert meter.of_turn()[ROOT].input_tokens == of_turn


def test_the_first_total_of_an_opened_task() -> None:
    ten, thirty, forty = (Usage(input_tokens=tokens) for tokens in (10, 30, 40))
    # Sent again when the stream opens: of before.
    meter = UsageMeter()
    assert meter.take(ROOT, thirty, ten, is_answered=False) is None
    assert meter.take(ROOT, forty, ten, is_answered=True) == ten
    assert meter.of_turn() == {ROOT: ten}
    # A provider whose streams open without one: it counts what was just heard.
    meter = UsageMeter()
    assert meter.take(ROOT, forty, ten, is_answered=True) == ten
    assert meter.of_turn() == {ROOT: ten}
    meter.turn_begins()
    assert meter.of_turn() == {ROOT: Usage()}
