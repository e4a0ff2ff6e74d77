"""Function tools that have effects: asked about, run by one provider, and never twice."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
import pytest

from oarlock import (
    Agent,
    Approve,
    Host,
    Paused,
    PendingFunction,
    Reject,
    Replace,
    Respond,
    Retry,
    ToolContext,
    tool,
)
from oarlock.events import Event, ToolDecided
from oarlock.testing import Call, Calls, CrashPoints, ScriptedModel, Seen, offline_host
from test_pending import until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("needs_provides")]


@dataclass
class Till:
    """Money that was paid, one line each."""

    path: Path

    def pay(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(line + "\n")

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []


@tool
async def refund(ctx: ToolContext[Till], order: str, cents: int) -> str:
    """Refund part of an order."""
    ctx.deps.pay(f"{order} {cents}")
    return f"paid {cents}"


@tool(effects="readonly")
def balance(ctx: ToolContext[Till]) -> int:
    """Lines in the till."""
    return len(ctx.deps.lines())


DESK = Agent(name="desk", deps_type=Till, tools=[refund, balance], tool_set="replace")


@pytest.fixture
def till(tmp_path: Path) -> Till:
    return Till(tmp_path / "till")


async def test_once_asks_and_readonly_does_not(till: Till) -> None:
    model = ScriptedModel(Calls(Call("balance"), Call("refund", {"order": "A-17", "cents": 4900})), "refunded")
    async with offline_host(model) as host:
        task = await host.start(DESK, deps=till)
        result = await task.run("Refund 49.00 of A-17", timeout=60)
        assert isinstance(result, Paused)
        [call] = result.pending
        assert isinstance(call, PendingFunction)
        assert (call.tool, call.effects, call.outcome) == ("refund", "once", "not_started")
        assert call.arguments == {"order": "A-17", "cents": 4900}
        assert till.lines() == []
        await task.decide(call, Approve(), by="mira")
        assert (await task.resume(timeout=60)).unwrap() == "refunded"
    assert till.lines() == ["A-17 4900"]


async def test_the_tools_own_policy_decides(till: Till) -> None:
    @tool
    def small_refund(ctx: ToolContext[Till], cents: int) -> str:
        """Refund a little."""
        ctx.deps.pay(str(cents))
        return "paid"

    @small_refund.policy
    def desk_limit(call: PendingFunction) -> Approve | None:
        return Approve() if call.arguments["cents"] < 2_000 else None

    agent = Agent(name="desk", deps_type=Till, tools=[small_refund], tool_set="replace")
    model = ScriptedModel(Call("small_refund", {"cents": 1999}), Call("small_refund", {"cents": 2000}), "done")
    async with offline_host(model) as host:
        task = await host.start(agent, deps=till)
        run = task.run("go", timeout=60)
        events: list[Event] = [event async for event in run]
        assert (await run).status == "paused"
        assert till.lines() == ["1999"], events
        [decided] = [event for event in events if isinstance(event, ToolDecided)]
        assert (decided.tool, decided.by) == ("small_refund", "policy:desk_limit")
        [call] = await task.pending()
        await task.decide(call, Reject("too much"))
        assert (await task.resume(timeout=60)).status == "completed"
    assert till.lines() == ["1999"]
    assert model.seen[2].last_output == "too much"


async def test_other_arguments_and_answers_without_a_run(till: Till) -> None:
    model = ScriptedModel(
        Call("refund", {"order": "A-17", "cents": 4900}), Call("refund", {"order": "A-18", "cents": 1}), "done"
    )
    async with offline_host(model) as host:
        task = await host.start(DESK, deps=till)
        await task.run("go", timeout=60)
        [call] = await task.pending()
        await task.decide(call, Replace(arguments={"order": "A-17", "cents": 100}))
        assert (await task.resume(timeout=60)).status == "paused"
        [call] = await task.pending()
        await task.decide(call, Respond("paid by hand"))
        assert (await task.resume(timeout=60)).status == "completed"
    assert till.lines() == ["A-17 100"]
    assert model.seen[2].last_output == "paid by hand"


async def test_wrong_arguments_never_reach_a_person(till: Till) -> None:
    model = ScriptedModel(Call("refund", {"order": "A-17", "cents": "many"}), "sorry")
    async with offline_host(model) as host:
        result = await host.run(DESK, "go", deps=till, timeout=60)
    assert result.status == "completed"
    assert "cents: Input should be a valid integer" in model.seen[1].last_output


PROGRAM = """
import os, sys
import anyio
from pathlib import Path
from oarlock import Agent, Approve, Host, ToolContext, tool
from oarlock.testing import Call, ScriptedModel

@tool(approval=lambda call: Approve())
def refund(order: str, cents: int) -> str:
    "Refund part of an order."
    with open(sys.argv[2], "a") as file:
        file.write(f"{order} {cents}\\n")
    os.kill(os.getpid(), 9)
    return "paid"

async def main() -> None:
    model = ScriptedModel(Call("refund", {"order": "A-17", "cents": 4900}))
    async with Host(store=sys.argv[1], provider=model) as host:
        agent = Agent(name="desk", tools=[refund], tool_set="replace")
        task = await host.start(agent, task_id="A-17")
        await task.run("go")

anyio.run(main)
"""


async def test_a_program_that_dies_in_a_once_tool_leaves_an_unknown_outcome(tmp_path: Path) -> None:
    store, paid = tmp_path / "runs.db", tmp_path / "paid"
    package = Path(__file__).parent.parent
    paths = f"{package / 'src'}:{package.parent / 'oarlock-protocol' / 'src'}"
    command = [sys.executable, "-c", PROGRAM, str(store), str(paid)]
    program = await anyio.run_process(command, env={**os.environ, "PYTHONPATH": paths}, stderr=None, check=False)
    assert program.returncode == -signal.SIGKILL
    assert paid.read_text() == "A-17 4900\n"
    await until(lambda: not hosts_on(store))

    calls: list[str] = []

    @tool
    def refund(order: str, cents: int) -> str:
        """Refund part of an order."""
        calls.append(order)
        return "paid again"

    agent = Agent(name="desk", tools=[refund], tool_set="replace")
    model = ScriptedModel("settled")
    async with Host(store=store, provider=model) as host:
        task = await host.open("A-17", agent)
        paused = await task.resume(timeout=60)
        assert isinstance(paused, Paused)
        [call] = paused.pending
        assert (call.outcome, calls) == ("unknown", [])
        assert call.allowed >= {"retry", "respond", "reject"}
        await task.decide(call, Respond("it was paid"))
        assert (await task.resume(timeout=60)).unwrap() == "settled"
    assert calls == []
    assert model.seen[0].last_output == "it was paid"


async def test_reconcile_finds_out_by_itself(tmp_path: Path) -> None:
    store, paid = tmp_path / "runs.db", tmp_path / "paid"
    package = Path(__file__).parent.parent
    paths = f"{package / 'src'}:{package.parent / 'oarlock-protocol' / 'src'}"
    command = [sys.executable, "-c", PROGRAM, str(store), str(paid)]
    await anyio.run_process(command, env={**os.environ, "PYTHONPATH": paths}, stderr=None, check=False)
    await until(lambda: not hosts_on(store))

    @tool
    def refund(order: str, cents: int) -> str:
        """Refund part of an order."""
        raise AssertionError("it ran twice")

    @refund.reconcile
    def look(order: str, cents: int) -> Respond | Retry:
        return Respond("found in the books") if paid.exists() else Retry()

    model = ScriptedModel("settled")
    async with Host(store=store, provider=model) as host:
        task = await host.open("A-17", Agent(name="desk", tools=[refund], tool_set="replace"))
        assert (await task.resume(timeout=60)).unwrap() == "settled"
    assert model.seen[0].last_output == "found in the books"


async def test_tools_run_where_a_worker_is(till: Till, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    model = ScriptedModel(Call("refund", {"order": "A-17", "cents": 4900}), "refunded")
    async with Host(store=store, provider=model) as host:
        task = await host.start(DESK, task_id="A-17", deps=till)
        assert (await task.run("go", timeout=60)).status == "paused"
    model = ScriptedModel("refunded")
    async with Host(store=store, provider=model) as host:
        # Decided by one that has no tools; run by the worker that comes.
        [call] = await host.pending()
        await host.decide(call, Approve(), by="mira")
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: host.serve(DESK, deps=lambda info: till))
            await until(lambda: bool(till.lines()))
            group.cancel_scope.cancel()
    assert till.lines() == ["A-17 4900"]


def hosts_on(store: Path) -> bool:
    """Whether any host has the store."""
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if b"\0host\0" in line and str(store).encode() in line:
            return True
    return False


@pytest.mark.parametrize("victim", ["host", "runtime"])
async def test_a_crash_at_a_step_that_the_program_names(tmp_path: Path, victim: Literal["host", "runtime"]) -> None:
    points: list[CrashPoints] = []

    @tool(effects="readonly")
    def look() -> str:
        """Looks."""
        points[0].reach("looked")
        return "seen"

    def answer(seen: Seen) -> str | Call:
        return f"done: {seen.last_output}" if seen.last_output else Call("look")

    async with Host(store=tmp_path / "runs.db", provider=ScriptedModel(*[answer] * 10)) as host:
        points.append(CrashPoints(host, victim, "looked"))
        run = host.run(Agent(tools=[look], tool_set="replace"), "go", timeout=60)
        assert (await run).unwrap() == "done: seen"
    assert len(points[0].killed) == 1


def desk_of(release: int) -> Agent[Till]:
    """The second release of a program has another schema for its tool."""
    if release == 1:
        return DESK

    @tool(name="refund")
    def refund_with_reason(ctx: ToolContext[Till], order: str, cents: int, reason: str = "none") -> str:
        """Refund part of an order."""
        ctx.deps.pay(f"{order} {cents} {reason}")
        return f"paid {cents}, {reason}"

    return Agent(name="desk", deps_type=Till, tools=[refund_with_reason, balance], tool_set="replace")


@pytest.mark.parametrize("is_approved", [False, True], ids=["waiting", "approved"])
async def test_a_release_that_changes_a_tool_is_asked_again(till: Till, tmp_path: Path, is_approved: bool) -> None:
    store = tmp_path / "runs.db"
    script = Call("refund", {"order": "A-17", "cents": 4900})
    async with Host(store=store, provider=ScriptedModel(script)) as host:
        task = await host.start(desk_of(1), task_id="A-17", deps=till)
        assert (await task.run("go", timeout=60)).status == "paused"
    model = ScriptedModel("done", Call("refund", {"order": "A-18", "cents": 1}), "done again")
    async with Host(store=store, provider=model) as host:
        if is_approved:
            [call] = await host.pending()
            await host.decide(call, Approve(), by="mira")
        # In the same host, while the runtime that has the old tools may be there.
        task = await host.open("A-17", desk_of(2), deps=till)
        [call] = await task.pending()
        assert (call.outcome, till.lines()) == ("not_started", [])
        await task.decide(call, Approve(), by="mira")
        assert (await task.resume(timeout=60)).unwrap() == "done"
        assert till.lines() == ["A-17 4900 none"]
        # Later calls are of the new schema too.
        result = await task.run("again", timeout=60)
        assert isinstance(result, Paused)
        await task.decide(result.pending[0], Replace(arguments={"order": "A-18", "cents": 1, "reason": "late"}))
        assert (await task.resume(timeout=60)).unwrap() == "done again"
    assert till.lines() == ["A-17 4900 none", "A-18 1 late"]
    model.assert_done()
