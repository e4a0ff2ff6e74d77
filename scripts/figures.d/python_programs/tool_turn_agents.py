"""The same with `openai-agents`. Usage: tool_turn_agents.py TURNS"""

import asyncio
import json
import os
import sys
import time
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
from agents import Agent, Model, ModelResponse, Runner, Usage, function_tool  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


@function_tool
def weather(city: str) -> str:
    """Today's weather in a city."""
    return f"{city}: 21 degrees, dry"


class Scripted(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        output: list[Any]
        if isinstance(input, list) and input[-1].get("type") == "function_call_output":
            text = ResponseOutputText(annotations=[], text="Dry.", type="output_text")
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        else:
            arguments = '{"city": "Utrecht"}'
            output = [
                ResponseFunctionToolCall(arguments=arguments, call_id="c", name="weather", type="function_call", id="f")
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def main(turns: int) -> None:
    agent = Agent(name="agent", tools=[weather], model=Scripted())
    await Runner.run(agent, "go")
    began = time.perf_counter()
    for _ in range(turns):
        assert (await Runner.run(agent, "go")).final_output == "Dry."
    print(json.dumps({"turn": (time.perf_counter() - began) / turns}))


asyncio.run(main(int(sys.argv[1])))
