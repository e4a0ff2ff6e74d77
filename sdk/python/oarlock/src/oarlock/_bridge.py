"""A provider written in Python, as an endpoint that an embedded host can reach: the Responses API on the loopback."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any, Literal

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from ._errors import ProviderError
from ._providers import ABOUT_HEADER, ModelProvider, ModelRequest, bridge_arguments, model_settings

log = logging.getLogger("oarlock")

_TOKEN_VARIABLE = "OARLOCK_SDK_BRIDGE_TOKEN"
_MAX_HEAD = 65_536
_MAX_BODY = 256 * 1024 * 1024
_CLOSE_WITHIN = 1.0
# A provider that yields more than the host takes waits.
_MAX_WAITING = 32_768
# Turns whose requests are counted; the oldest are forgotten.
_MAX_TURNS = 4_096


class _Sender:
    """Sends beside the provider: what it yields without waiting goes together, and wakes the host once."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._waiting = bytearray()
        self._news = anyio.Event()
        self._sent = anyio.Event()
        self._is_over = False
        self.is_broken = False

    def put_head(self, data: bytes) -> None:
        self._waiting += data
        self._news.set()

    def put(self, data: bytes) -> None:
        self._waiting += b"%x\r\n%b\r\n" % (len(data), data)
        self._news.set()

    def end(self, *, is_whole: bool) -> None:
        """Of a part, the connection ends without the mark of its end."""
        if is_whole:
            self._waiting += b"0\r\n\r\n"
        self._is_over = True
        self._news.set()

    async def has_room(self) -> None:
        while len(self._waiting) > _MAX_WAITING:
            self._sent = anyio.Event()
            await self._sent.wait()

    async def run(self, scope: anyio.CancelScope) -> None:
        """Until all is sent, or the host has left; then the provider is stopped."""
        try:
            while self._waiting or not self._is_over:
                await self._news.wait()
                self._news = anyio.Event()
                data, self._waiting = bytes(self._waiting), bytearray()
                if data:
                    await self._stream.send(data)
                self._sent.set()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.is_broken = True
            scope.cancel()


class ModelBridge:
    """Listens on the loopback, for the host that this program starts and nobody else: it alone knows the token."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self._token = secrets.token_urlsafe(32)
        self._port = 0
        self._numbers = count(1)
        self._turns: dict[tuple[str, str], _TurnRequests] = {}
        self._refusing: set[str] = set()
        self._listener: anyio.abc.Listener[anyio.abc.SocketStream] | None = None

    async def open(self, spawn: Callable[..., None]) -> None:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self._listener = listener
        self._port = listener.extra(anyio.abc.SocketAttribute.local_port)
        spawn(self._serve)

    async def _serve(self) -> None:
        assert self._listener is not None
        try:
            await self._listener.serve(self._answer)
        except anyio.ClosedResourceError:
            return

    def host_arguments(self) -> list[str]:
        name = self._provider.id
        settings = model_settings(self._provider.capabilities(name))
        return bridge_arguments(name, f"http://127.0.0.1:{self._port}/v1", _TOKEN_VARIABLE, settings)

    def has_refused(self, thread_id: str) -> bool:
        """Whether the provider failed with the last request of this thread."""
        return thread_id in self._refusing

    def environment(self) -> Mapping[str, str]:
        return {_TOKEN_VARIABLE: self._token}

    async def aclose(self) -> None:
        if self._listener is not None:
            await self._listener.aclose()
        await self._provider.aclose()

    async def _answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            reader = BufferedByteReceiveStream(stream)
            try:
                # The host asks again by the same connection; making one takes as long as a short answer.
                while await self._request(stream, reader):
                    pass
            except (
                anyio.BrokenResourceError,
                anyio.ClosedResourceError,
                anyio.EndOfStream,
                anyio.IncompleteRead,
                anyio.DelimiterNotFound,
            ):
                log.debug("the host left")

    async def _request(self, stream: anyio.abc.SocketStream, reader: BufferedByteReceiveStream) -> bool:
        """Whether another one may follow."""
        head = (await reader.receive_until(b"\r\n\r\n", _MAX_HEAD)).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        said = headers.get("content-length", "0")
        # Any program of this machine may connect: nothing that it sends may end more than its connection.
        length = int(said) if said.isdecimal() and len(said) < 12 else _MAX_BODY + 1
        if not secrets.compare_digest(headers.get("authorization", ""), f"Bearer {self._token}"):
            return await _refuse(stream, 401, "this endpoint is for the host that this program started")
        if not head[0].startswith("POST ") or "/responses" not in head[0] or length > _MAX_BODY:
            return await _refuse(stream, 404, "only POST /v1/responses is answered")
        request = self._model_request(await reader.receive_exactly(length) if length else b"{}", headers)
        events = self._provider.stream(request).__aiter__()
        try:
            return await self._stream(stream, request, events)
        finally:
            # The host may leave before the last event. The garbage collector could not await it.
            if (close := getattr(events, "aclose", None)) is not None:
                with anyio.move_on_after(_CLOSE_WITHIN, shield=True):
                    await close()

    async def _stream(
        self, stream: anyio.abc.SocketStream, request: ModelRequest, events: AsyncIterator[Mapping[str, Any]]
    ) -> bool:
        try:
            first = await anext(events, None)
        except ProviderError as error:
            self._refused(request)
            return await _refuse(stream, getattr(error, "status", 503 if error.retryable else 400), str(error))
        except Exception as error:
            log.exception("the provider %s raised", self._provider.id)
            self._refused(request)
            return await _refuse(stream, 400, f"the provider {self._provider.id} raised {type(error).__name__}")
        sender = _Sender(stream)
        sender.put_head(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        is_whole = False
        async with anyio.create_task_group() as group:
            group.start_soon(sender.run, group.cancel_scope)
            is_whole = await self._pass_on(sender, first, events)
            sender.end(is_whole=is_whole)
        if sender.is_broken:
            raise anyio.BrokenResourceError
        return is_whole

    def _refused(self, request: ModelRequest) -> None:
        # Memories are made beside the turns, which do not fail with them.
        if request.purpose != "memory":
            self._refusing.add(request.thread_id)

    async def _pass_on(
        self, sender: _Sender, first: Mapping[str, Any] | None, events: AsyncIterator[Mapping[str, Any]]
    ) -> bool:
        """Whether the answer is whole."""
        event = first
        try:
            while event is not None:
                data = json.dumps(event, separators=(",", ":"))
                sender.put(f"event: {event.get('type', 'message')}\ndata: {data}\n\n".encode())
                await sender.has_room()
                event = await anext(events, None)
        except Exception:
            # The stream breaks off, which is what the host must see; the reason is for this program's log.
            log.exception("the provider %s raised in mid-stream", self._provider.id)
            return False
        return True

    def _model_request(self, raw: bytes, headers: Mapping[str, str]) -> ModelRequest:
        body = json.loads(raw)
        turn_of, about = _about(headers, "x-codex-turn-metadata"), _about(headers, ABOUT_HEADER)
        thread_id = str(about.get("threadId") or turn_of.get("session_id") or body.get("prompt_cache_key", ""))
        turn_id = str(turn_of.get("turn_id", ""))
        purpose = str(about.get("purpose", "turn"))
        # As it came: a host that asks again sends the same bytes.
        digest = hashlib.sha256(raw).hexdigest()
        if purpose != "memory":
            self._refusing.discard(thread_id)
        turn = self._turns.get((thread_id, purpose))
        if turn is None or turn.turn_id != turn_id:
            self._turns.pop((thread_id, purpose), None)
            turn = self._turns[thread_id, purpose] = _TurnRequests(turn_id)
            if len(self._turns) > _MAX_TURNS:
                self._turns.pop(next(iter(self._turns)))
        turn.next(digest)
        return ModelRequest(
            id=f"request-{next(self._numbers)}",
            thread_id=thread_id,
            turn_id=turn_id,
            segment_id=f"{turn_id}:{turn.segment}",
            attempt=turn.attempt,
            purpose=purpose,
            body=body,
            digest=f"sha256:{digest}",
        )


class _TurnRequests:
    """Requests of a turn: the same again is another attempt, anything else the next segment."""

    __slots__ = ("_digest", "attempt", "segment", "turn_id")

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.segment = -1
        self.attempt = 0
        self._digest = ""

    def next(self, digest: str) -> None:
        if digest == self._digest:
            self.attempt += 1
        else:
            self._digest, self.attempt, self.segment = digest, 1, self.segment + 1


def _about(headers: Mapping[str, str], name: str) -> Mapping[str, Any]:
    """What a header says in JSON."""
    try:
        about = json.loads(headers.get(name, "{}"))
    except ValueError:
        return {}
    return about if isinstance(about, Mapping) else {}


async def _refuse(stream: anyio.abc.SocketStream, status: int, message: str) -> Literal[False]:
    # Plain text: the host shows the body of a refusal to people as it is.
    body = message.encode()
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\n"
    await stream.send(f"{head}connection: close\r\n\r\n".encode() + body)
    return False
