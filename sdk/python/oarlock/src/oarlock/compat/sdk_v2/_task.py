"""The prototype's task: a turn is iterated until it is over or something is pending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._decisions import Approve, Decision, Defer, Reject, Replace
from ..._errors import OarlockError
from ..._results import Paused
from ..._run import Run
from ..._task import Task as CoreTask
from ._pending import (
    PendingCommandExecution,
    PendingFunctionToolCall,
    PendingToolCall,
    RejectDecision,
    from_core,
    respond,
    to_core,
)
from ._tools import AdaptedFunction

if TYPE_CHECKING:
    from ._agent import LocalSession, OwnedHost


@dataclass(slots=True)
class JsonRpcNotification:
    """Something the runtime said."""

    method: str
    params: dict[str, Any]


class Task:
    """Made by `Agent.start`, ended by `close`."""

    def __init__(
        self, session: LocalSession, task: CoreTask[None], host: OwnedHost, functions: Mapping[str, AdaptedFunction]
    ) -> None:
        self.session = session
        self.thread_id = task._follower.thread_id
        self.function_tools = {name: function.wrapped for name, function in functions.items()}
        self._task = task
        self._host = host
        self._pending: list[PendingToolCall] = []
        self._is_over = True
        # Also between two iterations: what follows a decision must not be lost.
        self._heard: asyncio.Queue[JsonRpcNotification | None] = asyncio.Queue()
        task._follower.on_notification = self._hear

    def _hear(self, method: str, params: Any) -> None:
        self._heard.put_nowait(JsonRpcNotification(method, dict(params)))

    async def close(self) -> None:
        """Ends the host; a folder that the session made is removed."""
        try:
            await self._host.stop()
        finally:
            await self.session.stop()

    async def run(self, user_text: str) -> AsyncIterator[JsonRpcNotification]:
        """A new turn, until it is over or something is pending."""
        if self.pending_tool_calls():
            raise RuntimeError("cannot start a new turn while tool calls are pending")
        self._is_over = False
        async for notification in self._follow(self._task.run(user_text)):
            yield notification

    async def resume(self) -> AsyncIterator[JsonRpcNotification]:
        """The rest of a turn after a decision. Nothing where the turn is over."""
        if self.pending_tool_calls():
            raise RuntimeError("cannot resume while tool calls are pending")
        if self._is_over:
            return
        async for notification in self._follow(self._task.resume()):
            yield notification

    async def _follow(self, run: Run[str]) -> AsyncIterator[JsonRpcNotification]:
        async def wait() -> None:
            try:
                await run
            finally:
                self._heard.put_nowait(None)

        waiting = asyncio.ensure_future(wait())
        try:
            while (notification := await self._heard.get()) is not None:
                yield notification
        finally:
            if not waiting.done():
                waiting.cancel()
        try:
            await waiting
        except OarlockError as error:
            raise RuntimeError(str(error)) from error
        result = await run
        if isinstance(result, Paused):
            known = {call.request_id: call for call in self._pending if not call.resolved}
            self._pending = [known.get(call.operation_id) or from_core(call) for call in result.pending]
        else:
            self._is_over = True
            self._pending = []

    async def collect_text(self, user_text: str) -> str:
        """The agent's text of a new turn, until it is over or something is pending."""
        chunks: list[str] = []
        async for event in self.run(user_text):
            if event.method == "item/agentMessage/delta":
                chunks.append(str(event.params.get("delta", "")))
        return "".join(chunks)

    def pending_tool_calls(self) -> list[PendingToolCall]:
        """Calls that wait."""
        return [call for call in self._pending if not call.resolved]

    async def resolve_tool_call(self, tool_call: PendingToolCall) -> None:
        """Lets the call run."""
        await self.approve(tool_call)

    async def apply_tool_decision(self, tool_call: PendingToolCall) -> bool:
        """Asks the tool's policy again. False where it leaves the call pending."""
        plan = self._task._follower.plan
        assert plan is not None
        name = getattr(tool_call.core, "tool", "exec_command")
        for policy in plan.policies_for(name):
            given: Any = policy(tool_call.core)
            decision = await given if asyncio.iscoroutine(given) else given
            if isinstance(decision, Defer):
                return False
            if decision is not None:
                await self._decide(tool_call, decision)
                return True
        return False

    async def approve(self, tool_call: PendingToolCall, *, for_session: bool = False) -> None:
        scope = for_session and not isinstance(tool_call, PendingFunctionToolCall)
        await self._decide(tool_call, Approve("session" if scope else "call"))

    async def reject(self, tool_call: PendingToolCall, *, cancel: bool = False) -> None:
        decision = to_core(RejectDecision(cancel), tool_call)
        assert isinstance(decision, Reject)
        await self._decide(tool_call, decision)

    async def replace_command(self, tool_call: PendingCommandExecution, command: Sequence[str]) -> None:
        await self._decide(tool_call, Replace(command=list(command)))
        tool_call.command = " ".join(command)

    async def run_function_tool(
        self, tool_call: PendingFunctionToolCall, *, arguments: Mapping[str, Any] | None = None
    ) -> None:
        await self._decide(tool_call, Approve() if arguments is None else Replace(arguments=dict(arguments)))

    async def submit_tool_result(
        self, tool_call: PendingFunctionToolCall, result: Any, *, success: bool = True
    ) -> None:
        """Runs nothing and gives this result."""
        await self._decide(tool_call, respond(result, success))

    async def _decide(self, tool_call: PendingToolCall, decision: Decision) -> None:
        await self._task.decide(tool_call.core, decision)
        tool_call.resolved = True
