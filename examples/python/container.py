"""A task in a container: its commands run there, in a workspace that a manifest describes.

Needs docker or podman; the variables ENGINE and IMAGE choose others than docker and debian:12. The container is removed
with the host, because its tasks are kept nowhere.

Prints: creating, staging, workspace, setup
Prints: completed: 2 lines in /workspace
"""

import os

import anyio
from oarlock import Agent, Completed, Docker, Host, Manifest, Podman
from oarlock.events import PlacementProgress
from oarlock.testing import Call, ScriptedModel, Seen
from oarlock.tools import ExecCommand

engine = Podman if os.environ.get("ENGINE") == "podman" else Docker
box = engine(os.environ.get("IMAGE", "debian:12"), memory="512m", network="none")

agent = Agent(
    name="counter",
    tools=[ExecCommand],
    tool_set="replace",
    manifest=Manifest(
        entries={"data/words.txt": "one\ntwo\n"},
        env={"WORDS": "data/words.txt"},
        setup=[["sh", "-c", "wc -l < data/words.txt > count"]],
    ),
)


def answer(seen: Seen) -> str | Call:
    """The script of the model: one command, then what it printed."""
    if not seen.last_output:
        return Call("exec_command", {"cmd": "test -f $WORDS && echo $(cat count) lines in $(pwd)"})
    return seen.last_output.strip().splitlines()[-1]


async def main() -> None:
    async with Host(provider=ScriptedModel(answer, answer), backend=box) as host:
        run = host.run(agent, "How many words are there?", timeout=300)
        steps = [event.step async for event in run if isinstance(event, PlacementProgress)]
        print(", ".join(step for step in ("creating", "staging", "workspace", "setup") if step in steps))
        result = await run
        assert isinstance(result, Completed)
        print(f"{result.status}: {result.text}")


anyio.run(main)
