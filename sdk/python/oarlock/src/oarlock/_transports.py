"""Ways to a host: the pipes of a child, a socket, a websocket. One JSON message at a time."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import urlsplit

import anyio
import anyio.abc

from ._errors import ConfigError, TransportClosed

log = logging.getLogger("oarlock.host")

_CHUNK = 65_536
_STDERR_BYTES = 4_096
# How long a host may take to end its runtimes at a safe point. Killed after that: the store is made for it.
_END_WITHIN = 3.0


class Transport(Protocol):
    """Carries JSON messages both ways."""

    async def send(self, message: bytes) -> None: ...
    def messages(self) -> AsyncIterator[Any]: ...
    async def aclose(self) -> None: ...
    def last_words(self) -> str: ...


class _Lines:
    """Whole lines out of chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        *lines, rest = (bytes(self._rest) + chunk).split(b"\n") if self._rest else chunk.split(b"\n")
        self._rest = bytearray(rest)
        return lines


async def _read_lines(stream: anyio.abc.ByteReceiveStream) -> AsyncIterator[Any]:
    lines = _Lines()
    while True:
        try:
            chunk = await stream.receive(_CHUNK)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            return
        for line in lines.feed(chunk):
            if line.strip():
                yield json.loads(line)


class SocketTransport:
    """A Unix socket."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream

    @classmethod
    async def connect(cls, path: str | Path) -> SocketTransport:
        return cls(await anyio.connect_unix(path))

    async def send(self, message: bytes) -> None:
        try:
            await self._stream.send(message + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise TransportClosed("the host ended the connection") from error

    def messages(self) -> AsyncIterator[Any]:
        return _read_lines(self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def last_words(self) -> str:
        return ""


class ProcessTransport:
    """An embedded host: a child of this process, which ends when this process does."""

    def __init__(self, process: anyio.abc.Process, stderr: IO[bytes]) -> None:
        self._process = process
        self._stderr = stderr
        self._words = ""

    @classmethod
    async def spawn(cls, argv: Sequence[str], environment: Mapping[str, str]) -> ProcessTransport:
        # A file and not a pipe: runtimes of the host inherit it, and would keep a pipe open for longer than the host.
        stderr = tempfile.TemporaryFile("ab+")  # noqa: SIM115
        # A session of its own: Ctrl-C is this program's, which ends the host by closing its input.
        # Shielded: a child that was started and then forgotten would keep the store.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=dict(environment),
                start_new_session=True,
            )
            return cls(process, stderr)
        raise AssertionError("a shielded scope is not cancelled")

    @property
    def pid(self) -> int:
        return self._process.pid

    async def send(self, message: bytes) -> None:
        assert self._process.stdin is not None
        try:
            await self._process.stdin.send(message + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise TransportClosed("the host ended", stderr_tail=self.last_words()) from error

    def messages(self) -> AsyncIterator[Any]:
        assert self._process.stdout is not None
        return _read_lines(self._process.stdout)

    async def aclose(self) -> None:
        """Lets the host end by itself, and kills it when that takes too long."""
        with anyio.CancelScope(shield=True):
            if self._process.stdin is not None:
                await self._process.stdin.aclose()
            with anyio.move_on_after(_END_WITHIN):
                await self._process.wait()
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
            if self._process.stdout is not None:
                await self._process.stdout.aclose()
        self._words = self.last_words()
        self._stderr.close()
        for line in self._words.splitlines():
            log.info("%s", line)

    def last_words(self) -> str:
        """The end of what the host wrote."""
        if self._stderr.closed:
            return self._words
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        return self._stderr.read().decode(errors="replace").strip()


class WebsocketTransport:
    """A websocket, over whichever event loop there is."""

    def __init__(self, stream: anyio.abc.ByteStream, protocol: Any) -> None:
        self._stream = stream
        self._protocol = protocol
        self._sending = anyio.Lock()

    @classmethod
    async def connect(cls, url: str, token: str | None) -> WebsocketTransport:
        try:
            from websockets.client import ClientProtocol
            from websockets.uri import parse_uri
        except ImportError as error:
            raise ConfigError("ws:// needs the package websockets: pip install 'oarlock[websocket]'") from error
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ConfigError(f"{url}: expected ws://HOST:PORT")
        is_tls = parts.scheme == "wss"
        stream: anyio.abc.ByteStream
        if is_tls:
            stream = await anyio.connect_tcp(parts.hostname, parts.port or 443, tls=True)
        else:
            stream = await anyio.connect_tcp(parts.hostname, parts.port or 80)
        protocol = ClientProtocol(parse_uri(url), max_size=None)
        request = protocol.connect()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        protocol.send_request(request)
        transport = cls(stream, protocol)
        await transport._flush()
        while protocol.state.name == "CONNECTING" and protocol.handshake_exc is None:
            await transport._receive()
        if protocol.handshake_exc is not None:
            await stream.aclose()
            raise TransportClosed(f"{url}: {protocol.handshake_exc}")
        return transport

    async def _flush(self) -> None:
        async with self._sending:
            for data in self._protocol.data_to_send():
                if data:
                    await self._stream.send(data)

    async def _receive(self) -> None:
        try:
            self._protocol.receive_data(await self._stream.receive(_CHUNK))
        except anyio.EndOfStream:
            self._protocol.receive_eof()
        await self._flush()

    async def send(self, message: bytes) -> None:
        try:
            self._protocol.send_text(message)
            await self._flush()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError) as error:
            raise TransportClosed("the host ended the connection") from error

    async def messages(self) -> AsyncIterator[Any]:
        from websockets.frames import Opcode

        text = bytearray()
        while True:
            for frame in self._protocol.events_received():
                if getattr(frame, "opcode", None) not in (Opcode.TEXT, Opcode.CONT):
                    continue
                text += frame.data
                if frame.fin:
                    yield json.loads(text)
                    text.clear()
            if self._protocol.state.name != "OPEN":
                return
            try:
                await self._receive()
            except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
                return

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            try:
                self._protocol.send_close()
                await self._flush()
            except Exception:
                log.debug("the websocket was gone before it was closed")
        await self._stream.aclose()

    def last_words(self) -> str:
        return ""


def find_runtime(explicit: Path | None) -> str:
    """The `oarlock` program: the one named, OARLOCK_BIN, that of the wheel `oarlock-runtime`, else on PATH."""
    if explicit is not None:
        if not Path(explicit).is_file():
            raise ConfigError(f"runtime: {explicit} is not a file")
        return str(explicit)
    if named := os.environ.get("OARLOCK_BIN"):
        return named
    if find_spec("oarlock_runtime") is not None:
        return str(import_module("oarlock_runtime").binary_path())
    if found := shutil.which("oarlock"):
        return found
    raise ConfigError(
        "no `oarlock` program: pip install oarlock-runtime, put it on PATH, set OARLOCK_BIN, or give Host(runtime=…)"
    )
