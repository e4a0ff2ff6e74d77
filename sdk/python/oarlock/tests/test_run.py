"""A turn from Python, with a real host and the model inside the binary."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from oarlock import (
    Agent,
    Completed,
    ConfigError,
    Dir,
    Host,
    Interrupted,
    LimitExceeded,
    Limits,
    Local,
    Manifest,
    Offline,
    RpcError,
    Task,
    TaskBusy,
    TaskExists,
    TaskUsage,
    Text,
)
from oarlock.events import Event, Notice, TextDelta, TurnCompleted, TurnStarted
from oarlock.testing import ScriptedModel, offline_host

pytestmark = pytest.mark.anyio

HELLO = Agent(name="hello", instructions="Answer in one sentence.", tool_set="replace")


async def test_a_run_is_awaited() -> None:
    async with Host(provider=Offline()) as host:
        result = await host.run(HELLO, "say good morning", timeout=60)
    assert isinstance(result, Completed)
    assert "good morning" in result.unwrap().lower()
    assert result.output == result.text
    assert result.usage.input_tokens > 0


async def test_a_run_is_iterated_and_gives_typed_events() -> None:
    async with Host(provider=Offline()) as host:
        run = host.run(HELLO, "say good morning", timeout=60)
        events: list[Event] = [event async for event in run]
        result = await run
    kinds = [type(event) for event in events]
    assert kinds[0] is TurnStarted
    assert kinds[-1] is TurnCompleted
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert text == result.text
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert events[-1].to_json() == {"type": "turn_completed", "seq": events[-1].seq, "turn_id": result.turn_id}


async def test_text_comes_as_it_is_written() -> None:
    async with Host(provider=Offline()) as host, host.run(HELLO, "say a b c d e f g", timeout=60) as run:
        chunks = [chunk async for chunk in run.text_deltas()]
        assert (await run).unwrap() == "".join(chunks)


async def test_leaving_a_run_that_is_owned_interrupts_it(tmp_path: Path) -> None:
    agent = Agent(name="sleeper", sandbox="danger-full-access", settings={"approval_policy": "never"})
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(agent)
        async with task.run("run sleep 600") as run:
            async for event in run:
                if type(event).__name__ == "ItemStarted" and "sleep" in str(event.to_json()):
                    break
        result = await run
        assert isinstance(result, Interrupted)
        assert result.reason == "interrupted"
        assert (await task.resume()).status == "interrupted"


async def test_a_timeout_interrupts(tmp_path: Path) -> None:
    agent = Agent(name="sleeper", sandbox="danger-full-access", settings={"approval_policy": "never"})
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        result = await host.run(agent, "run sleep 600", timeout=1)
    assert isinstance(result, Interrupted)
    assert result.reason == "timeout"


async def test_one_turn_at_a_time(tmp_path: Path) -> None:
    agent = Agent(name="sleeper", sandbox="danger-full-access", settings={"approval_policy": "never"})
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(agent)
        async with task.run("run sleep 600") as run:
            async for _ in run:
                break
            with pytest.raises(TaskBusy):
                task.run("say hello")
        assert (await task.run("say hello")).status == "completed"


async def test_ids_of_the_callers_choice(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Host(store=store, provider=Offline()) as host:
        task = await host.start(HELLO, task_id="A-17")
        assert (await task.run("say one")).unwrap().endswith("one")
        with pytest.raises(TaskExists):
            await host.start(HELLO, task_id="A-17")
        again = await host.start(HELLO, task_id="A-17", if_exists="open")
        assert again.id == "A-17"
        with pytest.raises(RpcError):
            await host.open("A-18")
    async with Host(store=store, provider=Offline()) as host:
        [info] = await host.tasks()
        assert (info.id, info.pending) == ("A-17", 0)
        task = await host.open("A-17", HELLO)
        assert (await task.resume()).unwrap().endswith("one")
        assert (await task.run("say two")).unwrap().endswith("two")
        assert len(await task.history()) == 2
        first = (await task.history())[0]["id"]
        early = await task.fork(after_turn=first)
        assert [turn["id"] for turn in await early.history()] == [first]
        assert (await early.run("say three")).unwrap().endswith("three")
        assert len(await early.history()) == len(await task.history()) == 2
        await early.delete()
        with pytest.raises(ConfigError, match="has no turn nope"):
            await task.fork(after_turn="nope")
        fork = await task.fork()
        assert len(await fork.history()) == 2
        await task.delete()
        assert [info.id for info in await host.tasks()] == [fork.id]


async def test_two_hosts_on_one_store_are_one(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Host(store=store, provider=Offline()) as first, Host(store=store, provider=Offline()) as second:
        task = await first.start(HELLO, task_id="shared")
        assert (await task.run("say one")).status == "completed"
        same = await second.open("shared", HELLO)
        assert (await same.run("say two")).unwrap().endswith("two")
        async with Host.connect(f"unix://{store}.sock") as third:
            assert [info.id for info in await third.tasks()] == ["shared"]


async def test_files_of_the_workspace() -> None:
    async with Host(provider=Offline()) as host:
        task = await host.start(Agent())
        await task.files.write("notes/a.txt", "a\n")
        assert await task.files.list() == ["notes/"]
        assert await task.files.read_text("notes/a.txt") == "a\n"
        with pytest.raises(ConfigError):
            await task.files.read_text("../outside")


async def test_a_host_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a file"):
        async with Host(runtime=tmp_path / "missing"):
            pass
    with pytest.raises(ConfigError, match="expected unix"):
        Host.connect("http://127.0.0.1")


async def test_labels_find_tasks(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Host(store=store, provider=Offline()) as host:
        await host.start(HELLO, task_id="A-17", labels={"team": "desk", "lang": "nl"})
        await host.start(HELLO, task_id="A-18", labels={"team": "desk"})
        await host.start(HELLO, task_id="A-19")
        with pytest.raises(RpcError, match="labels"):
            await host.start(HELLO, labels={"": "nameless"})
    async with Host(store=store, provider=Offline()) as host:
        found = {info.id: info for info in await host.tasks(labels={"team": "desk"})}
        assert sorted(found) == ["A-17", "A-18"]
        assert found["A-17"].labels == {"team": "desk", "lang": "nl"}
        assert {info.agent for info in found.values()} == {"hello"}
        assert [info.id for info in await host.tasks(labels={"team": "desk", "lang": "nl"})] == ["A-17"]
        assert await host.tasks(labels={"team": "kitchen"}) == []


async def test_another_definition_of_an_agent_is_noticed(tmp_path: Path) -> None:
    async def notices(task: Task[object]) -> list[str]:
        return [event.message async for event in task.run("say hello", timeout=60) if isinstance(event, Notice)]

    other = Agent(name="hello", instructions="Answer in two sentences.", tool_set="replace")
    for number, (agents, expected) in enumerate((((HELLO, HELLO), 0), ((HELLO, other), 1), ((other, other), 0))):
        store = tmp_path / f"{number}.db"
        async with Host(store=store, provider=Offline()) as host:
            assert await notices(await host.start(agents[0], task_id="A-17")) == []
        async with Host(store=store, provider=Offline()) as host:
            said = await notices(await host.open("A-17", agents[1]))
            assert len([words for words in said if "is not as it was" in words]) == expected
        async with Host(store=store, provider=Offline()) as host:
            # It was opened with this one meanwhile.
            assert await notices(await host.open("A-17", agents[1])) == []


async def test_a_budget_ends_a_turn_and_usage_is_counted() -> None:
    async with offline_host(ScriptedModel("one", "two")) as host:
        task = await host.start(Agent(name="hello", tool_set="replace", limits=Limits(tokens=20)), task_id="A-17")
        assert (await task.run("go", timeout=60)).status == "completed"
        [used] = await host.usage(task_id="A-17")
        assert isinstance(used, TaskUsage)
        assert (used.task_id, used.requests, used.input_tokens, used.output_tokens) == ("A-17", 1, 10, 5)
        assert (await task.run("go", timeout=60)).status == "completed"
        with pytest.raises(LimitExceeded, match="30 tokens of 20"):
            (await task.run("go", timeout=60)).unwrap()
        assert [row.input_tokens for row in await host.usage()] == [20]
        assert await host.usage(since=datetime.now(UTC) + timedelta(days=1)) == []


async def test_a_manifest_never_overwrites(tmp_path: Path) -> None:
    agent = Agent(manifest=Manifest(entries={"a.txt": "new", "b": Dir({"c.sh": Text("true", mode=0o755)})}))
    async with Host(provider=Offline()) as host:
        task = await host.start(agent, backend=Local(tmp_path))
        assert await task.files.list("b") == ["c.sh"]
        assert (tmp_path / "b" / "c.sh").stat().st_mode & 0o777 == 0o755
        with pytest.raises(ConfigError, match="is there already"):
            await host.start(agent, backend=Local(tmp_path))
        with pytest.raises(ConfigError, match="not a path within"):
            await host.start(Agent(manifest=Manifest(entries={"../a": ""})))
