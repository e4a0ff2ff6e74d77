"""Function tools with a real host: what the model is shown, and what becomes of what it calls."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import anyio
import pytest
from pydantic import BaseModel

from oarlock import Agent, Approve, Image, RuntimeMismatch, ToolContext, ToolError, tool
from oarlock.events import ToolProgress
from oarlock.testing import Call, Calls, ScriptedModel, offline_host

pytestmark = pytest.mark.anyio


class Weather(BaseModel):
    city: str
    degrees: int


@tool(effects="readonly")
def weather(city: str) -> Weather:
    """Today's weather in a city."""
    return Weather(city=city, degrees=21)


@tool(effects="readonly")
async def slowly(ctx: ToolContext[str], steps: int) -> str:
    """Works in steps."""
    for step in range(steps):
        await ctx.progress(f"step {step}")
    return f"{ctx.deps}: {steps} steps as {ctx.operation_id.rsplit(':', 1)[-1]}"


@tool(effects="readonly")
def broken() -> str:
    """Always fails."""
    raise RuntimeError("the password is 123456")


@tool(effects="readonly")
def refuses() -> str:
    """Fails politely."""
    raise ToolError("closed on Sundays")


@tool(effects="readonly", timeout=0.2)
async def forever() -> str:
    """Takes too long."""
    await anyio.sleep_forever()
    return "never"


@tool(effects="readonly")
def picture() -> Image:
    """Gives a picture."""
    return Image(b"\x89PNG\r\n\x1a\n")


def agent(*tools: object) -> Agent[str]:
    return Agent(name="tools", tools=tools, tool_set="replace")  # type: ignore[arg-type]


async def test_a_tool_answers_the_model() -> None:
    model = ScriptedModel(Call("weather", {"city": "Utrecht"}), "Take the bicycle.")
    async with offline_host(model) as host:
        result = await host.run(agent(weather), "Shall I cycle?", timeout=60)
    assert result.unwrap() == "Take the bicycle."
    assert model.seen[0].tools == ["weather"]
    assert '"degrees": 21' in model.seen[1].last_output


async def test_context_and_progress() -> None:
    model = ScriptedModel(Call("slowly", {"steps": 2}), "done")
    async with offline_host(model) as host:
        run = host.run(agent(slowly), "go", deps="desk", timeout=60)
        events = [event async for event in run]
    assert [event.text for event in events if isinstance(event, ToolProgress)] == ["step 0", "step 1"]
    assert model.seen[1].last_output == "desk: 2 steps as call_1_0"


async def test_wrong_arguments_are_answered_in_pydantics_words() -> None:
    model = ScriptedModel(Call("weather", {"town": 7}), "sorry")
    async with offline_host(model) as host:
        assert (await host.run(agent(weather), "go", timeout=60)).status == "completed"
    assert "city: Field required" in model.seen[1].last_output
    assert "town: Extra inputs are not permitted" in model.seen[1].last_output


async def test_exceptions_are_answers_and_tracebacks_are_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(Calls(Call("broken"), Call("refuses"), Call("forever")), "sorry")
    with caplog.at_level(logging.WARNING, "oarlock"):
        async with offline_host(model) as host:
            assert (await host.run(agent(broken, refuses, forever), "go", timeout=60)).status == "completed"
    shown = model.seen[1].text
    assert "broken failed inside" in shown
    assert "closed on Sundays" in shown
    assert "forever took too long" in shown
    assert "123456" not in shown
    assert "the password is 123456" in caplog.text


async def test_pictures_are_passed_on() -> None:
    model = ScriptedModel(Call("picture"), "seen")
    async with offline_host(model) as host:
        assert (await host.run(agent(picture), "go", timeout=60)).status == "completed"
    assert "data:image/png;base64,iVBORw0KGgo=" in str(model.seen[1].body)


@dataclass
class Ledger:
    paid: list[tuple[str, int]] = field(default_factory=list)


@tool
def refund(ctx: ToolContext[Ledger], order: str, cents: int) -> str:
    """Refund part of an order."""
    ctx.deps.paid.append((order, cents))
    return f"paid {cents}"


@refund.policy
def desk_limit(call: object) -> Approve | None:
    arguments = getattr(call, "arguments")  # noqa: B009
    return Approve() if arguments["cents"] < 2_000 else None


@pytest.mark.usefixtures("needs_provides")
async def test_tools_are_typed_by_what_they_need() -> None:
    model = ScriptedModel("hello")
    async with offline_host(model) as host:
        desk: Agent[Ledger] = Agent(name="desk", deps_type=Ledger, tools=[refund], tool_set="replace")
        assert (await host.run(desk, "hello", deps=Ledger(), timeout=60)).unwrap() == "hello"


async def test_a_host_that_cannot_ask_first_is_refused() -> None:
    async with offline_host() as host:
        host._opened().features = frozenset()
        with pytest.raises(RuntimeMismatch, match="cannot ask before refund runs"):
            await host.start(Agent(name="desk", tools=[refund]), deps=Ledger())
