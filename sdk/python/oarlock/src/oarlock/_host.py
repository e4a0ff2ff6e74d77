"""A connection to a host: tasks are started, opened, listed and decided here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from uuid import uuid4

import oarlock_protocol as protocol

from . import _decisions
from ._decisions import Decision, Defer
from ._errors import ConfigError, DecisionConflict, RpcError, RuntimeMismatch, TaskExists, TransportClosed
from ._ids import TaskInfo, info_of, thread_of
from ._typing import JSON, D, T

if TYPE_CHECKING:
    from datetime import datetime

    from ._agent import Agent
    from ._backends import Backend
    from ._follow import TaskFollower, TurnEnd
    from ._pending import Pending
    from ._plan import AgentPlan
    from ._providers import ModelProvider, Provider
    from ._results import Input, Usage
    from ._router import TaskRouter
    from ._run import Run
    from ._session import Session, SessionOptions
    from ._task import Task

log = logging.getLogger("oarlock")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")
_UNSET: Any = ...


class Host:
    """A connection to `oarlock host`: embedded in this process, or one that runs (`Host.connect`).

    One host per store: the first process that opens a store runs its host, later ones connect to that.

    Args:
        store: the file that keeps tasks, or the `postgres://` address of a database; unset, they are gone when the
            host is closed
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
        self._session: Session | None = None
        self._router: TaskRouter | None = None

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
        # Not when this module is imported: a program that only describes agents does not wait for it.
        from ._router import TaskRouter
        from ._session import Session

        if self._session is not None:
            raise ConfigError("this host is open already")
        router = TaskRouter(self)
        session = Session(self._options(), router.listeners())
        self._router, self._session = router, session
        try:
            await session.open()
        except BaseException:
            self._session = None
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        session, router = self._session, self._router
        assert session is not None and router is not None
        router.close(TransportClosed("the host was closed"))
        try:
            await session.aclose()
        finally:
            self._session = None

    def _options(self) -> SessionOptions:
        from ._session import SessionOptions

        return SessionOptions(
            url=self._url,
            token=self._token,
            store=self._store,
            provider=self._provider,
            secrets=self._secrets,
            tool_concurrency=self._tool_concurrency,
            runtime=self._runtime,
            config=self._config,
        )

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
        from ._output import OutputForm
        from ._run import Run

        self._opened()
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
        from ._task import Task
        from ._workspace import prepare_workspace

        if labels:
            raise ConfigError("labels: this host keeps none yet; leave them out, or put them into `task_id`")
        plan = self._planned(agent, deps)
        thread_id = thread_of(task_id) if task_id is not None else str(uuid4())
        if task_id is not None and await self._exists(thread_id):
            if if_exists == "open":
                return await self.open(task_id, agent, deps=deps)
            raise TaskExists(f'there is a task {task_id}; if_exists="open" opens it', task_id=task_id)
        where = prepare_workspace(self._opened().embedded, thread_id, backend or self._backend, plan.manifest)
        given: dict[str, Any] = {**_agent_params(plan), **({"cwd": where} if where else {})}
        params = protocol.ThreadStartParams(thread_id=thread_id, thread_source=agent.name, **given)
        follower = self._follow(task_id or thread_id, thread_id, plan, deps)
        try:
            answer = await self._request(protocol.CLIENT_REQUESTS["thread/start"], params, task_id=task_id)
        except BaseException:
            self._forget(follower)
            raise
        if task_id is not None and task_id != thread_id:
            name = protocol.ThreadSetNameParams(thread_id=thread_id, name=task_id)
            await self._request(protocol.CLIENT_REQUESTS["thread/name/set"], name, task_id=task_id)
        task: Task[D] = Task(self, follower, workspace=answer.cwd, is_open=True)
        self._call_hooks(task)
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
        from ._follow import TaskFollower
        from ._task import Task

        thread_id = thread_of(task_id)
        if agent is not None:
            return await self._open_thread(thread_id, self._planned(agent, deps), deps, task_id=task_id)
        params = protocol.TaskReadParams(thread_id=thread_id)
        answer = await self._request(protocol.CLIENT_REQUESTS["task/read"], params, task_id=task_id)
        follower = TaskFollower(self, task_id=task_id, thread_id=thread_id, plan=None, deps=None)
        return Task(self, follower, workspace=answer.task.cwd or "", is_open=False)

    async def tasks(
        self, *, status: str | None = None, labels: Mapping[str, str] | None = None, limit: int = 50
    ) -> Sequence[TaskInfo]:
        """Tasks, the last changed first."""
        found: list[TaskInfo] = []
        cursor: str | None = None
        while len(found) < limit:
            params = protocol.TaskListParams(state=status, cursor=cursor, limit=min(limit, 100))
            page = await self._request(protocol.CLIENT_REQUESTS["task/list"], params)
            rows = (info_of(row) for row in page.data)
            found += (info for info in rows if (labels or {}).items() <= info.labels.items())
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[:limit]

    async def pending(self, *, task_id: str | None = None) -> Sequence[Pending]:
        """Calls that wait for a decision, of one task or of all, the oldest first. Needs no runtime."""
        from ._pending import pending_of

        return [
            pending_of(operation, task_id=self._task_id(operation.task_id, task_id))
            for operation in await self._waiting(task_id)
        ]

    async def _waiting(self, task_id: str | None) -> list[protocol.Operation]:
        thread_id = thread_of(task_id) if task_id is not None else None
        found: list[protocol.Operation] = []
        cursor: str | None = None
        while True:
            params = protocol.OperationListParams(thread_id=thread_id, cursor=cursor, limit=200)
            page = await self._request(protocol.CLIENT_REQUESTS["operation/list"], params)
            found += page.data
            cursor = page.next_cursor
            if cursor is None:
                return found

    def _task_id(self, thread_id: str, asked: str | None) -> str:
        if asked is not None:
            return asked
        follower = self._routed().followers.get(thread_id)
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
        params = protocol.OperationDecideParams(
            operation_id=operation_id, arguments_digest=digest, decision=wire, **({"on_behalf_of": by} if by else {})
        )
        await self._request(protocol.CLIENT_REQUESTS["operation/decide"], params)

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

    def _opened(self) -> Session:
        if self._session is None:
            raise ConfigError("the host is not open; use `async with Host(…) as host`")
        return self._session

    def _routed(self) -> TaskRouter:
        self._opened()
        assert self._router is not None
        return self._router

    def _planned(self, agent: Agent[Any], deps: Any) -> AgentPlan:
        from ._agent import Limits
        from ._plan import plan_agent

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
        if plan.asking_functions() and "provides" not in self._opened().features:
            names = ", ".join(plan.asking_functions())
            raise RuntimeMismatch(f'this host cannot ask before {names} runs; update it, or declare effects="readonly"')
        return plan

    async def _exists(self, thread_id: str) -> bool:
        try:
            await self._request(protocol.CLIENT_REQUESTS["task/read"], protocol.TaskReadParams(thread_id=thread_id))
        except RpcError:
            return False
        return True

    async def _open_thread(self, thread_id: str, plan: AgentPlan | None, deps: Any, *, task_id: str) -> Task[Any]:
        from ._task import Task

        follower = self._follow(task_id, thread_id, plan, deps)
        try:
            cwd = await self._resume(follower)
        except BaseException:
            self._forget(follower)
            raise
        task: Task[Any] = Task(self, follower, workspace=cwd, is_open=True)
        self._call_hooks(task)
        return task

    def _call_hooks(self, task: Task[Any]) -> None:
        """Capabilities hear of the end of each turn."""
        from ._capabilities import with_turn_hook

        follower = task._follower
        hooks = with_turn_hook(follower.plan.capabilities) if follower.plan is not None else []

        async def after(end: TurnEnd) -> None:
            for capability in hooks:
                try:
                    await capability.on_turn_end(task, end.result())
                except Exception as error:
                    log.exception("on_turn_end of capability %s raised", capability.id)
                    follower.notice(f"on_turn_end of {capability.id} raised {type(error).__name__}: {error}")

        follower.on_turn_end = (lambda end: self._spawn(after, end)) if hooks else None

    async def _resume(self, follower: TaskFollower) -> str:
        """Follows the thread, with its questions asked again, and takes over how it stands."""
        wire: dict[str, Any] = {"threadId": follower.thread_id}
        if follower.plan is not None:
            wire |= protocol.ThreadStartParams(**_agent_params(follower.plan)).to_wire()
        params = protocol.ThreadResumeParams.from_wire(wire)
        answer = await self._request(protocol.CLIENT_REQUESTS["thread/resume"], params, task_id=follower.task_id)
        follower.resync(answer.thread)
        return answer.cwd

    def _follow(self, task_id: str, thread_id: str, plan: AgentPlan | None, deps: Any) -> TaskFollower:
        from ._follow import TaskFollower

        value = None if deps is _UNSET else deps
        followers = self._routed().followers
        old = followers.get(thread_id)
        if old is not None:
            if plan is not None:
                old.replace_agent(plan, value)
            return old
        follower = followers[thread_id] = TaskFollower(
            self, task_id=task_id, thread_id=thread_id, plan=plan, deps=value
        )
        return follower

    def _is_served(self, task_id: str) -> bool:
        follower = self._routed().followers.get(thread_of(task_id))
        return follower is not None and follower.worker is not None

    def _forget(self, follower: TaskFollower) -> None:
        if self._router is not None:
            self._router.forget(follower)

    # ---- the connection ----

    def _spawn(self, work: Callable[..., Any], *arguments: Any) -> None:
        """Runs beside everything else until the host is closed."""
        self._opened().spawn(work, *arguments)

    async def _request(
        self, method: protocol.RequestMethod[_Params, _Response], params: _Params, *, task_id: str | None = None
    ) -> _Response:
        return await self._opened().request(method, params, task_id=task_id)


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
