"""An open host: its connection, found again when it is lost, and the tasks that are followed over it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.abc
import oarlock_protocol as protocol

from ._bridge import ModelBridge
from ._connection import Connection
from ._embedded import EmbeddedHost
from ._errors import ConfigError, OarlockError, RuntimeMismatch, TransportClosed
from ._providers import Anthropic, Chat, ModelProvider, Offline, OpenAI, Provider, host_arguments
from ._transports import SocketTransport, Transport, WebsocketTransport, find_runtime
from ._typing import JSON

log = logging.getLogger("oarlock")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")

# How often and how long a lost host is looked for.
_RECONNECT_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Choices of a `Host`: the address of one that runs, or how an embedded one is started."""

    url: str | None = None
    token: str | None = None
    store: str | Path | None = None
    provider: Provider | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    tool_concurrency: int = 40
    runtime: Path | None = None
    config: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Called with what the connection brings; none of them waits."""

    on_notification: Callable[[str, Any], None]
    on_request: Callable[[Connection, Any, str, Any], None]
    on_reconnected: Callable[[], None]
    on_gone: Callable[[OarlockError], None]


class Session:
    """From `async with host` to its end."""

    def __init__(self, options: SessionOptions, listeners: Listeners) -> None:
        self._options = options
        self._listeners = listeners
        self.embedded: EmbeddedHost | None = None
        self.features: frozenset[str] = frozenset()
        self.limiter = anyio.CapacityLimiter(options.tool_concurrency)
        self._bridge: ModelBridge | None = None
        self._ready = anyio.Event()
        self._group: anyio.abc.TaskGroup | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._is_closing = False
        self._gone: OarlockError | None = None

    async def open(self) -> None:
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        try:
            if self._options.url is None:
                self.embedded = EmbeddedHost(self._options.store)
            await self._open_connection()
        except BaseException:
            self._is_closing = True
            group.cancel_scope.cancel()
            try:
                await group.__aexit__(None, None, None)
            finally:
                await self._clean_up()
            raise

    async def aclose(self) -> None:
        assert self._group is not None
        self._is_closing = True
        with anyio.CancelScope(shield=True):
            if self._transport is not None:
                await self._transport.aclose()
        self._group.cancel_scope.cancel()
        group, self._group = self._group, None
        try:
            await group.__aexit__(None, None, None)
        finally:
            await self._clean_up()

    async def _clean_up(self) -> None:
        self._group = None
        with anyio.CancelScope(shield=True):
            if self._bridge is not None:
                await self._bridge.aclose()
        if self.embedded is not None:
            self.embedded.remove()

    def spawn(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Runs beside everything else until the host is closed."""
        if self._group is None:
            raise ConfigError("the host is closed; use its tasks within `async with Host(…) as host`")
        self._group.start_soon(work, *arguments)

    async def request(
        self, method: protocol.RequestMethod[_Params, _Response], params: _Params, *, task_id: str | None = None
    ) -> _Response:
        """Asks the host. A host that dies meanwhile is asked again when it is back; every request may be repeated."""
        while True:
            if self._group is None:
                raise ConfigError("the host is closed; use its tasks within `async with Host(…) as host`")
            await self._ready.wait()
            if self._gone is not None:
                raise self._gone
            connection = self._connection
            assert connection is not None
            try:
                return await connection.request(method, params, task_id=task_id)
            except TransportClosed:
                if self._is_closing:
                    raise
                # The supervisor finds the host again, or gives up and says so.
                if self._connection is connection and self._ready.is_set():
                    self._ready = anyio.Event()

    # ---- the connection ----

    async def _argv(self) -> list[str]:
        provider = self._options.provider
        argv = [find_runtime(self._options.runtime), "host"]
        match provider:
            case None | str() | OpenAI() | Anthropic() | Chat() | Offline():
                argv += host_arguments(provider)
            case ModelProvider():
                if self._bridge is None:
                    self._bridge = ModelBridge(provider)
                    await self._bridge.open(self.spawn)
                argv += self._bridge.host_arguments()
        for key, value in self._options.config.items():
            argv += ["-c", f"{key}={_toml(value)}"]
        return argv

    async def _open_transport(self) -> Transport:
        if self.embedded is not None:
            argv = await self._argv()
            environment = {**self._options.secrets, **(self._bridge.environment() if self._bridge is not None else {})}

            async def given() -> Sequence[str]:
                return argv

            return await self.embedded.connect(given, environment)
        url = self._options.url
        assert url is not None
        try:
            if url.startswith("unix://"):
                return await SocketTransport.connect(url.removeprefix("unix://"))
            return await WebsocketTransport.connect(url, self._options.token)
        except OSError as error:
            raise TransportClosed(f"no host answers at {url}: {error}") from error

    async def _open_connection(self) -> None:
        async with AsyncExitStack() as stack:
            transport = await self._open_transport()
            # Also when this is cancelled: a child that nobody knows would go on for ever.
            stack.push_async_callback(transport.aclose)
            try:
                connection = await self._greet(transport)
            except TransportClosed:
                await transport.aclose()
                if self.embedded is None or not self.embedded.was_slower(transport.last_words()):
                    raise
                # Another process was faster: its host has the store.
                transport = await self.embedded.after_refusal()
                stack.push_async_callback(transport.aclose)
                connection = await self._greet(transport)
            stack.pop_all()
        self._transport, self._connection = transport, connection
        self._ready.set()
        self.spawn(self._supervise, connection)

    async def _greet(self, transport: Transport) -> Connection:
        def on_request(request_id: Any, method: str, params: Any) -> None:
            self._listeners.on_request(connection, request_id, method, params)

        connection = Connection(transport, on_notification=self._listeners.on_notification, on_request=on_request)
        self.spawn(connection.run)
        info = protocol.ClientInfo(name="oarlock_python", title=None, version=_VERSION)
        offer = protocol.HostOffer(versions=[1], all_tasks=True)
        params = protocol.InitializeParams(
            client_info=info, capabilities=protocol.InitializeCapabilities(experimental_api=True, host=offer)
        )
        answer = await connection.request(protocol.CLIENT_REQUESTS["initialize"], params)
        if answer.capabilities is None or answer.capabilities.host is None:
            raise RuntimeMismatch("the program at the other end is not a host; start `oarlock host`")
        self.features = frozenset(answer.capabilities.host.features)
        await connection.notify("initialized")
        return connection

    async def _supervise(self, connection: Connection) -> None:
        """Reconnects when the connection ends; then the followed tasks are subscribed to again."""
        await connection.closed.wait()
        if self._is_closing:
            return
        if self._ready.is_set():
            self._ready = anyio.Event()
        old, self._transport = self._transport, None
        if old is not None:
            await old.aclose()
        words = old.last_words() if old is not None else ""
        log.warning("the connection to the host ended; looking for it again")
        last: OarlockError = TransportClosed("the connection to the host ended", stderr_tail=words)
        for pause in _RECONNECT_PAUSES:
            await anyio.sleep(pause)
            try:
                await self._open_connection()
            except (OarlockError, OSError) as error:
                last = error if isinstance(error, OarlockError) else TransportClosed(str(error))
                continue
            self._listeners.on_reconnected()
            return
        self._gone = last
        self._ready.set()
        self._listeners.on_gone(last)


def _toml(value: JSON) -> str:
    """A value for `-c`: JSON is TOML for all that a setting is made of, but for tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value)
