"""Runs function tools and policies for one task."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import oarlock_protocol as protocol

from ._decisions import Approve, Decision, Defer, Reject, Replace, Respond, Retry, name_of, text_of
from ._errors import DecisionConflict, OarlockError, ToolError
from ._events import ToolPending, ToolProgress
from ._inputs import image_url
from ._pending import Pending, PendingFunction, Policy, pending_of, turn_of
from ._results import Image
from ._schema import complaint
from ._tools import FunctionTool, ToolContext
from ._tracing import end_span, start_span, within

if TYPE_CHECKING:
    from ._follow import TaskFollower

log = logging.getLogger("oarlock")

_POLICY_SECONDS = 30.0
_ASKED_SECONDS = 5.0
_DECISIONS = (Approve, Reject, Defer, Replace, Respond, Retry)


class ToolWorker:
    """Judges what waits, and answers calls of function tools, for one task."""

    def __init__(self, follower: TaskFollower, deps: Any) -> None:
        self._follower = follower
        self.deps = deps
        self._judging: set[str] = set()
        self._judged: set[tuple[str, str, int]] = set()
        self._asked: dict[str, anyio.Event] = {}

    @property
    def is_judging(self) -> bool:
        return bool(self._judging)

    # ---- policies ----

    def judge_soon(self, operation: protocol.Operation) -> bool:
        """Each attempt at an operation is judged once. False when it was, or is being."""
        key = (operation.operation_id, operation.state, operation.attempt)
        if key in self._judged or self.runs_unasked(operation):
            return False
        self._judged.add(key)
        self._judging.add(operation.operation_id)
        self._follower.host._spawn(self._judge, operation)
        return True

    def asked(self, operation_id: str) -> None:
        """The host has asked about this operation."""
        self._asked.setdefault(operation_id, anyio.Event()).set()

    def runs_unasked(self, operation: protocol.Operation) -> bool:
        """A tool that only looks is on its way already: nobody has to decide about it."""
        plan = self._follower.plan
        if plan is None or operation.type != "function" or operation.state != "proposed":
            return False
        return operation.tool in plan.functions and operation.tool not in plan.asking_functions()

    async def _judge(self, operation: protocol.Operation) -> None:
        call = pending_of(operation, task_id=self._follower.task_id, deps=self.deps)
        try:
            decision, by = await self._opinion(operation, call)
            if isinstance(call, PendingFunction) and operation.state == "proposed" and decision is not None:
                # A host may lose a decision that comes before it has asked.
                with anyio.move_on_after(_ASKED_SECONDS):
                    await self._asked.setdefault(operation.operation_id, anyio.Event()).wait()
            if decision is not None and not isinstance(decision, Defer):
                await self._follower.host._decide(call, decision, by=by)
                return
        except DecisionConflict:
            # Somebody else was faster, and what they decided counts.
            return
        except OarlockError as error:
            self._follower.notice(f"{call.describe()} could not be decided: {error}")
        finally:
            self._judging.discard(operation.operation_id)
        self._follower.emit(ToolPending(seq=self._follower.seq, call=call))

    async def _opinion(self, operation: protocol.Operation, call: Pending) -> tuple[Decision | None, str]:
        plan = self._follower.plan
        assert plan is not None
        tool = plan.functions.get(operation.tool) if isinstance(call, PendingFunction) else None
        if tool is not None and isinstance(call, PendingFunction):
            from pydantic_core import ValidationError

            try:
                arguments = tool.schema.plain(operation.arguments)
            except ValidationError as error:
                return Respond(complaint(tool.name, error), success=False), "schema"
            call = _with_arguments(call, arguments)
        if call.outcome == "unknown":
            return await self._reconciled(operation, call, tool)
        for policy in plan.policies_for(operation.tool):
            name = getattr(policy, "__name__", type(policy).__name__)
            decision = await self._ask(policy, call, name)
            if decision is not None:
                return decision, f"policy:{name}"
        if tool is not None and tool.effects == "readonly":
            return Approve(), "effects:readonly"
        return None, ""

    async def _ask(self, policy: Policy, call: Pending, name: str) -> Decision | None:
        """One that raises, takes too long or gives nonsense leaves the call to people."""
        try:
            with anyio.fail_after(_POLICY_SECONDS):
                decision = await _called(policy, call)
        except TimeoutError:
            self._follower.notice(f"policy {name} took longer than {_POLICY_SECONDS:.0f} s; the call waits")
            return Defer()
        except Exception as error:
            log.exception("policy %s raised", name)
            self._follower.notice(f"policy {name} raised {type(error).__name__}: {error}; the call waits")
            return Defer()
        if decision is None or isinstance(decision, Defer):
            return decision
        if not isinstance(decision, _DECISIONS) or name_of(decision) not in call.allowed:
            self._follower.notice(f"policy {name} gave {decision!r}, which this call does not take; it waits")
            return Defer()
        return decision

    async def _reconciled(
        self, operation: protocol.Operation, call: Pending, tool: FunctionTool[Any, Any, Any] | None
    ) -> tuple[Decision | None, str]:
        if tool is None or tool.reconciler is None:
            return None, ""
        context = self._context(
            operation.thread_id, turn_of(operation), operation.item_id, operation.operation_id, operation.attempt
        )
        try:
            decision = await self._call(tool, tool.reconciler, context, tool.schema.arguments(operation.arguments))
        except Exception as error:
            log.exception("reconcile of %s raised", tool.name)
            self._follower.notice(f"reconcile of {tool.name} raised {type(error).__name__}: {error}; the call waits")
            return None, ""
        if decision is not None and not isinstance(decision, Respond | Retry | Reject):
            decision = Respond(decision)
        return decision, f"reconcile:{tool.name}"

    # ---- tools ----

    async def answer(self, params: protocol.DynamicToolCallParams) -> protocol.DynamicToolCallResponse:
        """Runs the tool. Whatever goes wrong is an answer to the model, never the end of the turn."""
        from pydantic_core import ValidationError

        plan = self._follower.plan
        tool = plan.functions.get(params.tool) if plan is not None else None
        if tool is None:
            return _response(f"{params.tool}: this program has no such tool", success=False)
        try:
            arguments = tool.schema.arguments(params.arguments)
        except ValidationError as error:
            return _response(complaint(tool.name, error), success=False)
        attempt = (params.model_extra or {}).get("attempt", 1)
        context = self._context(params.thread_id, params.turn_id, params.call_id, params.operation_id or "", attempt)
        run = self._follower.run
        span = start_span("oarlock.tool", run._span if run is not None else None, tool=tool.name)
        problem: str | None = "the host was closed"
        try:
            with within(span):
                response = await self._run(tool, context, arguments)
            problem = None if response.success else "the tool gave an error"
            return response
        finally:
            end_span(span, error=problem, task_id=context.task_id, operation_id=context.operation_id)

    async def _run(
        self, tool: FunctionTool[Any, Any, Any], context: ToolContext[Any], arguments: Mapping[str, Any]
    ) -> protocol.DynamicToolCallResponse:
        try:
            with anyio.fail_after(tool.timeout):
                value = await self._call(tool, tool.fn, context, arguments)
            return _result(tool, value)
        except ToolError as error:
            return _response(str(error), success=False)
        except TimeoutError:
            log.warning("tool %s took longer than %s s", tool.name, tool.timeout)
            return _response(f"{tool.name} took too long and was stopped", success=False)
        except Exception:
            log.exception("tool %s raised", tool.name)
            return _response(f"{tool.name} failed inside; its error was logged for the operator", success=False)

    async def _call(
        self, tool: FunctionTool[Any, Any, Any], fn: Any, context: ToolContext[Any], arguments: Mapping[str, Any]
    ) -> Any:
        positional = [context] if tool.schema.takes_context else []
        limiter = self._follower.host._opened().limiter
        if _is_async(fn):
            async with limiter:
                return await fn(*positional, **arguments)
        # Abandoned when it takes too long: a thread cannot be stopped, but the turn must go on.
        work = partial(fn, *positional, **arguments)
        value = await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)
        return await value if inspect.isawaitable(value) else value

    def _context(self, thread: str, turn: str, call: str, operation: str, attempt: int) -> ToolContext[Any]:
        async def progress(text: str) -> None:
            self._follower.emit(ToolProgress(seq=self._follower.seq, item_id=call, text=text))

        return ToolContext(
            deps=self.deps,
            task_id=self._follower.task_id,
            thread_id=thread,
            turn_id=turn,
            call_id=call,
            operation_id=operation,
            attempt=max(attempt, 1),
            progress=progress,
        )


def _is_async(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004


async def _called(policy: Policy, call: Pending) -> Any:
    """One that is no coroutine runs in a thread: it may look something up, and its time limit has to act."""
    if _is_async(policy):
        decision = policy(call)
    else:
        decision = await anyio.to_thread.run_sync(policy, call, abandon_on_cancel=True)
    return await decision if inspect.isawaitable(decision) else decision


def _with_arguments(call: PendingFunction, arguments: Mapping[str, Any]) -> PendingFunction:
    from dataclasses import replace

    return replace(call, arguments=arguments)


def _result(tool: FunctionTool[Any, Any, Any], value: Any) -> protocol.DynamicToolCallResponse:
    parts = value if isinstance(value, list | tuple) and any(isinstance(part, Image) for part in value) else [value]
    items: list[protocol.DynamicToolCallOutputContentItem] = []
    for part in parts:
        if isinstance(part, Image):
            items.append(protocol.DynamicToolCallOutputContentItemInputImage(image_url=image_url(part)))
        else:
            text = part if isinstance(part, str) else _text(tool, part, is_whole=parts is not value)
            items.append(protocol.DynamicToolCallOutputContentItemInputText(text=text))
    return protocol.DynamicToolCallResponse(content_items=items, success=True)


def _text(tool: FunctionTool[Any, Any, Any], value: Any, *, is_whole: bool) -> str:
    if value is None:
        return "done"
    return text_of(tool.schema.dump(value) if is_whole else value)


def _response(text: str, *, success: bool) -> protocol.DynamicToolCallResponse:
    items: list[protocol.DynamicToolCallOutputContentItem] = [
        protocol.DynamicToolCallOutputContentItemInputText(text=text)
    ]
    return protocol.DynamicToolCallResponse(content_items=list(items), success=success)
