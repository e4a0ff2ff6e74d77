"""A provider of this program, as its host reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import anyio.abc
import pytest

from oarlock import ModelCapabilities, ModelRequest
from oarlock._bridge import _MAX_WAITING, ModelBridge


@pytest.fixture(autouse=True)
def home() -> None:
    """Nothing here needs a program."""


class Many:
    """Yields without waiting."""

    id = "many"

    def __init__(self, count: int | None, *, size: int = 1) -> None:
        self._count = count
        self._size = size
        self.yielded = 0
        self.closed = anyio.Event()

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        try:
            while self._count is None or self.yielded < self._count:
                self.yielded += 1
                yield {"type": "made", "text": "x" * self._size}
        finally:
            self.closed.set()

    async def aclose(self) -> None: ...


def void(_: object) -> None:
    """Nobody waits for what was started."""


def question(bridge: ModelBridge, length: str = "2", token: str | None = None) -> bytes:
    """A request of the host."""
    [secret] = bridge.environment().values()
    bearer = f"Bearer {secret if token is None else token}"
    return f"POST /v1/responses HTTP/1.1\r\nauthorization: {bearer}\r\ncontent-length: {length}\r\n\r\n{{}}".encode()


async def asked(bridge: ModelBridge) -> anyio.abc.SocketStream:
    """A connection of the host that has asked."""
    stream = await anyio.connect_tcp("127.0.0.1", bridge._port)
    await stream.send(question(bridge))
    return stream


async def to_the_end(stream: anyio.abc.SocketStream) -> bytes:
    """All that comes until the connection ends."""
    return b"".join([chunk async for chunk in stream])


@pytest.mark.anyio
async def test_what_a_provider_yields_at_once_is_sent_at_once() -> None:
    provider = Many(3)
    bridge = ModelBridge(provider)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await bridge.open(lambda work: void(group.start_soon(work)))
            async with await asked(bridge) as stream:
                chunk = await stream.receive()
                assert chunk.startswith(b"HTTP/1.1 200") and chunk.count(b"event: made\n") == 3
                assert chunk.endswith(b"\r\n0\r\n\r\n")
                # The same connection serves the next request, which has nothing left to say.
                await stream.send(question(bridge))
                assert (await stream.receive()).endswith(b"\r\n\r\n0\r\n\r\n")
            group.cancel_scope.cancel()
    await bridge.aclose()


@pytest.mark.anyio
async def test_only_its_host_is_answered() -> None:
    provider = Many(1)
    bridge = ModelBridge(provider)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await bridge.open(lambda work: void(group.start_soon(work)))
            for wrong, status in (
                (question(bridge, token="guessed"), b"401"),
                (question(bridge, length="many"), b"404"),
                (question(bridge, length="9" * 5_000), b"404"),
                (question(bridge).replace(b"POST", b"GET"), b"404"),
            ):
                async with await anyio.connect_tcp("127.0.0.1", bridge._port) as stream:
                    await stream.send(wrong)
                    assert (await to_the_end(stream)).startswith(b"HTTP/1.1 " + status)
            assert provider.yielded == 0
            # None of them ended the endpoint.
            async with await asked(bridge) as stream:
                assert b"event: made\n" in await stream.receive()
            group.cancel_scope.cancel()
    await bridge.aclose()


class Breaking(Many):
    """Raises in the middle of its answer."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        yield {"type": "made"}
        raise RuntimeError("out of words")


@pytest.mark.anyio
async def test_an_answer_that_breaks_off_has_no_end() -> None:
    bridge = ModelBridge(Breaking(1))
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await bridge.open(lambda work: void(group.start_soon(work)))
            async with await asked(bridge) as stream:
                said = await to_the_end(stream)
                assert b"event: made\n" in said and b"\r\n0\r\n" not in said
            group.cancel_scope.cancel()
    await bridge.aclose()


@pytest.mark.anyio
async def test_a_provider_waits_for_its_host_and_ends_with_it() -> None:
    provider = Many(None, size=1_000)
    bridge = ModelBridge(provider)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await bridge.open(lambda work: void(group.start_soon(work)))
            async with await asked(bridge) as stream:
                received = len(await stream.receive())
                # It goes on as long as somebody reads.
                while received < 20 * _MAX_WAITING:
                    received += len(await stream.receive())
            await provider.closed.wait()
            # What lies in the buffers of the system, and no more.
            assert provider.yielded * 1_000 < received + 40_000_000
            group.cancel_scope.cancel()
    await bridge.aclose()
