"""A tool that must not run twice: it asks above a limit, and another process decides.

Prints: mira approves: refund(order='A-17', cents=4900)
Prints: refunded 4900 cents
"""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from oarlock import Agent, Approve, Host, PendingFunction, ToolContext, tool
from oarlock.testing import Call, ScriptedModel


@dataclass
class Till:
    book: Path

    def pay(self, order: str, cents: int, *, key: str) -> str:
        with self.book.open("a") as book:
            book.write(f"{order} {cents} {key}\n")
        return f"refunded {cents} cents"


@tool  # effects="once": asks, and never runs twice
def refund(ctx: ToolContext[Till], order: str, cents: int) -> str:
    """Refund part of an order.

    Args:
        order: public order number
        cents: amount in cents
    """
    return ctx.deps.pay(order, cents, key=ctx.operation_id)


@refund.policy
def desk_limit(call: PendingFunction) -> Approve | None:
    return Approve() if call.arguments["cents"] < 2_000 else None


desk = Agent(name="desk", deps_type=Till, tools=[refund], tool_set="replace")


async def ask(folder: Path) -> None:
    """The first process; it may die now."""
    model = ScriptedModel(Call("refund", {"order": "A-17", "cents": 4900}))
    async with Host(store=folder / "runs.db", provider=model) as host:
        task = await host.start(desk, task_id="A-17", if_exists="open", deps=Till(folder / "book"))
        print((await task.run("Refund 49.00 of A-17", timeout=60)).status)


async def approve(folder: Path, by: str) -> None:
    """The second one, next week, with no runtime alive yet."""
    model = ScriptedModel(lambda seen: seen.last_output)
    async with Host(store=folder / "runs.db", provider=model) as host:
        task = await host.open("A-17", desk, deps=Till(folder / "book"))
        for call in await task.pending():
            print(f"{by} approves: {call.describe()}")
            await task.decide(call, Approve(), by=by)
        print((await task.resume(timeout=60)).unwrap())


def main() -> None:
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, __file__, "ask", folder], check=True)
        subprocess.run([sys.executable, __file__, "approve", folder, "mira"], check=True)
        assert len((Path(folder) / "book").read_text().splitlines()) == 1


match sys.argv[1:]:
    case ["ask", folder]:
        anyio.run(ask, Path(folder))
    case ["approve", folder, by]:
        anyio.run(approve, Path(folder), by)
    case _:
        main()
