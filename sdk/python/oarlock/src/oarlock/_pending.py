"""Calls that wait for a decision: a closed union for `match`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, cast

import oarlock_protocol as protocol

from ._decisions import Decision
from ._records import record
from ._typing import JSON, Effects

# Words of the wire, by the name of the decision they allow.
_ALLOWED = {
    "accept": "approve",
    "acceptForSession": "approve",
    "acceptWithExecpolicyAmendment": "approve",
    "acceptWithCommandOverride": "replace",
    "acceptWithArguments": "replace",
    "respond": "respond",
    "decline": "reject",
    "cancel": "reject",
    "reject": "reject",
    "retry": "retry",
}
_READ_ONLY_ACTIONS = {"read", "listFiles", "search"}


@record(kw_only=True)
class PendingBase:
    """The part that every waiting call has."""

    operation_id: str
    """The same in every process and after every restart."""
    task_id: str
    thread_id: str
    turn_id: str
    arguments_digest: str
    """Binds a decision to exactly what was shown."""
    reason: str | None
    outcome: Literal["not_started", "unknown"]
    """`unknown`: it was started, and nobody saw it finish."""
    allowed: frozenset[str]
    """Names of the decisions that are taken, in lower case."""
    created_at: datetime
    agent_path: tuple[str, ...]
    deps: Any = None

    def describe(self) -> str:
        """One line for people."""
        return self.operation_id


@record(kw_only=True)
class PendingCommand(PendingBase):
    """A command of the agent."""

    command: str
    """One shell-quoted line."""
    cwd: str
    actions: Sequence[Mapping[str, JSON]]
    """The runtime's reading of each part of the command: `{"type": "read", …}`, `listFiles`, `search`, `unknown`."""

    def is_read_only(self) -> bool:
        """Whether the runtime read it as nothing but looking. False where it is not known."""
        return bool(self.actions) and all(action.get("type") in _READ_ONLY_ACTIONS for action in self.actions)

    def describe(self) -> str:
        return self.command


@record(kw_only=True)
class PendingFileChange(PendingBase):
    """A patch of the agent."""

    changes: Sequence[Mapping[str, JSON]]

    def describe(self) -> str:
        return "change " + ", ".join(str(change.get("path", "a file")) for change in self.changes)


@record(kw_only=True)
class PendingFunction(PendingBase):
    """A call of a function tool."""

    tool: str
    arguments: Mapping[str, JSON]
    """Validated where the tool is known to this process."""
    effects: Effects

    def describe(self) -> str:
        return f"{self.tool}({_shown(self.arguments)})"


@record(kw_only=True)
class PendingTool(PendingBase):
    """A call of another built-in, or of an MCP tool."""

    tool: str
    server: str | None
    arguments: Mapping[str, JSON]

    def describe(self) -> str:
        name = f"{self.server}.{self.tool}" if self.server is not None else self.tool
        return f"{name}({_shown(self.arguments)})"


@record(kw_only=True)
class PendingPermissions(PendingBase):
    """The agent asks for permissions."""

    permissions: Mapping[str, JSON]

    def describe(self) -> str:
        return f"permissions {json.dumps(self.permissions)}"


@record(kw_only=True)
class PendingUserInput(PendingBase):
    """The agent, or an MCP server, has questions."""

    questions: Sequence[Mapping[str, JSON]]

    def describe(self) -> str:
        return "; ".join(str(question.get("question", "a question")) for question in self.questions)


Pending: TypeAlias = (
    PendingCommand | PendingFileChange | PendingFunction | PendingTool | PendingPermissions | PendingUserInput
)
Policy: TypeAlias = Callable[[Any], "Decision | Awaitable[Decision | None] | None"]


def _shown(arguments: Mapping[str, JSON]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in arguments.items())


def turn_of(operation: protocol.Operation) -> str:
    """An operation's id is `thread:turn:call`, and ids of threads and turns have no colon."""
    parts = operation.operation_id.split(":")
    return parts[1] if len(parts) > 2 else ""


def _command(arguments: Mapping[str, JSON]) -> str:
    words = arguments.get("command", arguments.get("cmd", ""))
    if isinstance(words, str):
        return words
    match list(words):
        case [_, "-lc" | "-c", str(script)]:
            return script
        case other:
            return shlex.join(str(word) for word in other)


def _changes(arguments: Mapping[str, JSON]) -> Sequence[Mapping[str, JSON]]:
    changes = arguments.get("changes", ())
    if isinstance(changes, Mapping):
        return [{"path": path, **(change if isinstance(change, Mapping) else {})} for path, change in changes.items()]
    return [change for change in changes if isinstance(change, Mapping)]


def _of_server(operation: protocol.Operation) -> tuple[str | None, str]:
    """The MCP server and its name of the tool; models know it as `mcp__SERVER__TOOL`."""
    match operation.tool.split("__", 2):
        case ["mcp", server, tool] if operation.namespace is None:
            return server, tool
        case _:
            return operation.namespace, operation.tool


def pending_of(operation: protocol.Operation, *, task_id: str | None = None, deps: Any = None) -> Pending:
    """An operation of the host as one of the union."""
    arguments = operation.arguments if isinstance(operation.arguments, Mapping) else {"input": operation.arguments}
    allowed = {_ALLOWED[word] for word in operation.available_decisions if word in _ALLOWED} | {"defer"}
    if operation.type == "userInput":
        allowed.add("answer")
    if operation.type == "permission":
        allowed.add("grant")
    base: dict[str, Any] = {
        "operation_id": operation.operation_id,
        "task_id": task_id or operation.task_id,
        "thread_id": operation.thread_id,
        "turn_id": turn_of(operation),
        "arguments_digest": operation.arguments_digest,
        "reason": operation.reason,
        "outcome": "unknown" if operation.state == "unknown" else "not_started",
        "allowed": frozenset(allowed),
        "created_at": datetime.fromtimestamp(operation.created_at_ms / 1000, UTC),
        "agent_path": tuple(operation.agent_path),
        "deps": deps,
    }
    match operation.type:
        case "command":
            return PendingCommand(
                command=_command(arguments),
                cwd=str(arguments.get("cwd") or arguments.get("workdir") or ""),
                actions=tuple(arguments.get("commandActions") or ()),
                **base,
            )
        case "fileChange":
            return PendingFileChange(changes=_changes(arguments), **base)
        case "function":
            effects = cast(Effects, operation.effects)
            return PendingFunction(tool=operation.tool, arguments=arguments, effects=effects, **base)
        case "permission":
            return PendingPermissions(permissions=arguments.get("permissions", arguments), **base)
        case "userInput" | "elicitation":
            return PendingUserInput(questions=tuple(arguments.get("questions", (arguments,))), **base)
        case _:
            server, tool = _of_server(operation)
            return PendingTool(tool=tool, server=server, arguments=arguments, **base)
