"""An open host: its connection, found again when it is lost, and the tasks that are followed over it."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.abc
import oarlock_protocol as protocol

from ._capabilities import RuntimeInfo
from ._connection import Connection, read_answer
from ._embedded import EmbeddedHost
from ._errors import ConfigError, OarlockError, RuntimeMismatch, TransportClosed, store_error
from ._launch import LaunchedHost
from ._options import SessionOptions
from ._process import HostProcess
from ._records import record
from ._tracing import log_if_wanted
from ._transports import ProcessTransport, SocketTransport, Transport, WebsocketTransport
from ._wire import INITIALIZE

if TYPE_CHECKING:
    from ._bridge import ModelBridge
    from ._carrier import RequestCarrier

log = logging.getLogger("oarlock")
# Lines that an embedded host wrote to its standard error.
host_log = logging.getLogger("oarlock.host")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")

# How often and how long a lost host is looked for.
_RECONNECT_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
# How long a host that is left is asked who else is there.
_STATUS_WITHIN = 2.0


@record(kw_only=True)
class Listeners:
    """Called with what the connection brings; none of them waits."""

    on_notification: Callable[[str, Any], None]
    on_deltas: Callable[[str, Sequence[Mapping[str, Any]]], None]
    on_request: Callable[[Connection, Any, str, Any], None]
    on_reconnected: Callable[[], None]
    on_gone: Callable[[OarlockError], None]


def _runtime_info(greeting: Mapping[str, Any]) -> RuntimeInfo:
    """The host's machine and release, by its answer to `initialize`."""
    agent = str(greeting.get("userAgent", ""))
    machine = re.search(r"; ([^;)]+)\)", agent)
    version = re.search(r"\boarlock/(\S+) \(", agent)
    system = str(greeting.get("platformOs", ""))
    return RuntimeInfo(
        target=f"{machine[1]}-unknown-{system}" if machine else "",
        os=system,
        shell=None,
        version=version[1] if version else "",
    )


class Session:
    """From `async with host` to its end."""

    def __init__(self, options: SessionOptions, listeners: Listeners, launched: LaunchedHost | None) -> None:
        self._options = options
        self._listeners = listeners
        self.embedded: EmbeddedHost | None = launched.embedded if launched is not None else None
        self._process = launched.process if launched is not None else None
        self.features: frozenset[str] = frozenset()
        self.runtime_info = RuntimeInfo(target="", os="", shell=None, version="")
        self.limiter = anyio.CapacityLimiter(options.tool_concurrency)
        self._bridge: ModelBridge | None = None
        self.carrier: RequestCarrier | None = None
        """For a host that this program did not start: an embedded one reaches the provider by the bridge."""
        self._ready = anyio.Event()
        self._group: anyio.abc.TaskGroup | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._is_closing = False
        self._gone: OarlockError | None = None

    @property
    def transport(self) -> Transport | None:
        return self._transport

    def own_provider_refused(self, thread_id: str) -> bool:
        """Whether a provider of this program failed with the last request of this thread."""
        carrier = self._bridge or self.carrier
        return carrier is not None and carrier.has_refused(thread_id)

    @property
    def is_here(self) -> bool:
        """Whether the host is on this machine and reads its files."""
        return self._options.url is None or self._options.url.startswith("unix://")

    async def open(self) -> None:
        log_if_wanted()
        if self._options.url is not None and (provider := self._options.own_provider) is not None:
            from ._carrier import RequestCarrier

            self.carrier = RequestCarrier(provider)
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        try:
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
                if isinstance(self._transport, ProcessTransport) and await self._has_others():
                    self._transport.leave()
                else:
                    await self._transport.aclose()
                host_log.debug("%s", self._transport.last_words() or "the host wrote nothing")
        self._group.cancel_scope.cancel()
        group, self._group = self._group, None
        try:
            await group.__aexit__(None, None, None)
        finally:
            await self._clean_up()

    async def _has_others(self) -> bool:
        """Whether other processes use the host that this one started. The last to leave ends it."""
        if not self._options.may_outlive or self._connection is None:
            return False
        with anyio.move_on_after(_STATUS_WITHIN):
            try:
                status = await self._connection.ask("server/status", {})
                return bool(status["connections"] > 1)
            except (OarlockError, KeyError):
                # It ends already, or is too old to say.
                return False
        return False

    async def _clean_up(self) -> None:
        self._group = None
        if self._process is not None:
            self._process.abandon()
        with anyio.CancelScope(shield=True):
            if (carrier := self._bridge or self.carrier) is not None:
                await carrier.aclose()
        if self.embedded is not None:
            self.embedded.remove()

    def spawn(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Runs beside everything else until the host is closed."""
        if self._group is None:
            raise ConfigError("the host is closed; use its tasks within `async with Host(…) as host`")
        self._group.start_soon(work, *arguments)

    async def request(
        self,
        method: protocol.RequestMethod[_Params, _Response],
        params: _Params,
        *,
        task_id: str | None = None,
        again: bool = True,
    ) -> _Response:
        """Asks the host, with typed params and answer."""
        answer = await self.ask(method.method, protocol.write(params), task_id=task_id, again=again)
        return read_answer(method, answer)

    async def ask(
        self, method: str, params: Mapping[str, Any], *, task_id: str | None = None, again: bool = True
    ) -> Any:
        """Asks the host, with params and answer as the wire has them: the models are not loaded for it.

        Args:
            method: of the request
            params: as the wire has them
            task_id: for the error
            again: a host that dies meanwhile is asked again when it is back; without it `TransportClosed` is raised,
                and the request may have been carried out
        """
        while True:
            if self._group is None:
                raise ConfigError("the host is closed; use its tasks within `async with Host(…) as host`")
            await self._ready.wait()
            if self._gone is not None:
                raise self._gone
            connection = self._connection
            assert connection is not None
            try:
                return await connection.ask(method, params, task_id=task_id)
            except TransportClosed:
                if self._is_closing:
                    raise
                # The supervisor finds the host again, or gives up and says so.
                if self._connection is connection and self._ready.is_set():
                    self._ready = anyio.Event()
                if not again:
                    raise

    # ---- the connection ----

    async def _open_transport(self) -> Transport:
        if self.embedded is not None:
            process, self._process = self._process, None
            if process is not None:
                return ProcessTransport(process)
            return await self.embedded.running() or ProcessTransport(await self._spawn_host(self.embedded))
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
                words = transport.last_words()
                if (error := store_error(words)) is not None:
                    raise error from None
                if self.embedded is None or not self.embedded.was_slower(words):
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

        connection = Connection(
            transport,
            on_notification=self._listeners.on_notification,
            on_deltas=self._listeners.on_deltas,
            on_request=on_request,
        )
        self.spawn(connection.run)
        is_greeted = isinstance(transport, ProcessTransport) and transport.is_greeted
        answer = await connection.ask("initialize", INITIALIZE, is_sent=is_greeted)
        host = (answer.get("capabilities") or {}).get("host")
        if host is None:
            raise RuntimeMismatch("the program at the other end is not a host; start `oarlock host`")
        self.features = frozenset(host.get("features") or ())
        if self.carrier is not None and "carrier" not in self.features:
            raise RuntimeMismatch("this host lets no program carry model requests; update it, or leave `provider` out")
        self.runtime_info = _runtime_info(answer)
        if not is_greeted:
            await connection.notify("initialized")
        return connection

    async def _spawn_host(self, embedded: EmbeddedHost) -> HostProcess:
        argv, environment = self._options.argv(), self._options.environment()
        if (provider := self._options.own_provider) is not None:
            from ._bridge import ModelBridge

            if self._bridge is None:
                self._bridge = ModelBridge(provider)
                await self._bridge.open(self.spawn)
            # In front of settings that the program chose.
            argv[2:2] = self._bridge.host_arguments()
            environment |= self._bridge.environment()
        return embedded.spawn(argv, environment)

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
        if words:
            host_log.warning("%s", words)
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
