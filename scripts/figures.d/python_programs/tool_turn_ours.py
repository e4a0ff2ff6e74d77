"""Time of a turn with one tool call, with a scripted model. Usage: tool_turn_ours.py TURNS"""

import json
import sys
import time

import anyio
from oarlock import Agent, Host, tool
from oarlock.testing import Call, ScriptedModel


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: 21 degrees, dry"


async def main(turns: int) -> None:
    steps = [Call("weather", {"city": "Utrecht"}), "Dry."] * (turns + 1)
    async with Host(provider=ScriptedModel(*steps)) as host:
        task = await host.start(Agent(tools=[weather], tool_set="replace"))
        await task.run("go")
        began = time.perf_counter()
        for _ in range(turns):
            assert (await task.run("go")).text == "Dry."
        print(json.dumps({"turn": (time.perf_counter() - began) / turns}))


anyio.run(main, int(sys.argv[1]))
