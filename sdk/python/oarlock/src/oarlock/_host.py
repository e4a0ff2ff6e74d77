"""A connection to a host: tasks are started, opened, listed and decided here."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload
from uuid import uuid4

import oarlock_protocol as protocol

from . import _decisions
from ._decisions import Decision, Defer
from ._errors import (
    ConfigError,
    DecisionConflict,
    OarlockError,
    RpcError,
    RuntimeMismatch,
    SandboxUnavailable,
    TaskExists,
    TaskNotFound,
    TransportClosed,
)
from ._ids import TaskInfo, info_of, task_id_of, thread_of
from ._typing import JSON, D, T

if TYPE_CHECKING:
    from datetime import datetime

    from ._agent import Agent
    from ._backends import Backend
    from ._events import Event
    from ._follow import TaskFollower, TurnEnd
    from ._options import SessionOptions
    from ._pending import Pending
    from ._plan import AgentPlan
    from ._providers import ModelProvider, Provider
    from ._results import Input, TaskUsage, Usage
    from ._router import TaskRouter
    from ._run import Run
    from ._session import Session
    from ._task import Task

log = logging.getLogger("oarlock")

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")
_UNSET: Any = ...
# How long a host without a store takes at its end to remove the places of its tasks.
_REMOVED_WITHIN = 60.0


class Host:
    """A connection to `oarlock host`: embedded in this process, or one that runs (`Host.connect`).

    One host per store: the first process that opens a store runs its host, later ones connect to that.

    Args:
        store: the file that keeps tasks, or the `postgres://` address of a database; unset, they are gone when the
            host is closed
        provider: what carries model requests: `OpenAI()`, `Anthropic()`, `Chat(…)`, `Offline()`, the name of a
            configured one, or a `ModelProvider` of your own
        backend: where tasks run unless they say otherwise: `Docker(…)`, `Podman(…)`, `Ssh(…)`, `Kubernetes(…)`,
            `Command(…)`, `Local(…)`, or the name of a placement of the host's configuration
        secrets: values for the host's environment, and for `Secret(NAME)` of manifests; in no file and no record
        adopt: bring back at once all that ran when the last host of this store ended; else each task goes on when it is
            opened with its agent, or decided about
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
        self._has_places = False

    @classmethod
    def connect(cls, url: str, *, token: str | None = None, provider: ModelProvider | None = None) -> Host:
        """A host that runs: `unix://PATH`, `ws://HOST:PORT` or `wss://HOST:PORT`.

        Args:
            url: where it listens
            token: as the host knows this program
            provider: carries the model requests of the tasks that are started and opened here, in this program, for as
                long as it is connected; unset, the host's own does
        """
        if not url.startswith(("unix://", "ws://", "wss://")):
            raise ConfigError(f"{url}: expected unix://PATH, ws://HOST:PORT or wss://HOST:PORT")
        host = cls()
        host._url, host._token, host._provider = url, token, provider
        return host

    async def __aenter__(self) -> Host:
        from ._launch import launch

        if self._session is not None:
            raise ConfigError("this host is open already")
        options = self._options()
        launched = launch(options)
        # While the host starts. Not when this module is imported: a program that only describes agents does not wait.
        from . import _task, _workspace  # noqa: F401
        from ._router import TaskRouter
        from ._session import Session

        router = TaskRouter(self)
        session = Session(options, router.listeners(), launched)
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
        await self._remove_places(session)
        router.close(TransportClosed("the host was closed"))
        try:
            await session.aclose()
        finally:
            self._session = None

    async def _remove_places(self, session: Session) -> None:
        """Tasks that are kept nowhere leave no container behind."""
        if not self._has_places or session.embedded is None or not session.embedded.is_temporary:
            return
        import anyio

        requests = protocol.CLIENT_REQUESTS
        with anyio.move_on_after(_REMOVED_WITHIN, shield=True):
            try:
                listed = await session.request(requests["placement/list"], protocol.PlacementListParams())
                for thread_id in (thread for place in listed.data for thread in place.thread_ids):
                    await session.request(requests["task/delete"], protocol.TaskDeleteParams(thread_id=thread_id))
                unused = protocol.PlacementGcParams(dry_run=False, unused_for_seconds=0)
                await session.request(requests["placement/gc"], unused)
            except OarlockError as error:
                log.warning("places of this host may be left behind: %s", error)

    def _options(self) -> SessionOptions:
        from ._options import SessionOptions

        return SessionOptions(
            url=self._url,
            token=self._token,
            store=self._store,
            provider=self._provider,
            adopt=self._adopt,
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
            task = await self._start(agent, deps, on_event=run._feed)
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
            labels: to find it by: `host.tasks(labels=…)`. At most 32; a task that is there already keeps its own
        """
        return await self._start(agent, deps, task_id=task_id, if_exists=if_exists, backend=backend, labels=labels)

    async def _start(
        self,
        agent: Agent[D],
        deps: Any,
        *,
        task_id: str | None = None,
        if_exists: Literal["error", "open"] = "error",
        backend: Backend | None = None,
        labels: Mapping[str, str] = {},
        on_event: Callable[[Event], None] | None = None,
    ) -> Task[D]:
        from ._task import Task
        from ._usage import ROOT
        from ._workspace import prepare_place

        plan = self._planned(agent, deps)
        thread_id = thread_of(task_id) if task_id is not None else str(uuid4())
        if task_id is not None and await self._read(thread_id) is not None:
            if if_exists == "open":
                return await self.open(task_id, agent, deps=deps)
            raise TaskExists(f'there is a task {task_id}; if_exists="open" opens it', task_id=task_id)
        place = prepare_place(self._opened(), thread_id, backend or self._backend, plan.manifest)
        self._has_places |= place.placement is not None
        given = {**_agent_params(plan, self._model_settings(agent.model)), **_budget_params(agent), **place.params()}
        params = {"threadId": thread_id, "threadSource": agent.name, "agentDigest": agent.digest(), **given}
        params |= self._carried(agent.model)
        if labels:
            params["labels"] = dict(labels)
        if place.config:
            params["config"] = {**params.get("config", {}), **place.config}
        follower = self._follow(task_id or thread_id, thread_id, plan, deps)
        follower.on_early_event = on_event
        try:
            answer = await self._start_thread(agent, params, task_id)
        except BaseException:
            self._forget(follower)
            raise
        follower.on_early_event = None
        follower.usage.starts_at_zero(ROOT)
        if task_id is not None and task_id != thread_id:
            name = protocol.ThreadSetNameParams(thread_id=thread_id, name=task_id)
            await self._request(protocol.CLIENT_REQUESTS["thread/name/set"], name, task_id=task_id)
        task: Task[D] = Task(self, follower, workspace=str(answer["cwd"]), is_open=True)
        self._call_hooks(task)
        if plan.functions:
            self._spawn(_load_models)
        for notice in plan.notices:
            follower.notice(notice)
        for capability in plan.capabilities:
            await capability.on_start(task)
        return task

    async def _start_thread(
        self, agent: Agent[Any], params: Mapping[str, Any], task_id: str | None
    ) -> Mapping[str, Any]:
        from ._agent import UnsetSandbox

        answer: Mapping[str, Any]
        try:
            answer = await self._ask("thread/start", params, task_id=task_id)
        except SandboxUnavailable:
            if not isinstance(agent.sandbox, UnsetSandbox):
                raise
            # Nobody asked for one, and the place is the sandbox.
            answer = await self._ask("thread/start", {**params, "sandbox": None}, task_id=task_id)
        return answer

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
        answer = await self._read(thread_id)
        if answer is None:
            raise _no_task(task_id)
        follower = TaskFollower(self, task_id=task_id, thread_id=thread_id, plan=None, deps=None)
        return Task(self, follower, workspace=answer.task.cwd or "", is_open=False)

    async def tasks(
        self, *, status: str | None = None, labels: Mapping[str, str] | None = None, limit: int = 50
    ) -> Sequence[TaskInfo]:
        """Tasks, the last changed first.

        Args:
            status: only those in this state
            labels: only those that have all of these
            limit: how many
        """
        found: list[TaskInfo] = []
        cursor: str | None = None
        while len(found) < limit:
            wanted = dict(labels) if labels else None
            params = protocol.TaskListParams(state=status, labels=wanted, cursor=cursor, limit=min(limit, 100))
            page = await self._request(protocol.CLIENT_REQUESTS["task/list"], params)
            found += (info_of(row) for row in page.data)
            cursor = page.next_cursor
            if cursor is None:
                break
        return found[:limit]

    async def pending(self, *, task_id: str | None = None) -> Sequence[Pending]:
        """Calls that wait for a decision, of one task or of all, the oldest first. Needs no runtime."""
        from ._pending import pending_of

        found = await self._waiting(task_id)
        names = await self._task_ids({operation.task_id for operation in found}, task_id)
        return [pending_of(operation, task_id=names[operation.task_id]) for operation in found]

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

    async def _task_ids(self, threads: set[str], asked: str | None) -> dict[str, str]:
        """The ids that callers chose, also where this process has not heard of the tasks yet."""
        followers = self._routed().followers
        known = {thread: followers[thread].task_id for thread in threads if thread in followers}
        if asked is not None:
            known |= {thread: asked for thread in threads}
        for thread in threads - known.keys():
            answer = await self._read(thread)
            known[thread] = task_id_of(thread, answer.task.name) if answer is not None else thread
        return known

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
        method = protocol.CLIENT_REQUESTS["operation/decide"]
        try:
            await self._request(method, params, again=False)
        except TransportClosed:
            # Nobody knows whether it was stored. Where it was, the host says that it is decided: by this.
            try:
                await self._request(method, params)
            except DecisionConflict as conflict:
                if conflict.decided is None or protocol.read(protocol.OperationDecision, conflict.decided) != wire:
                    raise

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
        """Tokens and cost by the host's prices: a `TaskUsage` for each task.

        Args:
            since: only requests after this time
            task_id: only of this task, with its children
        """
        return await self._usage(since, task_id)

    async def _usage(self, since: datetime | None, task_id: str | None) -> list[TaskUsage]:
        from ._results import TaskUsage

        given: dict[str, Any] = {
            "thread_id": thread_of(task_id) if task_id is not None else None,
            "since_ms": int(since.timestamp() * 1_000) if since is not None else None,
        }
        params = protocol.UsageListParams(group_by="task", **{k: v for k, v in given.items() if v is not None})
        answer = await self._request(protocol.CLIENT_REQUESTS["usage/list"], params, task_id=task_id)
        names = await self._task_ids({row.key for row in answer.data}, task_id)
        return [
            TaskUsage(
                task_id=names[row.key],
                requests=row.requests,
                input_tokens=row.input_tokens,
                cached_input_tokens=row.cached_input_tokens,
                output_tokens=row.output_tokens,
                # The host has no price where it counts nothing.
                cost_usd=row.cost_micros / 1e6 if row.cost_micros else None,
            )
            for row in answer.data
        ]

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
        from ._plan import plan_agent

        if agent.deps_type is not None and deps is _UNSET:
            raise ConfigError(f"agent {agent.name} needs deps of type {agent.deps_type.__name__}: pass `deps=`")
        plan = plan_agent(agent, self._opened().runtime_info)
        # Without this feature a host runs every function tool at once, and twice after a crash.
        if plan.asking_functions() and "provides" not in self._opened().features:
            names = ", ".join(plan.asking_functions())
            raise RuntimeMismatch(f'this host cannot ask before {names} runs; update it, or declare effects="readonly"')
        return plan

    async def _read(self, thread_id: str) -> protocol.TaskReadResponse | None:
        """Nothing where there is no such task."""
        params = protocol.TaskReadParams(thread_id=thread_id)
        try:
            return await self._request(protocol.CLIENT_REQUESTS["task/read"], params)
        except RpcError as error:
            if error.data is None:
                return None
            raise

    async def _placement_of(self, thread_id: str) -> protocol.PlacementInfo | None:
        """Where a task works; nothing for one that works on the host's machine as it is."""
        listed = await self._request(protocol.CLIENT_REQUESTS["placement/list"], protocol.PlacementListParams())
        return next((place for place in listed.data if thread_id in place.thread_ids), None)

    async def _open_thread(self, thread_id: str, plan: AgentPlan | None, deps: Any, *, task_id: str) -> Task[Any]:
        from ._task import Task

        before = await self._read(thread_id)
        if before is None:
            raise _no_task(task_id)
        follower = self._follow(task_id, thread_id, plan, deps)
        try:
            cwd = await self._resume(follower)
        except BaseException:
            self._forget(follower)
            raise
        for notice in plan.notices if plan is not None else ():
            follower.notice(notice)
        digest = before.task.agent_digest
        if plan is not None and digest is not None and digest != plan.agent.digest():
            follower.notice(f"agent {plan.agent.name} is not as it was when the task was opened before")
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
        from ._agent import UnsetSandbox
        from ._connection import read_answer

        wire: dict[str, Any] = {"threadId": follower.thread_id}
        if (plan := follower.plan) is not None:
            wire |= _agent_params(plan, self._model_settings(plan.agent.model))
            if isinstance(plan.agent.sandbox, UnsetSandbox):
                # The task keeps the one it was started with, or none where its place is the sandbox.
                del wire["sandbox"]
            wire["agentDigest"] = plan.agent.digest()
            wire |= self._carried(plan.agent.model)
        method = protocol.CLIENT_REQUESTS["thread/resume"]
        follower.expect_resync()
        answer = read_answer(method, await self._ask(method.method, wire, task_id=follower.task_id))
        follower.resync(answer.thread)
        return answer.cwd

    def _model_settings(self, model: str | None) -> Mapping[str, JSON]:
        """Of a model that the agent chose, at a provider of this program; the host knows its default one."""
        from ._providers import model_settings

        provider = self._options().own_provider
        return model_settings(provider.capabilities(model)) if provider is not None and model is not None else {}

    def _carried(self, model: str | None) -> Mapping[str, JSON]:
        """Of a task whose model requests a provider of this program carries, at a host that runs."""
        carrier = self._opened().carrier
        if carrier is None:
            return {}
        return {"model": model or carrier.default_model, "delegation": carrier.delegation(model)}

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
        self,
        method: protocol.RequestMethod[_Params, _Response],
        params: _Params,
        *,
        task_id: str | None = None,
        again: bool = True,
    ) -> _Response:
        return await self._opened().request(method, params, task_id=task_id, again=again)

    async def _ask(self, method: str, params: Mapping[str, Any], *, task_id: str | None = None) -> Any:
        """The same without the models, which take their time to load, where a turn starts."""
        return await self._opened().ask(method, params, task_id=task_id)


def _no_task(task_id: str) -> TaskNotFound:
    return TaskNotFound(
        f"there is no task {task_id}; `host.tasks()` lists those there are", code=-32600, task_id=task_id
    )


async def _load_models() -> None:
    """While the model thinks: calls of tools are read by the generated models, which take their time to load."""
    import anyio.to_thread

    if "oarlock_protocol.methods" not in sys.modules:
        await anyio.to_thread.run_sync(import_module, "oarlock_protocol.methods", abandon_on_cancel=True)


def _budget_params(agent: Agent[Any]) -> dict[str, Any]:
    """How much the task may use; only at its start."""
    limits = {name: getattr(agent.limits, name) for name in ("usd", "tokens")}
    chosen = {name: limit for name, limit in limits.items() if limit is not None}
    return {"budget": chosen} if chosen else {}


def _agent_params(plan: AgentPlan, model_settings: Mapping[str, JSON] | None = None) -> dict[str, Any]:
    """As `thread/start` and `thread/resume` take them."""
    agent = plan.agent
    params: dict[str, Any] = {"sandbox": agent.sandbox, "persistExtendedHistory": True}
    for name, value in (
        ("model", agent.model),
        ("developerInstructions", plan.instructions),
        ("baseInstructions", agent.base_instructions),
        ("toolSet", plan.tool_set()),
        ("config", {**(model_settings or {}), **plan.settings} or None),
        ("provides", plan.provides() or None),
    ):
        if value is not None:
            params[name] = value
    return params
