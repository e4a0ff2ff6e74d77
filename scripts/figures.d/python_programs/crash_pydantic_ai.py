"""The same with `pydantic-ai`, whose history the program keeps. Usage: crash_pydantic_ai.py FOLDER LIFE"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

folder, life = sys.argv[1:]
kept = Path(folder) / "history.json"


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
        return ModelResponse(parts=[TextPart("done")])
    return ModelResponse(parts=[ToolCallPart("refund", {"order": "A-17"})])


agent = Agent(FunctionModel(scripted))


@agent.tool_plain
def refund(order: str) -> str:
    """Refund an order."""
    with open(f"{folder}/paid", "a") as file:
        file.write(order + "\n")
    if life == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return "paid"


async def main() -> None:
    history = ModelMessagesTypeAdapter.validate_json(kept.read_bytes()) if kept.exists() else []
    result = await agent.run("Refund A-17", message_history=history)
    kept.write_bytes(result.all_messages_json())
    print(json.dumps({"left": f"{len(history)} messages"}))


asyncio.run(main())
