"""What is written and read without the generated models says the same as they do."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import oarlock_protocol as protocol
import pytest

from oarlock import Agent, Image, Limits, Skill, tool
from oarlock._events import events_of
from oarlock._host import _agent_params, _budget_params
from oarlock._inputs import to_user_input
from oarlock._plan import plan_agent
from oarlock._task import _turn_settings
from oarlock._wire import INITIALIZE, encoded, greeting
from oarlock.events import ItemCompleted, ItemStarted, Raw, TurnFailed
from oarlock.tools import ExecCommand

PACKAGE = Path(__file__).parent.parent
MESSAGE = {"type": "agentMessage", "id": "i1", "text": "hello", "phase": None, "memoryCitation": None}


@tool
def refund(order: str, cents: int) -> str:
    """Refund part of an order."""
    return f"{cents} of {order}"


AGENT = Agent(
    name="desk",
    model="m",
    instructions="Be kind.",
    base_instructions="You work at a desk.",
    tools=[refund, ExecCommand],
    tool_set="replace",
    settings={"model_reasoning_effort": "low"},
    limits=Limits(usd=1.5, tokens=1_000),
)


def unknown(model: Any, path: str = "") -> Iterator[str]:
    """Fields that the protocol does not have."""
    if isinstance(model, protocol.WireModel):
        yield from (f"{path}.{name}" for name in model.model_extra or {})
        for name in type(model).model_fields:
            yield from unknown(getattr(model, name), f"{path}.{name}")
    elif isinstance(model, list):
        for item in model:
            yield from unknown(item, path)


@pytest.mark.parametrize(
    ("form", "wire"),
    [
        (protocol.InitializeParams, INITIALIZE),
        (
            protocol.ThreadStartParams,
            {"threadId": "t", "threadSource": "desk", **_agent_params(plan_agent(AGENT)), **_budget_params(AGENT)},
        ),
        (protocol.ThreadResumeParams, {"threadId": "t", **_agent_params(plan_agent(AGENT))}),
        (
            protocol.TurnStartParams,
            {
                "threadId": "t",
                "turnId": "u",
                "inputId": "i",
                "input": to_user_input(
                    ["look", Image("https://example.com/a.png"), Image(Path(__file__)), Skill("draw")]
                ),
                "outputSchema": {"type": "object"},
                **_turn_settings({"model": "m", "effort": "low", "sandbox": "read-only", "cwd": "/work"}),
            },
        ),
        (
            protocol.TurnSteerParams,
            {"threadId": "t", "expectedTurnId": "u", "inputId": "i", "input": to_user_input("more")},
        ),
    ],
)
def test_what_is_written_by_hand_is_what_the_protocol_has(
    form: type[protocol.WireModel], wire: Mapping[str, Any]
) -> None:
    plain = json.loads(encoded(wire))
    model = form.from_wire(plain)
    assert list(unknown(model)) == []
    assert model.to_wire() == plain


def test_the_greeting_is_two_lines_of_the_protocol() -> None:
    first, second, rest = greeting().split(b"\n")
    request = json.loads(first)
    assert (request["id"], json.loads(second), rest) == (1, {"method": "initialized"}, b"")
    assert isinstance(protocol.parse_message("clientRequest", request), protocol.InitializeParams)


def test_values_that_are_no_json_are_written_or_named() -> None:
    spec = protocol.PlacementSpec(backend="local")
    assert json.loads(encoded({"place": spec, "path": Path("/a")})) == {"place": {"backend": "local"}, "path": "/a"}
    with pytest.raises(TypeError, match="object is not JSON"):
        encoded({"what": object()})


def test_the_item_of_an_event_is_made_when_somebody_looks() -> None:
    [event] = events_of(3, "item/completed", {"threadId": "t", "turnId": "u", "item": MESSAGE})
    assert isinstance(event, ItemCompleted)
    assert event.message() == ("i1", "hello")
    assert isinstance(event.item, protocol.ThreadItemAgentMessage)
    assert event.item is event.item
    made = ItemCompleted(seq=3, item=event.item)
    assert (made, hash(made) == hash(event), made.message()) == (event, True, ("i1", "hello"))
    assert event.to_json() == {"type": "item_completed", "seq": 3, "item": MESSAGE}
    assert copy.deepcopy(event) == event == dataclasses.replace(event, seq=3)
    assert not hasattr(event, "text")
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.seq = 4  # type: ignore[misc]


def test_an_item_that_is_no_message_has_no_text() -> None:
    item = {"type": "somethingNew", "id": "i1", "more": 1}
    [event] = events_of(1, "item/started", {"threadId": "t", "turnId": "u", "item": item})
    assert isinstance(event, ItemStarted)
    assert event.message() is None
    assert event.item.to_wire() == item


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/agentMessage/delta", {"itemId": "i"}),
        ("item/completed", {"item": {"id": "i"}}),
        ("item/completed", {"item": {"type": 7}}),
        ("turn/completed", {"turn": None}),
        ("thread/tokenUsage/updated", {"tokenUsage": []}),
        ("something/new", {"a": 1}),
    ],
)
def test_a_notification_that_cannot_be_read_stays_as_it_came(method: str, params: dict[str, Any]) -> None:
    [event] = events_of(2, method, params)
    assert event == Raw(seq=2, method=method, params=params)


def test_a_turn_that_failed_has_the_error_of_the_wire() -> None:
    error = {"message": "spent", "codexErrorInfo": "usageLimitExceeded"}
    for given, expected in ((error, error), (None, {"message": "the turn failed"})):
        turn: dict[str, Any] = {"id": "u", "items": [], "status": "failed", "error": given}
        [event] = events_of(2, "turn/completed", {"threadId": "t", "turn": turn})
        assert event == TurnFailed(seq=2, turn_id="u", error=expected)


def test_a_turn_without_tools_loads_no_models(home: Path) -> None:
    """Making them takes longer than all the rest of the start."""
    program = """
import sys, anyio
from oarlock import Agent, Host, Offline
async def main():
    async with Host(provider=Offline()) as host:
        run = host.run(Agent(), "say hello")
        async for event in run:
            pass
        assert (await run).status == "completed"
anyio.run(main)
print(*sys.modules)
"""
    sources = [PACKAGE / "src", PACKAGE.parent / "oarlock-protocol" / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not set(done.stdout.split()) & {"pydantic", "pydantic_core", "oarlock_protocol.types"}
