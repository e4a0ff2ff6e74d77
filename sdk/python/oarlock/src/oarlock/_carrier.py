"""Carries model requests of a host that runs elsewhere, with a provider of this program."""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio

from ._connection import Connection
from ._errors import OarlockError, ProviderError, RpcError
from ._providers import ModelProvider, ModelRequest
from ._typing import JSON

log = logging.getLogger("oarlock")

_VERSION = 1
_CLOSE_WITHIN = 1.0
# What goes into one message. A larger event goes alone.
_BATCH_BYTES = 32_768
_BATCH_EVENTS = 256
# A provider that yields more than the host takes waits.
_MOST_WAITING = 2 * _BATCH_BYTES
_OVERLOADED = -32001
_OVERLOAD_PAUSE = 0.05
# After one of these the answer is over.
_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})
# How statuses of HTTP are called on the wire.
_CLASSES = {401: "unauthorized", 403: "unauthorized", 404: "modelNotFound", 429: "rateLimitExceeded"}


class RequestCarrier:
    """The provider of this program, for one host."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self._running: dict[tuple[Connection, str, str], anyio.CancelScope] = {}
        self._refusing: set[str] = set()

    @property
    def default_model(self) -> str:
        """Of agents that choose none: the host's own default is no model of this provider."""
        return self._provider.id

    def delegation(self, model: str | None) -> Mapping[str, JSON]:
        """As `thread/start` and `thread/resume` take it."""
        can = self._provider.capabilities(model or self._provider.id)
        capabilities: dict[str, JSON] = {
            "wire": can.wire,
            "parallelToolCalls": can.parallel_tool_calls,
            "freeformTools": can.freeform_tools,
            "hostedTools": sorted(can.hosted_tools),
            "imagesIn": can.images_in,
            "jsonSchemaOutput": can.json_schema_output,
        }
        if can.context_window is not None:
            capabilities["contextWindow"] = can.context_window
        provider = {"id": self._provider.id, "capabilities": capabilities}
        return {"mode": "full", "version": _VERSION, "provider": provider}

    def has_refused(self, thread_id: str) -> bool:
        """Whether the provider failed with the last request of this thread."""
        return thread_id in self._refusing

    async def aclose(self) -> None:
        await self._provider.aclose()

    def take(
        self,
        spawn: Callable[..., None],
        connection: Connection,
        request_id: Any,
        method: str,
        params: Mapping[str, Any],
    ) -> None:
        """A request of the host about the model."""
        key = (connection, str(params.get("threadId")), str(params.get("modelRequestId")))
        if method == "model/request":
            # Known from here on: its cancellation may be the next message.
            scope = self._running[key] = anyio.CancelScope()
            spawn(self._carry, key, scope, request_id, params)
            return
        running = self._running.get(key)
        if running is not None:
            running.cancel()
        disposition = "canceled" if running is not None else "alreadyTerminal"
        spawn(_respond, connection, request_id, {"disposition": disposition})

    async def _carry(
        self,
        key: tuple[Connection, str, str],
        scope: anyio.CancelScope,
        request_id: Any,
        params: Mapping[str, Any],
    ) -> None:
        connection, thread_id, model_request_id = key
        request = _read(params)
        if request.purpose != "memory":
            # Memories are made beside the turns, which do not fail with them.
            self._refusing.discard(thread_id)
        accepted = {"disposition": "accepted", "provider": self._provider.id, "model": request.body.get("model", "")}
        ids = {"threadId": thread_id, "modelRequestId": model_request_id}
        batches = _Batches(connection, ids)
        try:
            with scope:
                await _respond(connection, request_id, accepted)
                await self._stream(request, batches)
        except OarlockError as error:
            # The host is gone, or wants no more of it.
            log.debug("%s of thread %s is not carried to its end: %s", model_request_id, thread_id, error)
        finally:
            self._running.pop(key, None)
        if scope.cancelled_caught and not connection.closed.is_set():
            with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_WITHIN):
                await batches.abort("canceled", replay_safe=False)

    async def _stream(self, request: ModelRequest, batches: _Batches) -> None:
        failure: Exception | None = None
        events: AsyncIterator[Mapping[str, Any]] | None = None
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(batches.run, group.cancel_scope)
                try:
                    events = self._provider.stream(request).__aiter__()
                    async for event in events:
                        batches.put(event)
                        await batches.has_room()
                except ProviderError as error:
                    log.info("the provider %s failed: %s", self._provider.id, error)
                    failure = error
                except Exception as error:
                    log.exception("the provider %s raised", self._provider.id)
                    failure = error
                await batches.finish()
                group.cancel_scope.cancel()
        finally:
            # The host may leave before the last event. The garbage collector could not await it.
            if (close := getattr(events, "aclose", None)) is not None:
                with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_WITHIN):
                    await close()
        if batches.is_refused:
            return
        if failure is not None and not batches.count:
            if request.purpose != "memory":
                self._refusing.add(request.thread_id)
            await batches.reject(_model_error(self._provider.id, failure))
        elif not batches.has_terminal:
            # The answer broke off. The reason is for this program's log.
            await batches.abort("disconnected", replay_safe=True)


class _Batches:
    """Sends beside the provider: what it yields without waiting goes together, within the credit of the host."""

    def __init__(self, connection: Connection, ids: Mapping[str, str]) -> None:
        self._connection = connection
        self._ids = ids
        self._waiting: deque[tuple[Mapping[str, Any], int]] = deque()
        self._bytes = 0
        self._news = anyio.Event()
        self._sent = anyio.Event()
        self._seq = 0
        self._credit: Mapping[str, int] = {}
        self.count = 0
        """Events that were yielded."""
        self.has_terminal = False
        self.is_refused = False
        """The host wants no more of it."""

    def put(self, event: Mapping[str, Any]) -> None:
        if self.has_terminal:
            log.debug("an event after the end of the answer is left out: %s", event.get("type"))
            return
        size = len(json.dumps(event, separators=(",", ":")))
        self.count += 1
        self.has_terminal = event.get("type") in _TERMINAL
        self._waiting.append((event, size))
        self._bytes += size
        self._news.set()

    async def has_room(self) -> None:
        while self._bytes > _MOST_WAITING:
            await self._taken()

    async def finish(self) -> None:
        """Until all is sent."""
        while self._waiting:
            await self._taken()

    async def _taken(self) -> None:
        self._sent = anyio.Event()
        await self._sent.wait()

    async def run(self, scope: anyio.CancelScope) -> None:
        """Until it is cancelled, or the host is gone or refuses; then the provider is stopped."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, scope)
            try:
                while True:
                    if not self._waiting:
                        self._news = anyio.Event()
                        await self._news.wait()
                    await self._send(self._batch())
            except OarlockError as error:
                log.debug("the host takes no more of %s: %s", self._ids["modelRequestId"], error)
                self.is_refused = True
                scope.cancel()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        await self._connection.closed.wait()
        self.is_refused = True
        scope.cancel()

    def _batch(self) -> list[tuple[Mapping[str, Any], int]]:
        """As much as the credit allows, and at least one event: a host always takes the next."""
        most_events = max(1, min(_BATCH_EVENTS, self._credit.get("events", _BATCH_EVENTS)))
        most_bytes = min(_BATCH_BYTES, self._credit.get("bytes", _BATCH_BYTES))
        batch: list[tuple[Mapping[str, Any], int]] = []
        total = 0
        for event, size in self._waiting:
            if batch and (len(batch) >= most_events or total + size > most_bytes):
                break
            batch.append((event, size))
            total += size
        return batch

    async def _send(self, batch: list[tuple[Mapping[str, Any], int]]) -> None:
        params = {**self._ids, "seq": self._seq, "events": [event for event, _ in batch]}
        while True:
            try:
                answer = await self._connection.ask("model/streamEvent", params)
                break
            except RpcError as error:
                if error.code != _OVERLOADED:
                    raise
                await anyio.sleep(_OVERLOAD_PAUSE)
        self._seq += len(batch)
        self._credit = answer.get("credit") or {}
        for _ in batch:
            self._bytes -= self._waiting.popleft()[1]
        self._sent.set()

    async def abort(self, reason: str, *, replay_safe: bool) -> None:
        params = {**self._ids, "seq": self._seq, "reason": reason, "replaySafe": replay_safe}
        await self._ask("model/streamAborted", params)

    async def reject(self, error: Mapping[str, JSON]) -> None:
        await self._ask("model/requestRejected", {**self._ids, "error": error})

    async def _ask(self, method: str, params: Mapping[str, Any]) -> None:
        try:
            await self._connection.ask(method, params)
        except OarlockError as error:
            log.debug("%s is not heard: %s", method, error)


def _read(params: Mapping[str, Any]) -> ModelRequest:
    return ModelRequest(
        id=str(params.get("modelRequestId")),
        thread_id=str(params.get("threadId")),
        turn_id=str(params.get("turnId", "")),
        segment_id=str(params.get("segmentId", "")),
        attempt=int(params.get("attempt", 1)),
        purpose=str(params.get("purpose", "turn")),
        body=params.get("body") or {},
        digest=str(params.get("requestDigest", "")),
    )


def _model_error(provider: str, failure: Exception) -> Mapping[str, JSON]:
    """Why there is no answer, as the host passes it on."""
    if not isinstance(failure, ProviderError):
        message = f"the provider {provider} raised {type(failure).__name__}"
        return {"code": "badRequest", "message": message, "codexErrorInfo": "badRequest"}
    status = getattr(failure, "status", 503 if failure.retryable else 400)
    info = _CLASSES.get(status, "internalServerError" if status >= 500 else "badRequest")
    is_passing = failure.retryable or status == 429 or status >= 500
    return {
        "code": "providerError",
        "message": str(failure),
        "codexErrorInfo": info,
        "httpStatus": status,
        "replaySafe": is_passing,
    }


async def _respond(connection: Connection, request_id: Any, result: Mapping[str, Any]) -> None:
    try:
        await connection.respond(request_id, result)
    except OarlockError:
        log.debug("the host was gone before it had its answer")
