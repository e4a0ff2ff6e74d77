"""The same with `pydantic-ai`. Usage: tool_turn_pydantic_ai.py TURNS"""

import asyncio
import json
import sys
import time

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if any(isinstance(part, ToolReturnPart) for part in messages[-1].parts):
        return ModelResponse(parts=[TextPart("Dry.")])
    return ModelResponse(parts=[ToolCallPart("weather", {"city": "Utrecht"})])


agent = Agent(FunctionModel(scripted))


@agent.tool_plain
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: 21 degrees, dry"


async def main(turns: int) -> None:
    await agent.run("go")
    began = time.perf_counter()
    for _ in range(turns):
        assert (await agent.run("go")).output == "Dry."
    print(json.dumps({"turn": (time.perf_counter() - began) / turns}))


asyncio.run(main(int(sys.argv[1])))
