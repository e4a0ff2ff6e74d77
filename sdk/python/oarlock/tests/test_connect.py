"""Hosts that run: over a socket and over a websocket."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import anyio
import pytest

from oarlock import Agent, Host, TransportClosed
from test_pending import until

pytestmark = pytest.mark.anyio

HELLO = Agent(name="hello", tool_set="replace")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def answers(url: str) -> bool:
    """Whether somebody listens."""
    family = socket.AF_INET if url.startswith("ws") else socket.AF_UNIX
    address = ("127.0.0.1", int(url.rsplit(":", 1)[1])) if url.startswith("ws") else url.removeprefix("unix://")
    with socket.socket(family) as probe:
        return probe.connect_ex(address) == 0


@pytest.mark.parametrize("kind", ["unix", "ws"])
async def test_a_host_that_runs_is_connected_to(tmp_path: Path, kind: str) -> None:
    url = f"ws://127.0.0.1:{free_port()}" if kind == "ws" else f"unix://{tmp_path}/runs.db.sock"
    listen = ["--listen", url] if kind == "ws" else []
    command = [os.environ["OARLOCK_BIN"], "host", "--provider", "offline", "--store", f"sqlite:{tmp_path}/runs.db"]
    async with await anyio.open_process([*command, *listen], stderr=None, cwd=tmp_path) as process:
        await until(lambda: answers(url))
        async with Host.connect(url) as host:
            task = await host.start(HELLO, task_id="A-17")
            assert (await task.run("say hello", timeout=60)).unwrap().endswith("hello")
        process.terminate()
        await process.wait()


async def test_nobody_there() -> None:
    with pytest.raises(TransportClosed, match="no host answers"):
        async with Host.connect("unix:///nowhere/host.sock"):
            pass
    with pytest.raises(TransportClosed, match="no host answers"):
        async with Host.connect(f"ws://127.0.0.1:{free_port()}"):
            pass
