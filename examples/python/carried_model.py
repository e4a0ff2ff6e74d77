"""A model provider written in Python for a host that runs in another process: this program carries its requests.

Prints: You said: hello
Prints: recorded 1 request
"""

import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from oarlock import Agent, ModelCapabilities, ModelRequest, SyncHost
from oarlock.providers import Fallback, Recorder


class Away:
    """A provider that cannot be reached."""

    id = "house-model"

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        raise ConnectionError("nobody answers")
        yield {}

    async def aclose(self) -> None:
        return None


class Parrot(Away):
    """Says what was said. It gets a Responses body and yields Responses events."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        said = [item for item in request.body["input"] if item.get("role") == "user"][-1]["content"][-1]["text"]
        yield {"type": "response.created", "response": {"id": "resp_1"}}
        content = [{"type": "output_text", "text": f"You said: {said}", "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}


@contextmanager
def running_host() -> Iterator[str]:
    """`oarlock host` in another process, and its address."""
    store = Path("tasks.db").absolute()
    socket = Path(f"{store}.sock")
    argv = [os.environ.get("OARLOCK_BIN", "oarlock"), "host", "--provider", "offline", "--store", f"sqlite:{store}"]
    process = subprocess.Popen(argv)
    try:
        while not socket.exists() and process.poll() is None:
            time.sleep(0.02)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    model = Recorder(Fallback([Away(), Parrot()]), "requests.jsonl")
    with running_host() as url, SyncHost.connect(url, provider=model) as host:
        print(host.run(Agent(tool_set="replace"), "hello", timeout=60).result().unwrap())
    print(f"recorded {len(Path('requests.jsonl').read_text().splitlines())} request")


main()
