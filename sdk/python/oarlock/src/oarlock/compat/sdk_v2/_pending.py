"""The prototype's decisions and pending calls, and how they become ours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from ... import _decisions as core
from ... import _pending as waiting


class ToolDecision:
    """The base of all decisions."""


@dataclass(frozen=True, slots=True)
class ApproveDecision(ToolDecision):
    """Run it; with `for_session`, also the same thing again."""

    for_session: bool = False


@dataclass(frozen=True, slots=True)
class RejectDecision(ToolDecision):
    """Do not run it; with `cancel`, the turn ends too."""

    cancel: bool = False


@dataclass(frozen=True, slots=True)
class DeferDecision(ToolDecision):
    """Leave it pending."""


@dataclass(frozen=True, slots=True)
class RunDecision(ToolDecision):
    """Run a function tool, with other arguments where they are given."""

    arguments: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReplaceCommandDecision(ToolDecision):
    """Run this command instead."""

    command: Sequence[str]


@dataclass(frozen=True, slots=True)
class RespondDecision(ToolDecision):
    """Run nothing and give this result."""

    result: Any
    success: bool = True


class Resolver(Protocol):
    """What a pending call needs of its task."""

    async def resolve_tool_call(self, tool_call: PendingToolCall) -> None: ...


@dataclass(slots=True, kw_only=True)
class PendingToolCall:
    """A call that waits. `await call(task)` lets it run."""

    kind: ClassVar[str] = "tool"
    request_id: str
    thread_id: str
    turn_id: str
    reason: str | None = None
    resolved: bool = False
    core: waiting.Pending = field(repr=False)

    async def __call__(self, task: Resolver) -> None:
        await task.resolve_tool_call(self)

    def describe(self) -> str:
        """One line for people."""
        return f"Run {self.core.describe()}"


@dataclass(slots=True, kw_only=True)
class PendingCommandExecution(PendingToolCall):
    """A command."""

    kind: ClassVar[str] = "command_execution"
    item_id: str
    approval_id: str | None = None
    command: str | None = None
    cwd: str | None = None
    command_actions: list[dict[str, Any]] | None = None

    def describe(self) -> str:
        return f"Approve command: {self.command}" if self.command else f"Approve command execution: {self.reason or ''}"


@dataclass(slots=True, kw_only=True)
class PendingFileChange(PendingToolCall):
    """A patch."""

    kind: ClassVar[str] = "file_change"
    item_id: str
    grant_root: str | None = None

    def describe(self) -> str:
        return f"Approve file changes: {self.reason or self.core.describe()}"


@dataclass(slots=True, kw_only=True)
class PendingFunctionToolCall(PendingToolCall):
    """A call of a function tool."""

    kind: ClassVar[str] = "function_tool"
    call_id: str
    tool_name: str
    arguments: dict[str, Any]

    def describe(self) -> str:
        return f"Run function tool {self.tool_name}({self.arguments})"


@dataclass(slots=True, kw_only=True)
class PendingBuiltinToolCall(PendingToolCall):
    """A call of another tool of the runtime whose policy left it open."""

    kind: ClassVar[str] = "builtin_tool"
    tool_name: str
    arguments: dict[str, Any]


def from_core(call: waiting.Pending) -> PendingToolCall:
    item_id = call.operation_id.split(":")[-1]
    base: dict[str, Any] = {
        "request_id": call.operation_id,
        "thread_id": call.thread_id,
        "turn_id": call.turn_id,
        "reason": call.reason,
        "core": call,
    }
    match call:
        case waiting.PendingCommand():
            actions = [dict(action) for action in call.actions] or None
            return PendingCommandExecution(
                item_id=item_id, command=call.command, cwd=call.cwd or None, command_actions=actions, **base
            )
        case waiting.PendingFileChange():
            return PendingFileChange(item_id=item_id, **base)
        case waiting.PendingFunction():
            return PendingFunctionToolCall(call_id=item_id, tool_name=call.tool, arguments=dict(call.arguments), **base)
        case waiting.PendingTool():
            return PendingBuiltinToolCall(tool_name=call.tool, arguments=dict(call.arguments), **base)
        case _:
            return PendingToolCall(**base)


def to_core(decision: ToolDecision | None, call: PendingToolCall) -> core.Decision | None:
    """Our decision. Raises TypeError for one that this kind of call does not take."""
    is_function = isinstance(call, PendingFunctionToolCall)
    match decision:
        case None:
            return None
        case DeferDecision():
            return core.Defer()
        case ApproveDecision(for_session=for_session):
            return core.Approve("session" if for_session and not is_function else "call")
        case RejectDecision(cancel=cancel):
            word = "canceled" if cancel else "rejected"
            name = call.tool_name if isinstance(call, PendingFunctionToolCall) else "this call"
            return core.Reject(f"{name} was {word} by the host", end_turn=cancel)
        case ReplaceCommandDecision(command=command):
            if not isinstance(call, PendingCommandExecution):
                raise TypeError("ReplaceCommandDecision is for commands only")
            return core.Replace(command=list(command))
        case RunDecision(arguments=arguments):
            if not is_function:
                raise TypeError("RunDecision is for function tools only")
            return core.Approve() if arguments is None else core.Replace(arguments=dict(arguments))
        case RespondDecision(result=result, success=success):
            if not is_function:
                raise TypeError("RespondDecision is for function tools only")
            return respond(result, success)
        case _:
            raise TypeError(f"{type(decision).__name__} is not a decision")


def respond(result: Any, success: bool) -> core.Respond:
    """Text as it is, the rest as readable JSON."""
    if isinstance(result, str):
        return core.Respond(result, success)
    try:
        return core.Respond(json.dumps(result, indent=2, sort_keys=True), success)
    except TypeError as error:
        return core.Respond(f"the result cannot be written as JSON: {error}", success=False)
