"""JSON-RPC over a transport: requests with typed params and answers, and whatever the host says by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import oarlock_protocol as protocol

from ._errors import ProtocolError, TransportClosed, refused
from ._events import DELTAS
from ._tracing import trace_context
from ._transports import Transport
from ._wire import encoded

log = logging.getLogger("oarlock.wire")

_Response = TypeVar("_Response")


def read_answer(method: protocol.RequestMethod[Any, _Response], result: Any) -> _Response:
    """The result of a request as its model."""
    try:
        return method.read_response(result)
    except ValueError as error:
        raise ProtocolError(f"the answer to {method.method} cannot be read: {error}") from error


def _of_one_item(messages: Sequence[Any], at: int) -> list[Mapping[str, Any]]:
    """Params of the deltas from there on that belong to one item; none where they cannot be read."""
    method = messages[at]["method"]
    found: list[Mapping[str, Any]] = []
    try:
        params = messages[at]["params"]
        thread, item = params["threadId"], params["itemId"]
        if not isinstance(thread, str):
            return []
        for index in range(at, len(messages)):
            message = messages[index]
            params = message["params"]
            if message["method"] != method or params["itemId"] != item or params["threadId"] != thread:
                break
            found.append(params)
    except (KeyError, TypeError):
        # The first that is something else, or is not as it should be: it is taken alone.
        return found
    return found


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
        on_deltas: Callable[[str, Sequence[Mapping[str, Any]]], None],
        on_request: Callable[[Any, str, Any], None],
    ) -> None:
        self._transport = transport
        self._on_notification = on_notification
        self._on_deltas = on_deltas
        self._on_request = on_request
        self._numbers = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._sending = anyio.Lock()
        self.closed = anyio.Event()

    async def run(self) -> None:
        """Reads until the other end is gone. What is heard is passed on in order, before anything that comes later."""
        try:
            async for messages in self._transport.messages():
                if log.isEnabledFor(logging.DEBUG):
                    for message in messages:
                        log.debug("<- %s", message)
                self._take_all(messages)
        except ValueError as error:
            log.error("the host sent something that is no message: %s", error)
        finally:
            self.closed.set()
            for waiting in self._waiting.values():
                waiting.done.set()
            self._waiting.clear()

    def _take_all(self, messages: Sequence[Any]) -> None:
        at = 0
        while at < len(messages):
            message = messages[at]
            if not isinstance(message, dict):
                raise ValueError(f"expected an object, not {message!r:.80}")
            if message.get("method") in DELTAS and (together := _of_one_item(messages, at)):
                self._on_deltas(message["method"], together)
                at += len(together)
            else:
                self._take(message)
                at += 1

    def _take(self, message: Any) -> None:
        method = message.get("method")
        if method is None:
            waiting = self._waiting.pop(message.get("id"), None)
            if waiting is not None:
                waiting.answer = message
                waiting.done.set()
        elif "id" not in message:
            self._on_notification(method, message.get("params"))
        else:
            self._on_request(message["id"], method, message.get("params"))

    async def _send(self, message: Mapping[str, Any]) -> None:
        if self.closed.is_set():
            raise TransportClosed("the connection to the host has ended", stderr_tail=self._transport.last_words())
        log.debug("-> %s", message)
        data = encoded(message)
        # Half a message would break every later one.
        with anyio.CancelScope(shield=True):
            async with self._sending:
                await self._transport.send(data)

    async def ask(
        self, method: str, params: Mapping[str, Any], *, task_id: str | None = None, is_sent: bool = False
    ) -> Any:
        """The result as it came, or the host's refusal as an error.

        Args:
            method: of the request
            params: as the wire has them; models among them are written so
            task_id: for the error
            is_sent: the first request of a connection may have been written with the start of the host
        """
        number = next(self._numbers)
        waiting = self._waiting[number] = _Waiting()
        try:
            if not is_sent:
                trace = trace_context()
                await self._send(
                    {"id": number, "method": method, "params": params, **({"trace": trace} if trace else {})}
                )
            await waiting.done.wait()
        finally:
            self._waiting.pop(number, None)
        answer = waiting.answer
        if answer is None:
            # Where the caller is cancelled, and the reader with it, that is the reason and not the connection.
            await anyio.lowlevel.checkpoint_if_cancelled()
            raise TransportClosed("the host ended before it answered", stderr_tail=self._transport.last_words())
        if "error" in answer:
            raise refused(answer["error"], task_id, params.get("operationId"))
        return answer.get("result")

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def respond(self, request_id: Any, result: protocol.WireModel | Mapping[str, Any]) -> None:
        await self._send({"id": request_id, "result": result})

    async def refuse(self, request_id: Any, code: int, message: str) -> None:
        await self._send({"id": request_id, "error": {"code": code, "message": message}})

    async def aclose(self) -> None:
        await self._transport.aclose()
