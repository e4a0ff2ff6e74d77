"""Tools: Python functions that the model can call, and the runtime's own by name."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Concatenate, Generic, Protocol, cast, overload

from ._errors import ConfigError
from ._pending import Policy
from ._schema import FunctionSchema
from ._typing import DF, JSON, D, D_co, D_contra, Effects, P, R


class ToolContext(Generic[D_co]):
    """The call that a tool answers. Injected into a first parameter of this type."""

    __slots__ = ("_deps", "_progress", "attempt", "call_id", "operation_id", "task_id", "thread_id", "turn_id")

    def __init__(
        self,
        *,
        deps: D_co,
        task_id: str = "",
        thread_id: str = "",
        turn_id: str = "",
        call_id: str = "",
        operation_id: str = "",
        attempt: int = 1,
        progress: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self.task_id = task_id
        self.thread_id = thread_id
        self.turn_id = turn_id
        self.call_id = call_id
        self.operation_id = operation_id
        """The same in every attempt: use it as the idempotency key downstream."""
        self.attempt = attempt
        self._deps = deps
        self._progress = progress

    @property
    def deps(self) -> D_co:
        """The value of `deps=` of the task."""
        return self._deps

    async def progress(self, text: str) -> None:
        """Notifies followers of the turn with a `ToolProgress` event."""
        if self._progress is not None:
            await self._progress(text)


class Tool(Generic[D_contra]):
    """Something the model can call."""

    name: str
    approval: Policy | None = None


class BuiltinTool(Tool[object]):
    """A tool of the runtime. Used as a class, or as an instance with a policy."""

    tool_name: ClassVar[str] = ""

    def __init__(self, *, approval: Policy | None = None) -> None:
        self.name = type(self).tool_name
        self.approval = approval

    @classmethod
    def where(cls, *, approval: Policy) -> BuiltinTool:
        """The same tool, asked about by this policy."""
        return cls(approval=approval)


class FunctionTool(Tool[DF], Generic[DF, P, R]):
    """A Python function as a tool; made by `@tool`. A subclass with a method `run` is a tool with state."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        approval: Policy | None = None,
        effects: Effects = "once",
        timeout: float | None = None,
        strict: bool = True,
        names: Mapping[str, Any] | None = None,
    ) -> None:
        fn = fn if fn is not None else getattr(self, "run", None)
        if fn is None:
            raise ConfigError(f"{type(self).__name__} has no method `run`")
        own = getattr(fn, "__name__", None) if type(self) is FunctionTool else _snake(type(self).__name__)
        self.name = name or own or _snake(type(fn).__name__)
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.name):
            raise ConfigError(f"tool {self.name!r}: a name has 1 to 64 letters, digits, `_` or `-`")
        if effects not in ("readonly", "idempotent", "once"):
            raise ConfigError(f"tool {self.name}: effects: expected readonly, idempotent or once, not {effects!r}")
        self.fn = fn
        self.approval = approval
        self.effects: Effects = effects
        self.timeout = timeout
        self.strict = strict
        self.schema = FunctionSchema(fn, context=ToolContext, name=self.name, strict=strict, names=names or {})
        self.description = self.schema.description or (
            inspect.getdoc(type(self)) or "" if type(self) is not FunctionTool else ""
        )
        self.input_schema: Mapping[str, JSON] = self.schema.input_schema
        self.output_schema: Mapping[str, JSON] | None = self.schema.output_schema
        self.reconciler: Callable[..., Any] | None = None
        self.__doc__ = inspect.getdoc(fn)
        self.__name__ = self.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function itself, as in a test."""
        return cast(R, self.fn(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<tool {self.name}: {self.effects}>"

    def policy(self, fn: Policy) -> Policy:
        """Decorates the policy that is asked first about calls of this tool."""
        self.approval = fn
        return fn

    def reconcile(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Decorates a function that finds out what became of a call whose outcome is unknown.

        It takes what the tool takes, and gives a decision (`Respond`, `Retry`, `Reject`), or None to ask a person.
        """
        self.reconciler = fn
        return fn

    def schema_digest(self) -> str:
        """Of name, schema and effects: what a pending call relies on."""
        facts = {"name": self.name, "inputSchema": self.input_schema, "effects": self.effects}
        return "sha256:" + hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class ToolDecorator(Protocol):
    """`@tool(...)`."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[ToolContext[D], P], R], /
    ) -> FunctionTool[D, Concatenate[ToolContext[D], P], R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> FunctionTool[object, P, R]: ...


@overload
def tool(fn: Callable[Concatenate[ToolContext[D], P], R], /) -> FunctionTool[D, Concatenate[ToolContext[D], P], R]: ...
@overload
def tool(fn: Callable[P, R], /) -> FunctionTool[object, P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    approval: Policy | None = None,
    effects: Effects = "once",
    timeout: float | None = None,
    strict: bool = True,
) -> ToolDecorator: ...
def tool(fn: Any = None, /, **options: Any) -> Any:
    """Makes a function a tool: its schema comes from the signature, its description from the docstring.

    Args:
        fn: the function, sync or async; a first parameter of type `ToolContext` is injected
        **options: `name`, `approval` (a policy), `effects` (`readonly` does not pause; `once`, the default, never runs
            twice), `timeout` in seconds, `strict` (unknown arguments are refused)
    """
    # Annotations may name what is local to the function in which the tool is declared.
    names = sys._getframe(1).f_locals
    if fn is not None:
        return FunctionTool(fn, names=names)
    return lambda function: FunctionTool(function, names=names, **options)
