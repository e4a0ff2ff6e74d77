"""Opens many tasks in one process and says how much memory that takes. Usage: many_tasks.py COUNT"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from oarlock import Agent, Host, Offline, Task, tool


@tool(effects="readonly")
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: dry"


AGENT = Agent(name="many", tools=[weather], tool_set="replace")


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


async def start(host: Host, number: int) -> Task[object]:
    task = await host.start(AGENT, task_id=f"task-{number}")
    # Without its runtime: the figure is about this process.
    await task.suspend()
    return task


async def main(count: int) -> None:
    with TemporaryDirectory() as folder:
        async with Host(store=f"{folder}/runs.db", provider=Offline()) as host:
            # The first ones pay for what all share.
            tasks = [await start(host, number) for number in range(5)]
            await tasks[0].run("say hello", timeout=60)
            before = resident()
            tasks += [await start(host, number) for number in range(len(tasks), count)]
            found = {"before": before, "open": resident(), "tasks": len(tasks)}
            result = await tasks[-1].run("say hello", timeout=60)
            assert result.status == "completed"
    print(json.dumps(found))


anyio.run(main, int(sys.argv[1]))
