"""Answers that are pydantic models. One that does not fit is asked for once more.

Prints: Utrecht, 2 days, 1 stop
"""

import anyio
from oarlock import Agent, Host
from oarlock.testing import ScriptedModel
from pydantic import BaseModel, Field


class Trip(BaseModel):
    city: str
    days: int = Field(ge=1)
    stops: list[str]


agent = Agent(name="planner", tool_set="replace")
model = ScriptedModel(
    '{"city": "Utrecht", "days": 0, "stops": []}',
    '{"city": "Utrecht", "days": 2, "stops": ["Dom Tower"]}',
)


async def main() -> None:
    async with Host(provider=model) as host:
        trip = (await host.run(agent, "Plan a trip.", output=Trip, timeout=60)).unwrap()
    print(f"{trip.city}, {trip.days} days, {len(trip.stops)} stop")


anyio.run(main)
