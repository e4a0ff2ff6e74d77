"""Programs as users write them. Not run: mypy and pyright must see these types, and these mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never, assert_type

from pydantic import BaseModel

from oarlock import (
    Agent,
    Approve,
    Completed,
    Decision,
    Event,
    Failed,
    FunctionTool,
    Host,
    Interrupted,
    Paused,
    Pending,
    PendingCommand,
    PendingFunction,
    Run,
    SyncHost,
    SyncRun,
    Task,
    TextDelta,
    ToolContext,
    ToolPending,
    tool,
)


class City(BaseModel):
    name: str


@dataclass
class Deps:
    orders: dict[str, int]


@dataclass
class OtherDeps:
    pass


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather."""
    return city


@tool
async def refund(ctx: ToolContext[Deps], order: str, cents: int) -> str:
    """Refund part of an order."""
    assert_type(ctx.deps, Deps)
    return f"{ctx.deps.orders[order]}"


@refund.policy
def desk_limit(call: PendingFunction) -> Approve | None:
    assert_type(call.arguments, Mapping[str, Any])
    return Approve() if call.arguments["cents"] < 2_000 else None


any_weather: FunctionTool[object, ..., str] = weather
assert_type(weather("Utrecht"), str)
desk = Agent(name="desk", deps_type=Deps, tools=[refund, weather], tool_set="replace")
assert_type(desk, Agent[Deps])
weather(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent(nmae="desk")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


async def results(deps: Deps) -> None:
    async with Host(store="runs.db") as host:
        assert_type(host.run(desk, "hello", deps=deps), Run[str])
        assert_type(host.run(desk, "hello", deps=deps, output=City), Run[City])
        result = await host.run(desk, "hello", deps=deps, output=City)
        assert_type(result, Completed[City] | Paused | Interrupted | Failed)
        assert_type(result.unwrap(), City)
        if result.status == "completed":
            assert_type(result.output, City)
        elif result.status == "paused":
            assert_type(result.pending, tuple[Pending, ...])
        task = await host.start(desk, deps=deps, task_id="A-17", if_exists="open")
        assert_type(task, Task[Deps])
        assert_type(await host.open("A-17"), Task[None])
        assert_type(await host.open("A-17", desk, deps=deps), Task[Deps])
        assert_type((await task.run("hello", model="gpt-5", sandbox="read-only")).unwrap(), str)
        task.run("hello", modle="gpt-5")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
        host.run(desk, "hello", deps=OtherDeps())  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


async def events(run: Run[str]) -> None:
    async for event in run:
        assert_type(event, Event)
        match event:
            case TextDelta(text=text):
                assert_type(text, str)
            case ToolPending(call=PendingCommand(command=command)):
                assert_type(command, str)
            case _:
                pass
    async for chunk in run.text_deltas():
        assert_type(chunk, str)


def exhaustive(result: Completed[str] | Paused | Interrupted | Failed) -> str:
    match result:
        case Completed(output=output):
            return output
        case Paused(pending=pending):
            return ", ".join(call.describe() for call in pending)
        case Interrupted(reason=reason):
            return reason
        case Failed(error=error):
            return str(error)
        case _:
            assert_never(result)


def policy(call: Pending) -> Decision | None:
    return Approve() if isinstance(call, PendingCommand) and call.is_read_only() else None


def synchronous(deps: Deps) -> None:
    with SyncHost() as host:
        assert_type(host.run(desk, "hello", deps=deps, output=City), SyncRun[City])
        assert_type(host.run(desk, "hello", deps=deps).result().unwrap(), str)
