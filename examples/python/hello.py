"""An agent, a run, text as it is written.

Prints: good morning
"""

import anyio
from oarlock import Agent, Host, Offline

agent = Agent(instructions="Answer in one sentence.", tool_set="replace")


async def main() -> None:
    async with Host(provider=Offline()) as host, host.run(agent, "say good morning", timeout=60) as run:
        async for chunk in run.text_deltas():
            print(chunk, end="", flush=True)
    print()


anyio.run(main)
