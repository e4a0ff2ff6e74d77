"""Ways to a host: the pipes of a child, a socket, a websocket. One JSON message at a time."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Protocol

import anyio
import anyio.abc

from ._errors import ConfigError, TransportClosed
from ._process import HostProcess

log = logging.getLogger("oarlock.host")

_CHUNK = 65_536
# How long a host may take to end its runtimes at a safe point. Killed after that: the store is made for it.
_END_WITHIN = 3.0
# Where the system has no descriptor for a process.
_LOOK_EVERY = 0.01
# One JSON value from a place in a text: its value and its end.
_scan: Callable[[str, int], tuple[Any, int]] = getattr(json.JSONDecoder(), "scan_once")  # noqa: B009


class Transport(Protocol):
    """Carries JSON messages both ways."""

    async def send(self, message: bytes) -> None: ...
    def messages(self) -> AsyncIterator[list[Any]]:
        """All that is there, together: a wait for each of many small messages takes longer than reading them."""
        ...

    async def aclose(self) -> None: ...
    def last_words(self) -> str: ...


class LineMessages:
    """Messages out of chunks, one to a line."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Any]:
        """The messages that are complete with this chunk. `ValueError` for a line that is none."""
        lines, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            # A piece of a long line. Joined once, when its end is there.
            self._rest.append(chunk)
            return []
        whole = b"".join([*self._rest, lines])
        self._rest = [rest] if rest else []
        return _parsed(whole.decode())


def _parsed(lines: str) -> list[Any]:
    # As one list: a parser that is started for each line takes longer to start than to parse.
    together = "[" + lines.replace("\n", ",") + "]"
    try:
        found: list[Any]
        found, end = _scan(together, 0)
        if end == len(together):
            return found
    except (ValueError, StopIteration):
        pass
    # Empty lines are allowed; of any other, the error is about the line alone.
    return [json.loads(line) for line in lines.split("\n") if line.strip()]


async def _read_lines(stream: anyio.abc.ByteReceiveStream) -> AsyncIterator[list[Any]]:
    lines = LineMessages()
    while True:
        try:
            chunk = await stream.receive(_CHUNK)
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            return
        if messages := lines.feed(chunk):
            yield messages


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

    def messages(self) -> AsyncIterator[list[Any]]:
        return _read_lines(self._stream)

    async def aclose(self) -> None:
        await self._stream.aclose()

    def last_words(self) -> str:
        return ""


class ProcessTransport:
    """An embedded host: a child of this process, which ends when this process does."""

    def __init__(self, process: HostProcess) -> None:
        self._process = process
        self._is_open = True

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_greeted(self) -> bool:
        return self._process.is_greeted

    async def send(self, message: bytes) -> None:
        rest = memoryview(message + b"\n")
        try:
            while self._is_open:
                try:
                    rest = rest[os.write(self._process.stdin, rest) :]
                except BlockingIOError:
                    await anyio.wait_writable(self._process.stdin)
                if not rest:
                    return
        except (anyio.ClosedResourceError, OSError, ValueError) as error:
            raise TransportClosed("the host ended", stderr_tail=self.last_words()) from error
        raise TransportClosed("the host ended", stderr_tail=self.last_words())

    async def messages(self) -> AsyncIterator[list[Any]]:
        lines = LineMessages()
        descriptor = self._process.stdout
        while self._is_open:
            try:
                # Also where there is more: whoever waits for what was read comes first.
                await anyio.wait_readable(descriptor)
                chunk = os.read(descriptor, _CHUNK) if self._is_open else b""
            except BlockingIOError:
                continue
            except (anyio.ClosedResourceError, OSError):
                return
            if not chunk:
                return
            if messages := lines.feed(chunk):
                yield messages

    async def aclose(self) -> None:
        """Lets the host end by itself, and kills it when that takes too long."""
        if not self._is_open:
            return
        with anyio.CancelScope(shield=True):
            anyio.notify_closing(self._process.stdin)
            self._process.close_input()
            with anyio.move_on_after(_END_WITHIN):
                await _ended(self._process)
            if not self._process.has_ended():
                self._process.kill()
                await _ended(self._process)
            self._is_open = False
            anyio.notify_closing(self._process.stdout)
        self._process.close()
        for line in self.last_words().splitlines():
            log.info("%s", line)

    def leave(self) -> None:
        """Ends this connection and no more: others use the host."""
        self._is_open = False
        for descriptor in (self._process.stdin, self._process.stdout):
            anyio.notify_closing(descriptor)
        self._process.leave()

    def last_words(self) -> str:
        """The end of what the host wrote."""
        return self._process.last_words()


async def _ended(process: HostProcess) -> None:
    """Waits for the end of the process."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        while not process.has_ended():  # noqa: ASYNC110
            await anyio.sleep(_LOOK_EVERY)
        return
    try:
        while not process.has_ended():
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


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
            raise ConfigError("ws:// needs the package websockets: pip install 'oarlock[remote]'") from error
        from urllib.parse import urlsplit

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

    async def messages(self) -> AsyncIterator[list[Any]]:
        from websockets.frames import Opcode

        text = bytearray()
        while True:
            found: list[Any] = []
            for frame in self._protocol.events_received():
                if getattr(frame, "opcode", None) not in (Opcode.TEXT, Opcode.CONT):
                    continue
                text += frame.data
                if frame.fin:
                    found.append(json.loads(text))
                    text.clear()
            if found:
                yield found
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
