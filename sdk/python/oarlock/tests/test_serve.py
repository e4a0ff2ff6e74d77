"""A worker: policies and tools of tasks that others started and decided."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from oarlock import Agent, Approve, Decision, Host, Local, Offline, PendingCommand, TaskInfo
from oarlock.tools import ExecCommand
from test_pending import until, worker

pytestmark = pytest.mark.anyio


async def test_a_worker_decides_by_the_policies_of_its_agents(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with Host(store=store, provider=Offline(), backend=Local(tmp_path)) as host:
        task = await host.start(worker(), task_id="A-17")
        assert (await task.run("run touch made", timeout=60)).status == "paused"
        other = await host.start(Agent(name="other", tools=[ExecCommand], tool_set="replace", ask="host"))
        assert (await other.run("run touch other", timeout=60)).status == "paused"

    asked: list[str] = []

    def yes(call: PendingCommand) -> Decision | None:
        asked.append(call.command)
        assert call.deps == "for A-17"
        return Approve()

    def deps(info: TaskInfo) -> str:
        return f"for {info.id}"

    async with Host(store=store, provider=Offline()) as host, anyio.create_task_group() as group:
        group.start_soon(lambda: host.serve(worker(yes), deps=deps))
        await until((tmp_path / "made").exists)
        group.cancel_scope.cancel()
    assert asked == ["touch made"]
    async with Host(store=store, provider=Offline()) as host:
        assert [call.task_id for call in await host.pending()] == [other.id]
