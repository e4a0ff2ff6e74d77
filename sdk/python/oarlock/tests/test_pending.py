"""What waits: policies, decisions here and elsewhere, and the death of everything in between."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from oarlock import (
    Agent,
    Answer,
    Approve,
    Completed,
    ConfigError,
    Decision,
    DecisionConflict,
    Defer,
    Host,
    Local,
    Offline,
    Paused,
    PendingCommand,
    PendingUserInput,
    Reject,
    Replace,
    Respond,
    TaskBusy,
)
from oarlock.events import Event, Notice, ToolDecided, ToolPending
from oarlock.testing import Call, ScriptedModel, offline_host
from oarlock.tools import ExecCommand, RequestUserInput

pytestmark = pytest.mark.anyio


def worker(policy: Callable[[PendingCommand], Decision | None] | None = None) -> Agent[object]:
    """Every command asks."""
    command = ExecCommand(approval=policy) if policy is not None else ExecCommand
    return Agent(name="worker", tools=[command], tool_set="replace", ask="host", sandbox="danger-full-access")


async def test_a_turn_that_needs_a_decision_is_paused_and_resumed(tmp_path: Path) -> None:
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(worker())
        result = await task.run("run touch made", timeout=60)
        assert isinstance(result, Paused)
        [call] = result.pending
        assert isinstance(call, PendingCommand)
        assert call.describe() == call.command == "touch made"
        assert call.allowed >= {"approve", "reject", "defer"}
        assert [waiting.operation_id for waiting in await task.pending()] == [call.operation_id]
        assert [waiting.operation_id for waiting in await host.pending()] == [call.operation_id]
        with pytest.raises(TaskBusy, match="waits for a decision"):
            task.run("say hello")
        assert not (tmp_path / "made").exists()
        await task.decide(call, Approve(), by="mira")
        with pytest.raises(DecisionConflict):
            await task.decide(call, Reject())
        assert (await task.resume(timeout=60)).status == "completed"
        assert (tmp_path / "made").exists()
        assert await task.pending() == ()


@pytest.mark.parametrize(
    "first", [Approve(), Reject("not today"), Respond("it is there")], ids=lambda one: str(one)[:7]
)
async def test_later_calls_of_a_turn_wait_as_well(tmp_path: Path, first: Decision) -> None:
    store, place = tmp_path / "runs.db", Local(tmp_path / "work")
    async with Host(provider=ScriptedModel(Call("exec_command", {"cmd": "touch a"})), store=store) as host:
        task = await host.start(worker(), task_id="two-calls", backend=place)
        assert (await task.run("go", timeout=60)).status == "paused"
    # The turn goes on elsewhere, with a model that knows nothing of the first call.
    script = ScriptedModel(*(Call("exec_command", {"cmd": f"touch {name}"}) for name in ("b", "c")), "done")
    async with Host(provider=script, store=store) as host:
        task = await host.open("two-calls", worker())
        [call] = await task.pending()
        await task.decide(call, first)
        for name, decision in (("b", Reject("nor this")), ("c", Approve())):
            result = await task.resume(timeout=60)
            assert isinstance(result, Paused)
            assert [call.describe() for call in result.pending] == [f"touch {name}"]
            await task.decide(result.pending[0], decision)
        assert (await task.resume(timeout=60)).unwrap() == "done"
    script.assert_done()
    made = sorted(path.name for path in (tmp_path / "work").iterdir())
    assert made == (["a", "c"] if isinstance(first, Approve) else ["c"])


@pytest.mark.parametrize(
    ("decision", "is_made"),
    [(Approve(), True), (Reject("not today"), False), (Replace(command=["touch", "other"]), False)],
)
async def test_policies_decide_in_place(tmp_path: Path, decision: Decision, is_made: bool) -> None:
    seen: list[PendingCommand] = []

    def policy(call: PendingCommand) -> Decision:
        seen.append(call)
        return decision

    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        run = host.run(worker(policy), "run touch made", timeout=60)
        events: list[Event] = [event async for event in run]
        assert isinstance(await run, Completed)
    assert [call.command for call in seen] == ["touch made"]
    assert (tmp_path / "made").exists() is is_made
    [decided] = [event for event in events if isinstance(event, ToolDecided)]
    assert decided.by == "policy:policy"


@pytest.mark.parametrize(("command", "is_fine"), [("ls -a", True), ("cat a | head -n 3", True), ("touch made", False)])
async def test_a_policy_may_rest_on_what_a_command_does(tmp_path: Path, command: str, is_fine: bool) -> None:
    def looking_is_fine(call: PendingCommand) -> Decision | None:
        return Approve() if call.is_read_only() else None

    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        result = await host.run(worker(looking_is_fine), f"run {command}", timeout=60)
        assert result.status == ("completed" if is_fine else "paused")
        # The same for those who decide later, elsewhere.
        assert all(isinstance(call, PendingCommand) and call.actions for call in await host.pending())


async def test_a_response_takes_the_place_of_the_command(tmp_path: Path) -> None:
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        result = await host.run(worker(lambda call: Respond("it is done already")), "run touch made", timeout=60)
    assert "it is done already" in result.unwrap()
    assert not (tmp_path / "made").exists()


async def test_a_policy_that_raises_or_overreaches_leaves_the_call_to_people(tmp_path: Path) -> None:
    def raises(call: PendingCommand) -> Decision | None:
        raise RuntimeError("no idea")

    def overreaches(call: PendingCommand) -> Decision | None:
        from oarlock import Retry

        return Retry()

    for policy, words in ((raises, "raised RuntimeError: no idea"), (overreaches, "does not take")):
        async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
            run = host.run(worker(policy), "run touch made", timeout=60)
            events: list[Event] = [event async for event in run]
            assert isinstance(await run, Paused)
        assert any(isinstance(event, Notice) and words in event.message for event in events)
        assert any(isinstance(event, ToolPending) for event in events)


async def test_a_policy_that_blocks_holds_up_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarlock._worker._POLICY_SECONDS", 0.5)
    is_asked, may_end = threading.Event(), threading.Event()

    def blocks(call: PendingCommand) -> Decision | None:
        is_asked.set()
        may_end.wait(60)
        return Approve()

    try:
        async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
            run = host.run(worker(blocks), "run touch made", timeout=60)
            events: list[Event] = []
            async for event in run:
                events.append(event)
                if is_asked.is_set():
                    # The loop is free: another task is worked on meanwhile.
                    assert (await host.run(Agent(tool_set="replace"), "say hello", timeout=60)).status == "completed"
            assert isinstance(await run, Paused)
    finally:
        may_end.set()
    assert any(isinstance(event, Notice) and "took longer" in event.message for event in events)
    assert not (tmp_path / "made").exists()


async def test_the_order_of_policies(tmp_path: Path) -> None:
    asked: list[str] = []

    def tool_policy(call: PendingCommand) -> Decision | None:
        asked.append("tool")
        return None

    def agent_policy(call: PendingCommand) -> Decision | None:
        asked.append("agent")
        return Defer("ask a person")

    agent = Agent(
        name="worker",
        tools=[ExecCommand(approval=tool_policy)],
        tool_set="replace",
        approval=agent_policy,
        sandbox="danger-full-access",
    )
    async with Host(provider=Offline(), backend=Local(tmp_path)) as host:
        assert (await host.run(agent, "run touch made", timeout=60)).status == "paused"
    assert asked == ["tool", "agent"]


async def test_a_question_of_the_agent_is_answered() -> None:
    question = {
        "id": "colour",
        "header": "Colour",
        "question": "Which one?",
        "options": [{"label": "red", "description": "like a rose"}, {"label": "blue", "description": "like the sky"}],
    }
    model = ScriptedModel(Call("request_user_input", {"questions": [question]}), "Red it is.")
    async with offline_host(model) as host:
        task = await host.start(Agent(name="painter", tools=[RequestUserInput], tool_set="replace"))
        paused = await task.run("paint it", timeout=60)
        assert isinstance(paused, Paused)
        [call] = paused.pending
        assert isinstance(call, PendingUserInput) and call.describe() == "Which one?"
        with pytest.raises(DecisionConflict, match="takes no approve"):
            await task.decide(call, Approve())
        await task.decide(call, Answer({"colour": "red"}), by="mira")
        assert (await task.resume(timeout=60)).unwrap() == "Red it is."
    assert json.loads(model.seen[1].last_output) == {"answers": {"colour": {"answers": ["red"]}}}


async def test_decided_by_a_host_object_that_knows_no_agent(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Host(store=store, provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(worker(), task_id="A-17")
        assert (await task.run("run touch made", timeout=60)).status == "paused"
    # Nothing lives now. Another program, without the agent:
    async with Host(store=store, provider=Offline()) as host:
        [info] = await host.tasks()
        assert (info.id, info.pending) == ("A-17", 1)
        read_only = await host.open("A-17")
        [call] = await read_only.pending()
        # By the caller's own id, though this process has not started it.
        assert [waiting.task_id for waiting in await host.pending()] == ["A-17"]
        with pytest.raises(ConfigError, match="read and decide only"):
            read_only.run("say hello")
        await host.decide(call.operation_id, Approve(), by="mira")
        await until((tmp_path / "made").exists)


PROGRAM = """
import sys
from pathlib import Path
import anyio
from oarlock import Agent, Host, Local, Offline
from oarlock.tools import ExecCommand

agent = Agent(name="worker", tools=[ExecCommand], tool_set="replace", ask="host", sandbox="danger-full-access")

async def main(store: str, folder: str) -> None:
    async with Host(store=store, provider=Offline(), backend=Local(folder)) as host:
        task = await host.start(agent, task_id="A-17", if_exists="open")
        result = await task.run("run echo x >> runs")
        print(result.status, flush=True)
        await anyio.sleep_forever()

anyio.run(main, *sys.argv[1:])
"""


async def until(is_so: Callable[[], bool]) -> None:
    """Waits for something that other processes do."""
    with anyio.fail_after(60):
        while not is_so():  # noqa: ASYNC110
            await anyio.sleep(0.05)


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def hosts_of(pid: int) -> list[int]:
    """Children of a process that are hosts."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            stat = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            line = (folder / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if int(stat[1]) == pid and b"\0host\0" in line:
            found.append(int(folder.name))
    return found


async def test_the_death_of_the_program_loses_nothing(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    source = str(Path(__file__).parent.parent / "src")
    protocol = str(Path(__file__).parent.parent.parent / "oarlock-protocol" / "src")
    environment = {**os.environ, "PYTHONPATH": f"{source}:{protocol}"}
    command = [sys.executable, "-c", PROGRAM, str(store), str(tmp_path)]
    async with await anyio.open_process(command, env=environment, stderr=None) as program:
        assert program.stdout is not None
        assert (await program.stdout.receive()).strip() == b"paused"
        hosts = hosts_of(program.pid)
        assert len(hosts) == 1
        program.kill()
    # The host ends with the program that started it.
    await until(lambda: not is_alive(hosts[0]))
    assert not (tmp_path / "runs").exists()
    async with Host(store=store, provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.open("A-17", worker())
        [call] = await task.pending()
        await task.decide(call, Approve())
        assert (await task.resume(timeout=60)).status == "completed"
    assert (tmp_path / "runs").read_text() == "x\n"


async def test_the_death_of_the_host_is_survived_in_place(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    before = hosts_of(os.getpid())
    async with Host(store=store, provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(worker(), task_id="A-17")
        paused = await task.run("run echo x >> runs", timeout=60)
        assert isinstance(paused, Paused)
        [pid] = [found for found in hosts_of(os.getpid()) if found not in before]
        os.kill(pid, signal.SIGKILL)
        # The same objects go on: the package starts another host on the store.
        [call] = await task.pending()
        assert call.operation_id == paused.pending[0].operation_id
        await task.decide(call, Approve())
        assert (await task.resume(timeout=60)).status == "completed"
        assert (tmp_path / "runs").read_text() == "x\n"


async def test_a_run_goes_on_after_the_death_of_its_host(tmp_path: Path) -> None:
    before = hosts_of(os.getpid())
    async with Host(store=tmp_path / "runs.db", provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(worker())
        run = task.run("run echo x >> runs", timeout=60)
        async for event in run:
            if isinstance(event, ToolPending):
                [pid] = [found for found in hosts_of(os.getpid()) if found not in before]
                os.kill(pid, signal.SIGKILL)
                break
        result = await run
        assert isinstance(result, Paused)
        await task.decide(result.pending[0], Approve())
        assert (await task.resume(timeout=60)).status == "completed"
    assert (tmp_path / "runs").read_text() == "x\n"
