"""An agent that has others work for it: children share its workspace, its tools and its policies.

Prints: completed: Utrecht is dry. Oslo is wet.
Prints: spawned 2, finished 2
"""

import json

import anyio
from oarlock import Agent, Completed, tool
from oarlock.events import AgentFinished, AgentSpawned
from oarlock.testing import Call, Calls, ScriptedModel, Seen, offline_host
from oarlock.tools import SpawnAgent, WaitAgent

CITIES = ("Utrecht", "Oslo")


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather in a city."""
    return {"Utrecht": "dry", "Oslo": "wet"}[city]


agent = Agent(
    name="forecaster",
    instructions="Ask one child per city, then sum up.",
    tools=[weather, SpawnAgent, WaitAgent],
    tool_set="replace",
)


def answer(seen: Seen) -> str | Call | Calls:
    """The script: parent and children are shown different things, so it looks at what was said."""
    for city in CITIES:
        if seen.last_user == f"Weather in {city}?":
            return f"{city} is {seen.last_output}." if seen.last_output else Call("weather", {"city": city})
    outputs = [str(item["output"]) for item in seen.body["input"] if item.get("type") == "function_call_output"]
    if not outputs:
        return Calls(*(Call("spawn_agent", {"message": f"Weather in {city}?"}) for city in CITIES))
    if len(outputs) < 2 * len(CITIES):
        # One wait per child: each ends with the last words of its own.
        child = json.loads(outputs[len(outputs) - len(CITIES)])["agent_id"]
        return Call("wait_agent", {"targets": [child], "timeout_ms": 60_000})
    words = [next(iter(json.loads(output)["status"].values())) for output in outputs[len(CITIES) :]]
    return " ".join(str(word["completed"]) for word in words)


async def main() -> None:
    model = ScriptedModel(*[answer] * 8)
    async with offline_host(model) as host:
        run = host.run(agent, "How is the weather in Utrecht and Oslo?", timeout=60)
        events = [event async for event in run]
        result = await run
        assert isinstance(result, Completed)
        print(f"{result.status}: {result.text}")
        spawned = sum(isinstance(event, AgentSpawned) for event in events)
        print(f"spawned {spawned}, finished {sum(isinstance(event, AgentFinished) for event in events)}")


anyio.run(main)
