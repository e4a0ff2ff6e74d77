"""A provider written in Python, as an endpoint that an embedded host can reach: the Responses API on the loopback."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from ._errors import ProviderError
from ._providers import ModelProvider, ModelRequest, bridge_arguments

log = logging.getLogger("oarlock")

_TOKEN_VARIABLE = "OARLOCK_SDK_BRIDGE_TOKEN"
_MAX_HEAD = 65_536
_MAX_BODY = 256 * 1024 * 1024


class ModelBridge:
    """Listens on the loopback, for the host that this program starts and nobody else: it alone knows the token."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self._token = secrets.token_urlsafe(32)
        self._port = 0
        self._numbers = count(1)
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
        return bridge_arguments(self._provider.id, f"http://127.0.0.1:{self._port}/v1", _TOKEN_VARIABLE)

    def environment(self) -> Mapping[str, str]:
        return {_TOKEN_VARIABLE: self._token}

    async def aclose(self) -> None:
        if self._listener is not None:
            await self._listener.aclose()
        await self._provider.aclose()

    async def _answer(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            try:
                await self._request(stream)
            except (anyio.BrokenResourceError, anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound):
                log.debug("the host left before it had its answer")

    async def _request(self, stream: anyio.abc.SocketStream) -> None:
        reader = BufferedByteReceiveStream(stream)
        head = (await reader.receive_until(b"\r\n\r\n", _MAX_HEAD)).decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        length = int(headers.get("content-length", "0"))
        if not secrets.compare_digest(headers.get("authorization", ""), f"Bearer {self._token}"):
            return await _refuse(stream, 401, "this endpoint is for the host that this program started")
        if not head[0].startswith("POST ") or "/responses" not in head[0] or length > _MAX_BODY:
            return await _refuse(stream, 404, "only POST /v1/responses is answered")
        body = json.loads(await reader.receive_exactly(length)) if length else {}
        events = self._provider.stream(self._model_request(body)).__aiter__()
        try:
            first = await anext(events, None)
        except ProviderError as error:
            return await _refuse(stream, getattr(error, "status", 400), str(error))
        except Exception as error:
            log.exception("the provider %s raised", self._provider.id)
            return await _refuse(stream, 400, f"the provider raised {type(error).__name__}")
        await stream.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )
        await self._pass_on(stream, first, events)

    async def _pass_on(
        self, stream: anyio.abc.SocketStream, first: Mapping[str, Any] | None, events: AsyncIterator[Mapping[str, Any]]
    ) -> None:
        event = first
        try:
            while event is not None:
                data = json.dumps(event, separators=(",", ":"))
                await stream.send(f"event: {event.get('type', 'message')}\ndata: {data}\n\n".encode())
                event = await anext(events, None)
        except (anyio.BrokenResourceError, anyio.EndOfStream):
            raise
        except Exception:
            # The stream breaks off, which is what the host must see; the reason is for this program's log.
            log.exception("the provider %s raised in mid-stream", self._provider.id)

    def _model_request(self, body: Mapping[str, Any]) -> ModelRequest:
        number = next(self._numbers)
        digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
        return ModelRequest(
            id=f"request-{number}",
            thread_id=str(body.get("prompt_cache_key", "")),
            turn_id="",
            segment_id="",
            attempt=1,
            purpose="turn",
            body=body,
            digest=f"sha256:{digest}",
        )


async def _refuse(stream: anyio.abc.SocketStream, status: int, message: str) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    head = f"HTTP/1.1 {status} Refused\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    await stream.send(f"{head}connection: close\r\n\r\n".encode() + body)
