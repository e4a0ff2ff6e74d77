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


async def main(count: int) -> None:
    with TemporaryDirectory() as folder:
        async with Host(store=f"{folder}/runs.db", provider=Offline()) as host:
            for number in range(count):
                task = await host.start(AGENT, task_id=f"task-{number}")
                # Without their runtimes: the figure is about this process.
                await task.suspend()
        async with Host(store=f"{folder}/runs.db", provider=Offline()) as host:
            await host.tasks(limit=1)
            before = resident()
            tasks: list[Task[object]] = []
            for number in range(count):
                task = await host.open(f"task-{number}", AGENT)
                await task.suspend()
                tasks.append(task)
            result = await tasks[0].run("say hello", timeout=60)
            found = {"before": before, "open": resident(), "tasks": len(tasks), "status": result.status}
    print(json.dumps(found))


anyio.run(main, int(sys.argv[1]))
