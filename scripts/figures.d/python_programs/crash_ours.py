"""Pays, and dies before it can say so; the second life looks at what is left. Usage: crash_ours.py FOLDER LIFE"""

import json
import os
import signal
import sys

import anyio
from oarlock import Agent, Approve, Host, Paused, tool
from oarlock.testing import Call, ScriptedModel

folder, life = sys.argv[1:]


@tool(approval=lambda call: Approve())
def refund(order: str) -> str:
    """Refund an order."""
    with open(f"{folder}/paid", "a") as file:
        file.write(order + "\n")
    if life == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


async def main() -> None:
    model = ScriptedModel(Call("refund", {"order": "A-17"}), "done")
    async with Host(store=f"{folder}/runs.db", provider=model) as host:
        task = await host.start(Agent(tools=[refund], tool_set="replace"), task_id="A-17", if_exists="open")
        result = await (task.resume() if await task.history() else task.run("Refund A-17"))
        left = result.status
        if isinstance(result, Paused):
            call = result.pending[0]
            left = f"a call whose outcome is {call.outcome} waits for one of {sorted(call.allowed)}"
        print(json.dumps({"left": left}))


anyio.run(main)
