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


# The others keep no history: each of their turns begins anew. A task of ours has few, so that it is the turn that is
# measured and not the reading of what came before.
TURNS_OF_A_TASK = 10


async def main(turns: int) -> None:
    steps = [Call("weather", {"city": "Utrecht"}), "Dry."] * (turns + turns // TURNS_OF_A_TASK + 1)
    agent = Agent(tools=[weather], tool_set="replace")
    took = 0.0
    async with Host(provider=ScriptedModel(*steps)) as host:
        for _ in range(0, turns, TURNS_OF_A_TASK):
            task = await host.start(agent)
            await task.run("go")
            began = time.perf_counter()
            for _ in range(TURNS_OF_A_TASK):
                assert (await task.run("go")).text == "Dry."
            took += time.perf_counter() - began
            await task.suspend(snapshot=False)
    print(json.dumps({"turn": took / turns}))


anyio.run(main, int(sys.argv[1]))
