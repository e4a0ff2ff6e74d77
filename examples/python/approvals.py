"""Policies, a call that waits, a decision.

Prints: completed: it is there
"""

from tempfile import TemporaryDirectory

import anyio
from oarlock import Agent, Approve, Decision, Host, Local, Paused, PendingCommand
from oarlock.testing import Call, ScriptedModel
from oarlock.tools import ExecCommand


def looking_is_fine(call: PendingCommand) -> Decision | None:
    """Approves what only looks; the rest waits for a person."""
    return Approve() if call.command.startswith("ls") else None


agent = Agent(
    name="careful",
    tools=[ExecCommand(approval=looking_is_fine)],
    tool_set="replace",
    sandbox="danger-full-access",
)
model = ScriptedModel(
    Call("exec_command", {"cmd": "touch report.txt"}),
    Call("exec_command", {"cmd": "ls"}),
    lambda seen: "it is there" if "report.txt" in seen.last_output else f"it is missing: {seen.last_output}",
)


async def main() -> None:
    with TemporaryDirectory() as folder:
        async with Host(provider=model, backend=Local(folder)) as host:
            task = await host.start(agent)
            result = await task.run("Make the report.", timeout=60)
            if isinstance(result, Paused):
                for call in result.pending:
                    print(f"waits: {call.describe()}")
                    await task.decide(call, Approve(), by="mira")
                result = await task.resume(timeout=60)
            print(f"{result.status}: {result.text}")


anyio.run(main)
