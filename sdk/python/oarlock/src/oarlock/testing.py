"""For tests of agents: a model that follows a script, a host that is gone afterwards, calls without a binary."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import anyio

from ._errors import ConfigError, ProviderError
from ._host import Host
from ._pending import PendingFunction
from ._providers import ModelCapabilities, ModelRequest, Offline
from ._tools import FunctionTool, ToolContext
from ._transports import ProcessTransport
from ._typing import JSON, D
from .providers import Replayer


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers with this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    tool: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Calls:
    """The model calls several tools at once."""

    calls: tuple[Call, ...]

    def __init__(self, *calls: Call) -> None:
        object.__setattr__(self, "calls", calls)


@dataclass(frozen=True, slots=True)
class Fail:
    """The provider refuses the request."""

    message: str = "the provider is down"


@dataclass(frozen=True, slots=True)
class Hang:
    """The model says nothing until the turn is stopped."""


@dataclass(frozen=True, slots=True)
class Hold:
    """The model says nothing until the event is set, and then goes on with the next step of the script."""

    until: anyio.Event


Step: TypeAlias = str | Say | Call | Calls | Fail | Hang | Hold | Callable[["Seen"], "Say | Call | Calls | Fail | str"]

_STEPS = (str, Say, Call, Calls, Fail, Hang, Hold)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as the model was shown it."""

    body: Mapping[str, JSON]

    @property
    def instructions(self) -> str:
        return str(self.body.get("instructions", ""))

    @property
    def tools(self) -> list[str]:
        return [str(tool.get("name", tool.get("type"))) for tool in self.body.get("tools", ())]

    @property
    def text(self) -> str:
        """All that was said, by everybody."""
        return "\n".join(_texts(self.body.get("input", ())))

    @property
    def last_user(self) -> str:
        said = [item for item in self.body.get("input", ()) if item.get("role") == "user"]
        return "\n".join(_texts(said[-1:]))

    @property
    def last_output(self) -> str:
        """The answer of the last tool."""
        outputs = [item for item in self.body.get("input", ()) if "output" in item]
        return "\n".join(_texts(outputs[-1:]))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for key in ("content", "text", "output") if key in value for text in _texts(value[key])]
    return [text for item in value for text in _texts(item)] if isinstance(value, list | tuple) else []


class ScriptedModel:
    """A model that follows a script: one step per request. A request beyond the script fails.

    model = ScriptedModel(Call("weather", {"city": "Utrecht"}), "Take the bicycle.")
    async with Host(provider=model) as host:
        ...
    assert "21 degrees" in model.seen[1].last_output
    model.assert_done()
    """

    def __init__(self, *steps: Step, id: str = "scripted") -> None:
        self.id = id
        self.seen: list[Seen] = []
        self._steps: list[Step] = []
        self._numbers = count(1)
        self._problems: list[str] = []
        self.add(*steps)

    def add(self, *steps: Step) -> None:
        """More of the script."""
        for step in steps:
            if not isinstance(step, _STEPS) and not callable(step):
                raise ConfigError(f"{step!r} is no step of a script; several calls in one answer are `Calls(…)`")
        self._steps += steps

    def assert_done(self) -> None:
        """Every step was used, and nothing was asked beyond the script."""
        problems = list(self._problems)
        if self._steps:
            problems.append(f"{len(self._steps)} steps were not used, the first is {self._steps[0]!r}")
        if problems:
            raise AssertionError("; ".join(problems))

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        seen = Seen(request.body)
        self.seen.append(seen)
        if not self._steps:
            self._problems.append(f"request {len(self.seen)} came after the end of the script")
            raise ProviderError(self._problems[-1])
        step = self._steps.pop(0)
        while isinstance(step, Hold):
            await step.until.wait()
            step = self._steps.pop(0) if self._steps else Fail("the script ends with a Hold")
        answer = step(seen) if callable(step) else step
        if isinstance(answer, Fail):
            raise ProviderError(answer.message)
        # Another program may have begun the turn with its own script: a call with an id that was there is no new one.
        taken = {item.get("call_id") for item in request.body.get("input") or ()}
        number = next(n for n in self._numbers if f"call_{n}_0" not in taken)
        yield {"type": "response.created", "response": {"id": f"resp_{number}", "status": "in_progress"}}
        if isinstance(answer, Hang):
            await anyio.sleep_forever()
        said = [answer] if not isinstance(answer, Calls) else list(answer.calls)
        output: list[Mapping[str, JSON]] = []
        for index, part in enumerate(said):
            events = _call(part, number, index) if isinstance(part, Call) else _message(part, number, index)
            for event in events:
                yield event
            output.append(events[-1]["item"])
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        response = {"id": f"resp_{number}", "status": "completed", "output": output, "usage": usage}
        yield {"type": "response.completed", "response": response}

    async def aclose(self) -> None:
        return None


def _message(answer: Any, number: int, index: int) -> list[dict[str, JSON]]:
    text = answer.text if isinstance(answer, Say) else str(answer)
    key = f"msg_{number}_{index}"
    item = {"type": "message", "id": key, "role": "assistant", "status": "in_progress", "content": []}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    place = {"item_id": key, "output_index": index, "content_index": 0}
    words = text.split(" ")
    pieces = [word if at == len(words) - 1 else word + " " for at, word in enumerate(words)]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({"type": "response.output_text.delta", **place, "delta": piece} for piece in pieces),
        {
            "type": "response.output_item.done",
            "output_index": index,
            "item": {**item, "status": "completed", "content": content},
        },
    ]


def _call(call: Call, number: int, index: int) -> list[dict[str, JSON]]:
    key = f"{number}_{index}"
    item = {"type": "function_call", "id": f"fc_{key}", "call_id": f"call_{key}", "name": call.tool}
    whole = {**item, "arguments": json.dumps(dict(call.arguments)), "status": "completed"}
    return [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": {**item, "arguments": "", "status": "in_progress"},
        },
        {"type": "response.output_item.done", "output_index": index, "item": whole},
    ]


@asynccontextmanager
async def offline_host(model: ScriptedModel | None = None, **options: Any) -> AsyncIterator[Host]:
    """A host with a store of its own, which is gone afterwards; with a script, or the model inside the binary."""
    async with Host(provider=model if model is not None else Offline(), **options) as host:
        yield host
    if model is not None:
        model.assert_done()


@asynccontextmanager
async def replay(path: str | Path, **options: Any) -> AsyncIterator[Host]:
    """A host whose model answers from a file of `oarlock.providers.Recorder`: a whole task again, without its model.

    A request that is not the one in the file fails the turn, and says what is different.
    """
    async with Host(provider=Replayer(path), **options) as host:
        yield host


class CrashPoints:
    """Kills the host or the runtimes of its tasks, once, when the program says that it has come to a step.

    Args:
        host: embedded in this program, and open
        victim: what is killed
        step: at which step
    """

    def __init__(self, host: Host, victim: Literal["host", "runtime"], step: str) -> None:
        transport = host._opened().transport
        if not isinstance(transport, ProcessTransport):
            raise ConfigError("CrashPoints: this program does not run the host; use a store of its own")
        self._host = transport.pid
        self._victim = victim
        self._step = step
        self.killed: list[int] = []
        """The processes that were."""

    def reach(self, step: str) -> None:
        """The program is at this step: in a tool, in a policy, in the script of a model, or between two requests."""
        if step != self._step or self.killed:
            return
        self.killed = [self._host] if self._victim == "host" else _children(self._host)
        for pid in self.killed:
            os.kill(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    tasks = Path(f"/proc/{parent}/task").glob("*/children")
    return [int(pid) for listed in tasks for pid in listed.read_text().split()]


def tool_context(deps: D, *, operation_id: str = "test-operation", attempt: int = 1) -> ToolContext[D]:
    """For calling a tool as a function, without a binary. What it says as progress is in `progress_of`."""
    return _NotingContext(deps, operation_id, attempt)


class _NotingContext(ToolContext[D]):
    __slots__ = ("said",)

    def __init__(self, deps: D, operation_id: str, attempt: int) -> None:
        super().__init__(deps=deps, operation_id=operation_id, attempt=attempt, progress=self._note)
        self.said: list[str] = []

    async def _note(self, text: str) -> None:
        self.said.append(text)


def progress_of(context: ToolContext[Any]) -> list[str]:
    """Texts that a tool passed to `ctx.progress`."""
    return context.said if isinstance(context, _NotingContext) else []


def pending(
    tool: FunctionTool[Any, Any, Any] | str, arguments: Mapping[str, JSON], *, deps: Any = None
) -> PendingFunction:
    """A call for unit tests of policies."""
    if isinstance(tool, FunctionTool):
        name, effects, checked = tool.name, tool.effects, tool.schema.plain(arguments)
    else:
        name, effects, checked = tool, "once", dict(arguments)
    return PendingFunction(
        operation_id="test-operation",
        task_id="test-task",
        thread_id="test-thread",
        turn_id="test-turn",
        arguments_digest="sha256:test",
        reason=None,
        outcome="not_started",
        allowed=frozenset({"approve", "reject", "defer", "replace", "respond"}),
        created_at=datetime.now(UTC),
        agent_path=("root",),
        deps=deps,
        tool=name,
        arguments=checked,
        effects=effects,
    )


__all__ = [
    "Call",
    "Calls",
    "CrashPoints",
    "Fail",
    "Hang",
    "Hold",
    "Say",
    "ScriptedModel",
    "Seen",
    "offline_host",
    "pending",
    "progress_of",
    "replay",
    "tool_context",
]
