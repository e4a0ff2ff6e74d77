"""A turn that waits while nothing lives, decided by another process.

Prints: completed
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from oarlock import Agent, Approve, Host, Local, Offline
from oarlock.tools import ExecCommand

agent = Agent(name="worker", tools=[ExecCommand], tool_set="replace", ask="host", sandbox="danger-full-access")


async def ask(folder: str) -> None:
    """The first process. It may die now, and so may its host."""
    async with Host(store=Path(folder) / "runs.db", provider=Offline(), backend=Local(folder)) as host:
        task = await host.start(agent, task_id="A-17", if_exists="open")
        print((await task.run("run echo done > done.txt", timeout=60)).status)


async def approve(folder: str, by: str) -> None:
    """The second one, next week, with no runtime alive yet."""
    async with Host(store=Path(folder) / "runs.db", provider=Offline(), backend=Local(folder)) as host:
        task = await host.open("A-17", agent)
        for call in await task.pending():
            print(f"{by} approves: {call.describe()}")
            await task.decide(call, Approve(), by=by)
        print((await task.resume(timeout=60)).status)


def main() -> None:
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, "ask", folder], check=True)
        subprocess.run([sys.executable, __file__, "approve", folder, "mira"], check=True)


match sys.argv[1:]:
    case ["ask", folder]:
        anyio.run(ask, folder)
    case ["approve", folder, by]:
        anyio.run(approve, folder, by)
    case _:
        main()
