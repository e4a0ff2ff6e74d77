"""JSON-RPC over a transport: requests with typed params and answers, and whatever the host says by itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import oarlock_protocol as protocol
from pydantic_core import ValidationError

from ._errors import ProtocolError, TransportClosed, refused
from ._transports import Transport

log = logging.getLogger("oarlock.wire")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")


class _Waiting:
    """A request without an answer yet."""

    __slots__ = ("answer", "done")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.answer: Mapping[str, Any] | None = None


class Connection:
    """One connection to a host. `run` reads until it ends; the rest may be called meanwhile."""

    def __init__(
        self,
        transport: Transport,
        *,
        on_notification: Callable[[str, Any], None],
        on_request: Callable[[Any, str, Any], None],
    ) -> None:
        self._transport = transport
        self._on_notification = on_notification
        self._on_request = on_request
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._sending = anyio.Lock()
        self.closed = anyio.Event()

    async def run(self) -> None:
        """Reads until the other end is gone. What is heard is passed on in order, before anything that comes later."""
        try:
            async for message in self._transport.messages():
                log.debug("<- %s", message)
                self._take(message)
        except ValueError as error:
            log.error("the host sent something that is not JSON: %s", error)
        finally:
            self.closed.set()
            for waiting in self._waiting.values():
                waiting.done.set()
            self._waiting.clear()

    def _take(self, message: Any) -> None:
        method = message.get("method")
        if method is None:
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is not None:
                waiting.answer = message
                waiting.done.set()
        elif "id" in message:
            self._on_request(message["id"], method, message.get("params"))
        else:
            self._on_notification(method, message.get("params"))

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self.closed.is_set():
            raise TransportClosed("the connection to the host has ended", stderr_tail=self._transport.last_words())
        log.debug("-> %s", message)
        data = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
        # Half a message would break every later one.
        with anyio.CancelScope(shield=True):
            async with self._sending:
                await self._transport.send(data)

    async def request(
        self, method: protocol.RequestMethod[_Params, _Response], params: _Params, *, task_id: str | None = None
    ) -> _Response:
        """The typed answer, or the host's refusal as an error."""
        number = next(self._numbers)
        waiting = self._waiting[number] = _Waiting()
        try:
            await self._send({"id": number, "method": method.method, "params": protocol.write(params)})
            await waiting.done.wait()
        finally:
            self._waiting.pop(number, None)
        answer = waiting.answer
        if answer is None:
            # Where the caller is cancelled, and the reader with it, that is the reason and not the connection.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise TransportClosed("the host ended before it answered", stderr_tail=self._transport.last_words())
        if "error" in answer:
            raise refused(answer["error"], task_id)
        try:
            return method.read_response(answer.get("result"))
        except ValidationError as error:
            raise ProtocolError(f"the answer to {method.method} cannot be read: {error}") from error

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def respond(self, request_id: Any, result: protocol.WireModel | Mapping[str, Any]) -> None:
        value = result.to_wire() if isinstance(result, protocol.WireModel) else dict(result)
        await self._send({"id": request_id, "result": value})

    async def refuse(self, request_id: Any, code: int, message: str) -> None:
        await self._send({"id": request_id, "error": {"code": code, "message": message}})

    async def aclose(self) -> None:
        await self._transport.aclose()
