"""A connection that breaks between a request and its answer: what was done once is not done again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from oarlock import Agent, Approve, DecisionConflict, Host, Reject, TransportClosed
from oarlock._connection import Connection
from test_connect import HELLO, answers
from test_pending import until, worker


@pytest.fixture
def anyio_backend() -> str:
    """The connection is what matters; one event loop is enough."""
    return "asyncio"


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Host]:
    """A host that outlives its connections."""
    command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", f"sqlite:{folder}/runs.db"]
    async with await anyio.open_process(command, stderr=None, cwd=folder) as process:
        try:
            url = f"unix://{folder}/runs.db.sock"
            await until(lambda: answers(url))
            async with Host.connect(url) as host:
                yield host
        finally:
            process.terminate()


def lose_answer(monkeypatch: pytest.MonkeyPatch, method: str) -> list[str]:
    """The connection breaks after the first such request was carried out. Collects the requests of this method."""
    real = Connection.ask
    asked: list[str] = []

    async def ask(self: Connection, name: str, params: Any, **more: Any) -> Any:
        if name == method:
            asked.append(name)
        answer = await real(self, name, params, **more)
        if name == method and len(asked) == 1:
            await self.aclose()
            raise TransportClosed("cut off")
        return answer

    monkeypatch.setattr(Connection, "ask", ask)
    return asked


@pytest.mark.anyio
async def test_a_decision_whose_answer_is_lost_is_no_conflict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(tmp_path) as host:
        task = await host.start(worker())
        await task.run("run true", timeout=60)
        [call] = await task.pending()
        asked = lose_answer(monkeypatch, "operation/decide")
        await task.decide(call, Approve())
        assert len(asked) == 2
        with pytest.raises(DecisionConflict) as conflict:
            await task.decide(call, Reject("too late"))
        assert conflict.value.decided is not None and conflict.value.decided["type"] == "approve"
        assert (await task.resume(timeout=60)).status == "completed"


@pytest.mark.anyio
async def test_what_somebody_else_decided_meanwhile_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(tmp_path) as host:
        task = await host.start(worker())
        await task.run("run true", timeout=60)
        [call] = await task.pending()
        real = Connection.ask
        asked: list[str] = []

        async def ask(self: Connection, name: str, params: Any, **more: Any) -> Any:
            if name == "operation/decide" and not asked:
                asked.append(name)
                await real(self, name, {**params, "decision": {"type": "reject"}}, **more)
                await self.aclose()
                raise TransportClosed("cut off")
            return await real(self, name, params, **more)

        monkeypatch.setattr(Connection, "ask", ask)
        with pytest.raises(DecisionConflict):
            await task.decide(call, Approve())


@pytest.mark.anyio
async def test_a_fork_keeps_its_turns_when_an_answer_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(tmp_path) as host:
        task = await host.start(HELLO)
        for word in ("one", "two", "three", "four"):
            (await task.run(f"say {word}", timeout=60)).unwrap()
        turns = [str(turn["id"]) for turn in await task.history()]
        asked = lose_answer(monkeypatch, "thread/rollback")
        fork = await task.fork(after_turn=turns[2])
        assert len(await fork.history()) == 3 and len(asked) == 1
        forked = lose_answer(monkeypatch, "thread/fork")
        with pytest.raises(TransportClosed):
            await task.fork()
        assert len(forked) == 1


@pytest.mark.anyio
async def test_a_task_that_is_started_is_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(tmp_path) as host:
        asked = lose_answer(monkeypatch, "thread/start")
        task = await host.start(Agent(name="again", tool_set="replace"))
        assert len(asked) == 2 and [info.id for info in await host.tasks()] == [task.id]
