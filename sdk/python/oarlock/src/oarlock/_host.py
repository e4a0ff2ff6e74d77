"""A connection to a host: tasks are started, opened, listed and decided here."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import anyio
import anyio.abc
from oarlock_protocol import (
    CLIENT_REQUESTS,
    ClientInfo,
    DynamicToolCallParams,
    HostOffer,
    InitializeCapabilities,
    InitializeParams,
    Operation,
    OperationDecideParams,
    OperationListParams,
    OperationUpdatedNotification,
    RequestMethod,
    TaskListParams,
    TaskReadParams,
    ThreadResumeParams,
    ThreadSetNameParams,
    ThreadStartParams,
)
from oarlock_protocol import Task as TaskRow
from pydantic import ValidationError

from . import _decisions
from ._agent import Agent, Limits
from ._backends import Backend, Local
from ._bridge import ModelBridge
from ._connection import Connection
from ._decisions import Decision, Defer
from ._embedded import EmbeddedHost
from ._errors import (
    ConfigError,
    DecisionConflict,
    OarlockError,
    RpcError,
    RuntimeMismatch,
    TaskExists,
    TransportClosed,
)
from ._follow import TaskFollower
from ._manifest import Manifest, PlannedFile, planned_files
from ._output import OutputForm
from ._pending import Pending, pending_of
from ._plan import AgentPlan, plan_agent
from ._providers import Anthropic, Chat, ModelProvider, Offline, OpenAI, Provider, host_arguments
from ._results import Input, Usage
from ._run import Run
from ._task import Task
from ._transports import SocketTransport, Transport, WebsocketTransport, find_runtime
from ._typing import JSON, D, T

log = logging.getLogger("oarlock")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")

# Ids that callers choose become threads by this namespace.
_NAMESPACE = uuid.UUID("6f61726c-6f63-4b20-8e1d-7461736b2069")
_VERSION = "0.1.0"
# How often and how long a lost host is looked for.
_RECONNECT_PAUSES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
_APPROVALS = {
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/tool/requestApproval",
}
_UNSET: Any = ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task as a list shows it."""

    id: str
    name: str | None
    agent: str
    status: Literal["creating", "idle", "running", "waiting", "suspended", "queued", "failed"]
    pending: int
    """Calls that wait for a decision."""
    labels: Mapping[str, str]
    updated_at: datetime


def thread_of(task_id: str) -> str:
    """The thread of a task. A UUID is itself; any other id always becomes the same one."""
    try:
        return str(uuid.UUID(task_id))
    except ValueError:
        return str(uuid.uuid5(_NAMESPACE, task_id))


def task_id_of(thread_id: str, name: str | None) -> str:
    """The id that the caller chose, where the task carries it as its name."""
    return name if name is not None and thread_of(name) == thread_id else thread_id


class Host:
    """A connection to `oarlock host`: embedded in this process, or one that runs (`Host.connect`).

    One host per store: the first process that opens a store runs its host, later ones connect to that.

    Args:
        store: the file that keeps tasks; unset, they are gone when the host is closed
        provider: what carries model requests: `OpenAI()`, `Anthropic()`, `Chat(…)`, `Offline()`, the name of a
            configured one, or a `ModelProvider` of your own
        backend: where tasks run unless they say otherwise
        secrets: values for the host's environment, in no file and no record
        adopt: also bring back what ran when the last host of this store ended, at once
        tool_concurrency: how many function tools run at a time
        runtime: the `oarlock` program
        config: configuration by dotted key, over the files
    """

    def __init__(
        self,
        *,
        store: str | Path | None = None,
        provider: Provider | None = None,
        backend: Backend | None = None,
        secrets: Mapping[str, str] | None = None,
        adopt: bool = False,
        tool_concurrency: int = 40,
        runtime: Path | None = None,
        config: Mapping[str, JSON] | None = None,
    ) -> None:
        self._url: str | None = None
        self._token: str | None = None
        self._store = store
        self._provider = provider
        self._backend = backend
        self._secrets = dict(secrets or {})
        self._adopt = adopt
        self._tool_concurrency = tool_concurrency
        self._runtime = runtime
        self._config = dict(config or {})
        self._embedded: EmbeddedHost | None = None
        self._bridge: ModelBridge | None = None
        self._group: anyio.abc.TaskGroup | None = None
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._followers: dict[str, TaskFollower] = {}
        self._children: dict[str, str] = {}
        self._operation_listeners: list[Callable[[Operation], None]] = []
        self._features: frozenset[str] = frozenset()
        self._is_closing = False
        self._gone: OarlockError | None = None

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, provider: ModelProvider | None = None) -> Host:
        """A host that runs: `unix://PATH`, `ws://HOST:PORT` or `wss://HOST:PORT`."""
        if not url.startswith(("unix://", "ws://", "wss://")):
            raise ConfigError(f"{url}: expected unix://PATH, ws://HOST:PORT or wss://HOST:PORT")
        if provider is not None:
            raise ConfigError("provider: a host that runs has its own; only an embedded one takes a provider of yours")
        host = cls()
        host._url, host._token = url, token
        return host

    async def __aenter__(self) -> Host:
        if self._group is not None:
            raise ConfigError("this host is open already")
        self._limiter = anyio.CapacityLimiter(self._tool_concurrency)
        self._ready = anyio.Event()
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group
        try:
            if self._url is None:
                self._embedded = EmbeddedHost(self._store)
            await self._open_connection()
        except BaseException:
            self._is_closing = True
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
            await self._clean_up()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._group is not None
        self._is_closing = True
        self._close_followers(TransportClosed("the host was closed"))
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
        if self._embedded is not None:
            self._embedded.remove()

    # ---- tasks ----

    @overload
    def run(self, agent: Agent[D], input: Input, *, deps: D = ..., timeout: float | None = None) -> Run[str]: ...
    @overload
    def run(
        self, agent: Agent[D], input: Input, *, output: type[T], deps: D = ..., timeout: float | None = None
    ) -> Run[T]: ...
    def run(
        self,
        agent: Agent[Any],
        input: Input,
        *,
        output: type[Any] | None = None,
        deps: Any = _UNSET,
        timeout: float | None = None,
    ) -> Run[Any]:
        """A new task and its first turn. It starts when the run is first awaited, iterated or entered."""
        self._need_open()
        form = OutputForm(output) if output is not None else None

        async def begin(run: Run[Any]) -> None:
            task = await self.start(agent, deps=deps)
            await task._start_turn(run, input, form, {})

        return Run(begin, spawn=self._spawn, output=form, timeout=timeout, label=f"of {agent.name}")

    async def start(
        self,
        agent: Agent[D],
        *,
        deps: D = _UNSET,
        task_id: str | None = None,
        if_exists: Literal["error", "open"] = "error",
        backend: Backend | None = None,
        labels: Mapping[str, str] = {},
    ) -> Task[D]:
        """A new task.

        Args:
            agent: what works on it
            deps: given to its tools as `ctx.deps`
            task_id: an id of your own; with `if_exists="open"`, a request that is repeated finds its task
            if_exists: what to do where there is a task with this id
            backend: where it runs
            labels: to find it by
        """
        if labels:
            raise ConfigError("labels: this host keeps none yet; leave them out, or put them into `task_id`")
        plan = self._planned(agent, deps)
        thread_id = thread_of(task_id) if task_id is not None else str(uuid.uuid4())
        if task_id is not None and await self._exists(thread_id):
            if if_exists == "open":
                return await self.open(task_id, agent, deps=deps)
            raise TaskExists(f'there is a task {task_id}; if_exists="open" opens it', task_id=task_id)
        where = await self._workspace(thread_id, backend or self._backend, plan.manifest)
        given: dict[str, Any] = {**_agent_params(plan), **({"cwd": where} if where else {})}
        params = ThreadStartParams(thread_id=thread_id, thread_source=agent.name, **given)
        follower = self._follow(task_id or thread_id, thread_id, plan, deps)
        try:
            answer = await self._request(CLIENT_REQUESTS["thread/start"], params, task_id=task_id)
        except BaseException:
            self._forget(follower)
            raise
        if task_id is not None and task_id != thread_id:
            name = ThreadSetNameParams(thread_id=thread_id, name=task_id)
            await self._request(CLIENT_REQUESTS["thread/name/set"], name, task_id=task_id)
        task: Task[D] = Task(self, follower, workspace=answer.cwd, is_open=True)
        for notice in plan.notices:
            follower.notice(notice)
        for capability in plan.capabilities:
            await capability.on_start(task)
        return task

    @overload
    async def open(self, task_id: str) -> Task[None]: ...
    @overload
    async def open(self, task_id: str, agent: Agent[D], *, deps: D = ...) -> Task[D]: ...
    async def open(self, task_id: str, agent: Agent[Any] | None = None, *, deps: Any = _UNSET) -> Task[Any]:
        """A task that is there. Without its agent, to read and decide only: nothing is started for that."""
        thread_id = thread_of(task_id)
        if agent is not None:
            return await self._open_thread(thread_id, self._planned(agent, deps), deps, task_id=task_id)
        params = TaskReadParams(thread_id=thread_id)
        answer = await self._request(CLIENT_REQUESTS["task/read"], params, task_id=task_id)
        follower = TaskFollower(self, task_id=task_id, thread_id=thread_id, plan=None, deps=None)
        return Task(self, follower, workspace=answer.task.cwd or "", is_open=False)

    async def tasks(
        self, *, status: str | None = None, labels: Mapping[str, str] | None = None, limit: int = 50
    ) -> Sequence[TaskInfo]:
        """Tasks, the last changed first."""
        found: list[TaskInfo] = []
        cursor: str | None = None
        while len(found) < limit:
            params = TaskListParams(state=status, cursor=cursor, limit=min(limit, 100))
            page = await self._request(CLIENT_REQUESTS["task/list"], params)
            rows = (_info(row) for row in page.data)
            found += (info for info in rows if (labels or {}).items() <= info.labels.items())
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[:limit]

    async def pending(self, *, task_id: str | None = None) -> Sequence[Pending]:
        """Calls that wait for a decision, of one task or of all, the oldest first. Needs no runtime."""
        return [
            pending_of(operation, task_id=self._task_id(operation.task_id, task_id))
            for operation in await self._waiting(task_id)
        ]

    async def _waiting(self, task_id: str | None) -> list[Operation]:
        thread_id = thread_of(task_id) if task_id is not None else None
        found: list[Operation] = []
        cursor: str | None = None
        while True:
            params = OperationListParams(thread_id=thread_id, cursor=cursor, limit=200)
            page = await self._request(CLIENT_REQUESTS["operation/list"], params)
            found += page.data
            cursor = page.next_cursor
            if cursor is None:
                return found

    def _task_id(self, thread_id: str, asked: str | None) -> str:
        if asked is not None:
            return asked
        follower = self._followers.get(thread_id)
        return follower.task_id if follower is not None else thread_id

    async def decide(
        self, call: Pending | str, decision: Decision, *, digest: str | None = None, by: str | None = None
    ) -> None:
        """Decides a call of any task; in the store before anything runs, also with no runtime alive.

        Args:
            call: from `pending()`, or the id of an operation
            decision: what is to be done; `Defer` changes nothing
            digest: with an id: the digest that was shown, so that nothing else is decided about
            by: who decided, where this program only passes it on
        """
        await self._decide(call, decision, digest=digest, by=by)

    async def _decide(
        self, call: Pending | str, decision: Decision, *, digest: str | None = None, by: str | None = None
    ) -> None:
        if isinstance(decision, Defer):
            return
        if isinstance(call, str):
            operation_id, digest = call, digest or await self._digest_of(call)
        else:
            operation_id, digest = call.operation_id, digest or call.arguments_digest
            name = _decisions.name_of(decision)
            if name not in call.allowed:
                allowed = ", ".join(sorted(call.allowed))
                raise DecisionConflict(
                    f"{call.describe()} takes no {name}; it takes {allowed}",
                    task_id=call.task_id,
                    operation_id=operation_id,
                )
        wire = _decisions.to_wire(decision)
        assert wire is not None
        params = OperationDecideParams(
            operation_id=operation_id, arguments_digest=digest, decision=wire, **({"on_behalf_of": by} if by else {})
        )
        await self._request(CLIENT_REQUESTS["operation/decide"], params)

    async def _digest_of(self, operation_id: str) -> str:
        for operation in await self._waiting(operation_id.split(":")[0]):
            if operation.operation_id == operation_id:
                return operation.arguments_digest
        raise DecisionConflict(f"nothing that waits is called {operation_id}", operation_id=operation_id)

    async def serve(self, *agents: Agent[D], deps: Callable[[TaskInfo], D] = _UNSET) -> None:
        """A worker: runs function tools and policies of these agents' tasks, whoever started or decided them.

        Runs until it is cancelled.
        """
        from ._serve import serve

        await serve(self, agents, deps)

    async def usage(self, *, since: datetime | None = None, task_id: str | None = None) -> Sequence[Usage]:
        """Tokens and cost, where the host counts them."""
        raise ConfigError("usage: this host does not list usage yet; a run's result has that of its turn")

    # ---- opening ----

    def _need_open(self) -> None:
        if self._group is None:
            raise ConfigError("the host is not open; use `async with Host(…) as host`")

    def _planned(self, agent: Agent[Any], deps: Any) -> AgentPlan:
        if agent.deps_type is not None and deps is _UNSET:
            raise ConfigError(f"agent {agent.name} needs deps of type {agent.deps_type.__name__}: pass `deps=`")
        plan = plan_agent(agent)
        for name, is_set in (
            ("limits", agent.limits != Limits()),
            ("manifest.env", bool(plan.manifest.env)),
            ("manifest.setup", bool(plan.manifest.setup)),
        ):
            if is_set:
                raise ConfigError(f"agent {agent.name}: {name}: this host does not hold it yet; leave it out")
        # Without this feature a host runs every function tool at once, and twice after a crash.
        if plan.asking_functions() and "provides" not in self._features:
            names = ", ".join(plan.asking_functions())
            raise RuntimeMismatch(f'this host cannot ask before {names} runs; update it, or declare effects="readonly"')
        return plan

    async def _exists(self, thread_id: str) -> bool:
        try:
            await self._request(CLIENT_REQUESTS["task/read"], TaskReadParams(thread_id=thread_id))
        except RpcError:
            return False
        return True

    async def _open_thread(self, thread_id: str, plan: AgentPlan | None, deps: Any, *, task_id: str) -> Task[Any]:
        follower = self._follow(task_id, thread_id, plan, deps)
        try:
            cwd = await self._resume(follower)
        except BaseException:
            self._forget(follower)
            raise
        return Task(self, follower, workspace=cwd, is_open=True)

    async def _resume(self, follower: TaskFollower) -> str:
        """Follows the thread, with its questions asked again, and takes over how it stands."""
        wire: dict[str, Any] = {"threadId": follower.thread_id}
        if follower.plan is not None:
            wire |= ThreadStartParams(**_agent_params(follower.plan)).to_wire()
        params = ThreadResumeParams.from_wire(wire)
        answer = await self._request(CLIENT_REQUESTS["thread/resume"], params, task_id=follower.task_id)
        follower.resync(answer.thread)
        return answer.cwd

    def _follow(self, task_id: str, thread_id: str, plan: AgentPlan | None, deps: Any) -> TaskFollower:
        old = self._followers.get(thread_id)
        if old is not None:
            if plan is not None:
                old.replace_agent(plan, None if deps is _UNSET else deps)
            return old
        value = None if deps is _UNSET else deps
        follower = TaskFollower(self, task_id=task_id, thread_id=thread_id, plan=plan, deps=value)
        self._followers[thread_id] = follower
        return follower

    def _is_served(self, task_id: str) -> bool:
        follower = self._followers.get(thread_of(task_id))
        return follower is not None and follower.worker is not None

    def _forget(self, follower: TaskFollower) -> None:
        if self._followers.get(follower.thread_id) is follower:
            del self._followers[follower.thread_id]

    async def _workspace(self, thread_id: str, backend: Backend | None, manifest: Manifest) -> str | None:
        """The folder of a task on this machine, with what the manifest asks for."""
        match backend:
            case None | Local(workspace=None):
                if self._embedded is None:
                    if manifest.entries:
                        raise ConfigError("manifest: entries need an embedded host, or a placement of the host")
                    return None
                folder = self._embedded.workspace(thread_id)
            case Local(workspace=workspace) if workspace is not None:
                folder = _absolute(workspace)
            case _:
                raise ConfigError(f"backend: {backend!r}: this host runs tasks on its own machine only")
        planned = list(planned_files(manifest))
        for part in planned:
            if isinstance(part, PlannedFile) and (folder / part.path).exists():
                raise ConfigError(f"manifest: {folder / part.path} is there already and is not overwritten")
        os.makedirs(folder, exist_ok=True)
        for part in planned:
            if not isinstance(part, PlannedFile):
                os.makedirs(folder / part, exist_ok=True)
                continue
            target = folder / part.path
            os.makedirs(target.parent, exist_ok=True)
            target.write_bytes(part.data)
            if part.mode is not None:
                target.chmod(part.mode)
        return str(folder)

    # ---- the connection ----

    def _spawn(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Runs beside everything else until the host is closed."""
        self._need_open()
        assert self._group is not None
        self._group.start_soon(work, *arguments)

    async def _request(
        self, method: RequestMethod[_Params, _Response], params: _Params, *, task_id: str | None = None
    ) -> _Response:
        """Asks the host. A host that dies meanwhile is asked again when it is back; every request may be repeated."""
        while True:
            self._need_open()
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

    async def _argv(self) -> list[str]:
        provider = self._provider
        argv = [find_runtime(self._runtime), "host"]
        match provider:
            case None | str() | OpenAI() | Anthropic() | Chat() | Offline():
                argv += host_arguments(provider)
            case ModelProvider():
                if self._bridge is None:
                    self._bridge = ModelBridge(provider)
                    await self._bridge.open(self._spawn)
                argv += self._bridge.host_arguments()
        for key, value in self._config.items():
            argv += ["-c", f"{key}={_toml(value)}"]
        return argv

    async def _open_transport(self) -> Transport:
        if self._embedded is not None:
            argv = await self._argv()
            environment = {**self._secrets, **(self._bridge.environment() if self._bridge is not None else {})}

            async def given() -> Sequence[str]:
                return argv

            return await self._embedded.connect(given, environment)
        assert self._url is not None
        try:
            if self._url.startswith("unix://"):
                return await SocketTransport.connect(self._url.removeprefix("unix://"))
            return await WebsocketTransport.connect(self._url, self._token)
        except OSError as error:
            raise TransportClosed(f"no host answers at {self._url}: {error}") from error

    async def _open_connection(self) -> None:
        transport = await self._open_transport()
        try:
            connection = await self._greet(transport)
        except TransportClosed:
            await transport.aclose()
            if self._embedded is None or "the first one" not in transport.last_words():
                raise
            # Another process was faster: its host has the store.
            transport = await self._embedded.after_refusal()
            connection = await self._greet(transport)
        self._transport, self._connection = transport, connection
        self._ready.set()
        self._spawn(self._supervise, connection)

    async def _greet(self, transport: Transport) -> Connection:
        connection = Connection(transport, on_notification=self._on_notification, on_request=self._on_request)
        self._spawn(connection.run)
        info = ClientInfo(name="oarlock_python", title=None, version=_VERSION)
        offer = HostOffer(versions=[1], all_tasks=True)
        params = InitializeParams(
            client_info=info, capabilities=InitializeCapabilities(experimental_api=True, host=offer)
        )
        answer = await connection.request(CLIENT_REQUESTS["initialize"], params)
        if answer.capabilities is None or answer.capabilities.host is None:
            raise RuntimeMismatch("the program at the other end is not a host; start `oarlock host`")
        self._features = frozenset(answer.capabilities.host.features)
        await connection.notify("initialized")
        return connection

    async def _supervise(self, connection: Connection) -> None:
        """Reconnects when the connection ends, and subscribes to the followed tasks again."""
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
            for follower in list(self._followers.values()):
                self._spawn(self._resubscribe, follower)
            return
        self._gone = last
        self._ready.set()
        self._close_followers(last)

    async def _resubscribe(self, follower: TaskFollower) -> None:
        try:
            await self._resume(follower)
        except OarlockError as error:
            follower.close(error)

    def _close_followers(self, error: OarlockError) -> None:
        for follower in self._followers.values():
            follower.close(error)

    # ---- what the host says ----

    def _on_notification(self, method: str, params: Any) -> None:
        if not isinstance(params, Mapping):
            return
        if method == "operation/updated":
            self._on_operation(params)
            return
        if method == "thread/started":
            self._on_thread(params.get("thread"))
        thread_id = params.get("threadId")
        follower = self._followers.get(thread_id) if isinstance(thread_id, str) else None
        if follower is not None:
            follower.take(method, params)

    def _on_operation(self, params: Mapping[str, Any]) -> None:
        try:
            notification = OperationUpdatedNotification.from_wire(params)
        except ValidationError as error:
            log.warning("an operation cannot be read: %s", error)
            return
        follower = self._followers.get(notification.operation.task_id)
        if follower is not None:
            follower.take_operation(notification)
        for listener in self._operation_listeners:
            listener(notification.operation)

    def _on_thread(self, thread: Any) -> None:
        """A child of a followed task: its calls are answered by the same agent."""
        source = thread.get("source") if isinstance(thread, Mapping) else None
        spawn = source.get("subAgent", {}) if isinstance(source, Mapping) else {}
        spawn = spawn.get("thread_spawn", {}) if isinstance(spawn, Mapping) else {}
        parent = spawn.get("parent_thread_id")
        if isinstance(parent, str):
            self._children[str(thread["id"])] = self._children.get(parent, parent)

    def _on_request(self, request_id: Any, method: str, params: Any) -> None:
        if method == "item/tool/call":
            self._spawn(self._answer_call, self._connection, request_id, params)
        elif method in _APPROVALS:
            # Decided by `operation/decide`, here or elsewhere, so that the record says by whom and nothing is lost.
            self._spawn(self._answer, self._connection, request_id, {"decision": "defer"})
            operation_id = params.get("operationId") if isinstance(params, Mapping) else None
            follower = self._followers.get(str(operation_id).split(":")[0])
            if follower is not None and follower.worker is not None:
                follower.worker.asked(str(operation_id))
        else:
            log.debug("%s is left to others", method)

    async def _answer(self, connection: Connection | None, request_id: Any, result: Mapping[str, Any]) -> None:
        if connection is None:
            return
        try:
            await connection.respond(request_id, result)
        except TransportClosed:
            log.debug("the host was gone before it had its answer")

    async def _answer_call(self, connection: Connection | None, request_id: Any, params: Any) -> None:
        assert connection is not None
        call = DynamicToolCallParams.from_wire(params)
        follower = self._followers.get(self._children.get(call.thread_id, call.thread_id))
        if follower is None and call.operation_id is not None:
            follower = self._followers.get(call.operation_id.split(":")[0])
        if follower is None or follower.worker is None:
            log.warning("nobody here runs %s of thread %s", call.tool, call.thread_id)
            return
        response = await follower.worker.answer(call)
        await self._answer(connection, request_id, response.to_wire())


def _agent_params(plan: AgentPlan) -> dict[str, Any]:
    """As `thread/start` takes them, under the names of the model's attributes."""
    agent = plan.agent
    params: dict[str, Any] = {"sandbox": agent.sandbox, "persist_extended_history": True}
    for name, value in (
        ("model", agent.model),
        ("developer_instructions", plan.instructions),
        ("base_instructions", agent.base_instructions),
        ("tool_set", plan.tool_set()),
        ("config", dict(plan.settings) or None),
        ("provides", plan.provides() or None),
    ):
        if value is not None:
            params[name] = value
    return params


def _info(row: TaskRow) -> TaskInfo:
    return TaskInfo(
        id=task_id_of(row.id, row.name),
        name=row.name,
        agent=row.labels.get("agent", ""),
        status=row.state,  # type: ignore[arg-type]  # A newer host may have more words.
        pending=row.waiting_operations,
        labels=row.labels,
        updated_at=datetime.fromtimestamp(row.updated_at_ms / 1000, timezone.utc),
    )


def _absolute(path: str | Path) -> Path:
    return Path(path).absolute()


def _toml(value: JSON) -> str:
    """A value for `-c`: JSON is TOML for all that a setting is made of, but for tables."""
    import json

    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value)
