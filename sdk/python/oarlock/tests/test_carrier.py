"""A provider of this program at a host that runs in another process."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import repeat
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import pytest

from oarlock import Agent, Host, ModelCapabilities, ModelRequest, ProviderError, SyncHost, TaskBusy, tool
from oarlock.providers import Fallback, Recorder, Replayer
from oarlock.testing import Call, Fail, Hang, ScriptedModel
from test_connect import answers
from test_pending import until

pytestmark = pytest.mark.anyio

HELLO = Agent(name="hello", tool_set="replace")


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: 21 degrees"


class RunningHost:
    """A host in another process, which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"unix://{folder}/runs.db.sock"
        self._process: anyio.abc.Process | None = None

    async def start(self, *more: str) -> None:
        store = f"sqlite:{self._folder}/runs.db"
        command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", store, *more]
        self._process = await anyio.open_process(command, stdout=None, stderr=None, cwd=self._folder)
        await until(lambda: answers(self.url))

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[RunningHost]:
    host = RunningHost(folder)
    await host.start()
    try:
        yield host
    finally:
        with anyio.CancelScope(shield=True):
            await host.kill()


async def test_a_model_of_this_program_answers_for_a_host_elsewhere(tmp_path: Path) -> None:
    model = ScriptedModel(Call("weather", {"city": "Utrecht"}), "Take the bicycle.", "As I said.")
    async with running(tmp_path) as server, Host.connect(server.url, provider=model) as host:
        task = await host.start(Agent(name="rider", tools=[weather], tool_set="replace"), task_id="A-17")
        assert (await task.run("Shall I cycle?", timeout=60)).unwrap() == "Take the bicycle."
        assert "21 degrees" in model.seen[1].last_output
        assert model.seen[0].body["model"] == "scripted"
        fork = await task.fork()
        assert (await fork.run("Really?", timeout=60)).unwrap() == "As I said."
    model.assert_done()


async def test_providers_around_a_provider(tmp_path: Path) -> None:
    record = tmp_path / "requests.jsonl"
    async with running(tmp_path) as server:
        down = ScriptedModel(Fail("out of order"))
        model = Recorder(Fallback([down, ScriptedModel("from the second")]), record)
        async with Host.connect(server.url, provider=model) as host:
            assert (await host.run(HELLO, "hello", timeout=60)).unwrap() == "from the second"
        async with Host.connect(server.url, provider=Replayer(record)) as host:
            assert (await host.run(HELLO, "hello", timeout=60)).unwrap() == "from the second"
            failed = await host.run(HELLO, "something else", timeout=60)
            assert failed.status == "failed"
            with pytest.raises(ProviderError, match="record has 1 answers"):
                failed.unwrap()


async def test_a_program_that_reconnects_goes_on_carrying(tmp_path: Path) -> None:
    model = ScriptedModel(Hang(), "after the restart")
    async with running(tmp_path) as server, Host.connect(server.url, provider=model) as host:
        task = await host.start(HELLO)
        async with anyio.create_task_group() as group:
            group.start_soon(_ends_with, task.run("hello", timeout=60), "after the restart")
            await until(lambda: len(model.seen) == 1)
            await server.kill()
            await server.start()
    model.assert_done()


async def _ends_with(run: Any, text: str) -> None:
    assert (await run).unwrap() == text


async def test_one_program_carries_and_another_takes_over_when_it_is_gone(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        first = ScriptedModel(Hang())
        async with Host.connect(server.url, provider=first) as host:
            task = await host.start(HELLO, task_id="A-17")
            run = task.run("hello")
            async with anyio.create_task_group() as group:
                group.start_soon(_begin, run)
                await until(lambda: len(first.seen) == 1)
                async with Host.connect(server.url, provider=ScriptedModel()) as other:
                    with pytest.raises(TaskBusy, match="carries the model requests"):
                        await other.open("A-17", HELLO)
                group.cancel_scope.cancel()
        second = ScriptedModel("taken over")
        async with Host.connect(server.url) as host:
            [info] = await host.tasks()
            await _waits(host)
            assert info.id == "A-17"
        async with Host.connect(server.url, provider=second) as host:
            task = await host.open("A-17", HELLO)
            assert (await task.resume(timeout=60)).unwrap() == "taken over"
        second.assert_done()


async def _begin(run: Any) -> None:
    await run


async def _waits(host: Host) -> None:
    with anyio.fail_after(30):
        for pause in repeat(0.02):
            if await host.tasks(status="waitingForCarrier"):
                return
            await anyio.sleep(pause)


async def test_an_interrupted_turn_stops_the_provider(tmp_path: Path) -> None:
    class Slow:
        """Says something, and then nothing more."""

        id = "slow"
        closed = anyio.Event()

        def capabilities(self, model: str) -> ModelCapabilities:
            return ModelCapabilities(context_window=50_000, images_in=False)

        async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
            try:
                yield {"type": "response.created", "response": {"id": "r"}}
                await anyio.sleep_forever()
            finally:
                self.closed.set()

        async def aclose(self) -> None: ...

    slow = Slow()
    async with running(tmp_path) as server, Host.connect(server.url, provider=slow) as host:
        task = await host.start(HELLO)
        result = await task.run("hello", timeout=1)
        assert result.status == "interrupted"
        with anyio.fail_after(10):
            await slow.closed.wait()


async def test_a_provider_that_breaks_harms_its_turn_alone(tmp_path: Path) -> None:
    class Broken:
        """Raises what it likes."""

        id = "broken"
        asked = 0

        def capabilities(self, model: str) -> ModelCapabilities:
            return ModelCapabilities()

        async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
            self.asked += 1
            if self.asked == 1:
                raise RuntimeError("before anything")
            if self.asked == 2:
                yield {"type": object()}
            text = "x" * 1_000
            yield {"type": "response.created", "response": {"id": "r"}}
            item = {"type": "message", "id": "m", "role": "assistant", "content": []}
            yield {"type": "response.output_item.added", "item": item}
            for _ in range(2_000):
                yield {"type": "response.output_text.delta", "item_id": "m", "delta": text}
            content = [{"type": "output_text", "text": text * 2_000, "annotations": []}]
            yield {"type": "response.output_item.done", "item": {**item, "content": content}}
            yield {"type": "response.completed", "response": {"id": "r"}}

        async def aclose(self) -> None: ...

    async with running(tmp_path) as server, Host.connect(server.url, provider=Broken()) as host:
        task = await host.start(HELLO)
        for _ in range(2):
            with pytest.raises(ProviderError):
                (await task.run("hello", timeout=60)).unwrap()
        # Two megabytes in small pieces: more than any window.
        assert len((await task.run("hello", timeout=60)).unwrap()) == 2_000_000


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_sync_face_carries_too(tmp_path: Path) -> None:
    def program(url: str) -> str:
        with SyncHost.connect(url, provider=ScriptedModel("from the other thread")) as host:
            return str(host.run(HELLO, "hello", timeout=60).result().unwrap())

    async with running(tmp_path) as server:
        assert await anyio.to_thread.run_sync(program, server.url) == "from the other thread"
