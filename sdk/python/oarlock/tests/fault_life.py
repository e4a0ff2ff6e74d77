"""Works on one task until it ends, and on the way kills what it is told to: itself, the host or the runtime.

fault_life.py STORE FOLDER EFFECTS VICTIM STEP
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import cast

import anyio

from oarlock import Agent, Approve, Effects, Host, Paused, Respond, ToolContext, tool
from oarlock.testing import Call, ScriptedModel, Seen

STEPS = ("opened", "started", "asked", "paused", "decided", "before", "after", "answered")


def processes() -> dict[int, tuple[int, list[str]]]:
    """Parent and command line of every process."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            found[int(folder.name)] = (int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]), words)
        except (OSError, ValueError, IndexError):
            continue
    return found


def hosts_of(store: str) -> list[int]:
    return [pid for pid, (_, words) in processes().items() if "host" in words[1:2] and any(store in w for w in words)]


def runtimes_of(store: str) -> list[int]:
    hosts = hosts_of(store)
    return [pid for pid, (parent, words) in processes().items() if parent in hosts and "app-server" in words]


class Life:
    """One life of the program."""

    def __init__(self, store: str, folder: str, victim: str, step: str) -> None:
        self.store, self.folder = store, Path(folder)
        self.victim, self.step = victim, step

    def note(self, line: str) -> None:
        with (self.folder / "log").open("a") as file:
            file.write(line + "\n")

    def reach(self, step: str) -> None:
        """Kills once, however often the step is reached."""
        self.note(f"at {step}")
        flag = self.folder / "killed"
        if step != self.step or self.victim == "nobody" or flag.exists():
            return
        victims = {"program": [os.getpid()], "host": hosts_of(self.store), "runtime": runtimes_of(self.store)}
        flag.write_text(str(victims[self.victim]))
        for pid in victims[self.victim]:
            os.kill(pid, signal.SIGKILL)


def agent_of(life: Life, effects: Effects) -> Agent[object]:
    @tool(effects=effects)
    def refund(ctx: ToolContext[object], order: str) -> str:
        """Refund an order."""
        life.reach("before")
        life.note(f"effect {ctx.operation_id}")
        life.reach("after")
        return "paid"

    return Agent(name="desk", tools=[refund], tool_set="replace")


def answer(life: Life, seen: Seen) -> str | Call:
    if not seen.last_output:
        life.reach("asked")
        return Call("refund", {"order": "A-17"})
    life.reach("answered")
    return "done"


async def main(life: Life, effects: Effects) -> None:
    model = ScriptedModel(*[lambda seen: answer(life, seen)] * 50)
    async with Host(store=life.store, provider=model) as host:
        life.reach("opened")
        task = await host.start(agent_of(life, effects), task_id="A-17", if_exists="open")
        life.reach("started")
        run = task.resume(timeout=60) if await task.history() else task.run("Refund A-17", timeout=60)
        while isinstance(result := await run, Paused):
            life.reach("paused")
            for call in result.pending:
                if call.outcome == "unknown":
                    life.note(f"unknown {' '.join(sorted(call.allowed))}")
                    await task.decide(call, Respond("it was looked up"))
                else:
                    await task.decide(call, Approve())
                    life.note("decided")
            life.reach("decided")
            run = task.resume(timeout=60)
        life.note(f"ended {result.status}")


if __name__ == "__main__":
    store, folder, effects, victim, step = sys.argv[1:]
    anyio.run(main, Life(store, folder, victim, step), cast(Effects, effects))
