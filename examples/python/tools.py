"""Python functions as tools, with context and progress.

Prints: 3 orders: 104.85
"""

from dataclasses import dataclass

import anyio
from oarlock import Agent, Host, ToolContext, tool
from oarlock.events import ToolProgress
from oarlock.testing import Call, ScriptedModel


@dataclass
class Shop:
    orders: dict[str, float]


@tool(effects="readonly")
async def total(ctx: ToolContext[Shop], customer: str) -> str:
    """Add up a customer's orders.

    Args:
        customer: the beginning of an order's number
    """
    found = {order: price for order, price in ctx.deps.orders.items() if order.startswith(customer)}
    await ctx.progress(f"found {len(found)}")
    return f"{len(found)} orders: {sum(found.values()):.2f}"


agent = Agent(name="shop", deps_type=Shop, tools=[total], tool_set="replace")
model = ScriptedModel(Call("total", {"customer": "A-"}), lambda seen: seen.last_output)
shop = Shop({"A-17": 49.0, "A-18": 5.85, "B-1": 3.0, "A-19": 50.0})


async def main() -> None:
    async with Host(provider=model) as host:
        run = host.run(agent, "What has customer A spent?", deps=shop, timeout=60)
        async for event in run:
            if isinstance(event, ToolProgress):
                print(f"[{event.text}]")
        print((await run).unwrap())


anyio.run(main)
