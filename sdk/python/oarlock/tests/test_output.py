"""Answers of a given type."""

from __future__ import annotations

import anyio
import pytest
from pydantic import BaseModel

from oarlock import Agent, Completed, Failed, Host, Offline, ProviderError, tool
from oarlock.events import ModelRequestStarted, OutputDelta
from oarlock.providers import Fallback, Recorder
from oarlock.testing import Call, Fail, Hold, ScriptedModel, offline_host, replay

pytestmark = pytest.mark.anyio

AGENT = Agent(name="answers", tool_set="replace")


class Trip(BaseModel):
    city: str
    days: int


async def test_an_answer_is_an_instance() -> None:
    model = ScriptedModel('{"city": "Utrecht", "days": 2}')
    async with offline_host(model) as host:
        run = host.run(AGENT, "plan", output=Trip, timeout=60)
        partial = [event.partial async for event in run if isinstance(event, OutputDelta)]
        result = await run
    assert result.unwrap() == Trip(city="Utrecht", days=2)
    assert partial[-1] == {"city": "Utrecht", "days": 2}
    sent = model.seen[0].body["text"]["format"]["schema"]
    assert sent["required"] == ["city", "days"]
    assert sent["additionalProperties"] is False


async def test_an_answer_that_does_not_fit_is_asked_for_once_more() -> None:
    model = ScriptedModel('{"city": "Utrecht"}', 'Sure:\n{"city": "Utrecht", "days": "two"}')
    async with offline_host(model) as host:
        result = await host.run(AGENT, "plan", output=Trip, timeout=60)
    assert isinstance(result, Failed)
    assert result.error["code"] == "invalidOutput"
    assert "days: Field required" in model.seen[1].last_user

    model = ScriptedModel('{"city": "Utrecht"}', '```json\n{"city": "Utrecht", "days": 2}\n```')
    async with offline_host(model) as host:
        repaired = await host.run(AGENT, "plan", output=Trip, timeout=60)
    assert isinstance(repaired, Completed)
    assert repaired.output.days == 2


async def test_what_is_no_object_is_wrapped() -> None:
    model = ScriptedModel('{"value": [1, 2]}')
    async with offline_host(model) as host:
        result = await host.run(AGENT, "count", output=list[int], timeout=60)
    assert result.unwrap() == [1, 2]


async def test_the_offline_model_follows_a_schema() -> None:
    async with Host(provider=Offline()) as host:
        result = await host.run(AGENT, "plan a trip", output=Trip, timeout=60)
    assert isinstance(result.unwrap(), Trip)


async def test_providers_that_wrap_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    record = tmp_path_factory.mktemp("record") / "answers.jsonl"
    model = Recorder(Fallback([ScriptedModel(Fail()), ScriptedModel("from the second")]), record)
    async with Host(provider=model) as host:
        assert (await host.run(AGENT, "hello", timeout=60)).unwrap() == "from the second"
    async with replay(record) as host:
        assert (await host.run(AGENT, "hello", timeout=60)).unwrap() == "from the second"


async def test_a_replay_notices_another_request(tmp_path_factory: pytest.TempPathFactory) -> None:
    @tool(effects="readonly")
    def look(place: str) -> str:
        """Looks."""
        return place

    agent = Agent(name="looker", tools=[look], tool_set="replace")
    record = tmp_path_factory.mktemp("record") / "answers.jsonl"
    async with Host(provider=Recorder(ScriptedModel(Call("look", {"place": "north"}), "seen"), record)) as host:
        assert (await host.run(agent, "look north", timeout=60)).unwrap() == "seen"
    async with replay(record) as host:
        assert (await host.run(agent, "look north", timeout=60)).unwrap() == "seen"
    for asked, other, words in (
        ("look south", agent, "user messages: 'look south' instead of 'look north'"),
        ("look north", AGENT, "0 tools instead of 1"),
    ):
        async with replay(record) as host:
            with pytest.raises(ProviderError, match=f"request 1 is not the one in the record: {words}"):
                (await host.run(other, asked, timeout=60)).unwrap()


async def test_the_model_says_nothing_until_it_may() -> None:
    may_speak = anyio.Event()
    model = ScriptedModel(Hold(may_speak), "at last")
    async with offline_host(model) as host:
        run = host.run(AGENT, "hello", timeout=60)
        async for event in run:
            if isinstance(event, ModelRequestStarted):
                break
        assert "new" not in repr(run) and run._result is None
        may_speak.set()
        assert (await run).unwrap() == "at last"


async def test_a_provider_that_fails_fails_the_turn_and_not_the_task() -> None:
    model = ScriptedModel(Fail("no money left"), "better now")
    async with offline_host(model) as host:
        task = await host.start(AGENT)
        failed = await task.run("hello", timeout=60)
        assert isinstance(failed, Failed)
        assert "no money left" in str(failed.error)
        assert (await task.run("hello", timeout=60)).unwrap() == "better now"


async def test_a_script_complains() -> None:
    model = ScriptedModel("unused", Call("unused"))
    with pytest.raises(AssertionError, match="2 steps were not used"):
        model.assert_done()
