"""The same with `openai-agents` and its session in SQLite. Usage: crash_agents.py FOLDER LIFE"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"
from agents import Agent, Model, ModelResponse, Runner, SQLiteSession, Usage, function_tool  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

folder, life = sys.argv[1:]


@function_tool
def refund(order: str) -> str:
    """Refund an order."""
    with open(f"{folder}/paid", "a") as file:
        file.write(order + "\n")
    if life == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


class Scripted(Model):
    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        output: list[Any]
        if any(item.get("type") == "function_call_output" for item in input):
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        else:
            arguments = '{"order": "A-17"}'
            output = [
                ResponseFunctionToolCall(arguments=arguments, call_id="c", name="refund", type="function_call", id="f")
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    session = SQLiteSession("A-17", f"{folder}/session.db")
    kept = [item.get("type") or item.get("role") for item in await session.get_items()]
    await Runner.run(Agent(name="agent", tools=[refund], model=Scripted()), "Refund A-17", session=session)
    print(json.dumps({"left": f"the session has {kept}"}))


asyncio.run(main())
