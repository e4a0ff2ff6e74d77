"""A model provider written in Python: whatever you can reach from here, the agent can use.

Prints: You said: hello
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
from oarlock import Agent, Host, ModelCapabilities, ModelRequest


class Parrot:
    """Says what was said. It gets a Responses body and yields Responses events."""

    id = "parrot"

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        said = [item for item in request.body["input"] if item.get("role") == "user"][-1]["content"][-1]["text"]
        content = [{"type": "output_text", "text": f"You said: {said}", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}

    async def aclose(self) -> None:
        return None


async def main() -> None:
    async with Host(provider=Parrot()) as host:
        print((await host.run(Agent(tool_set="replace"), "hello", timeout=60)).unwrap())


anyio.run(main)
