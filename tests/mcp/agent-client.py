"""The published Python client against `oarlock mcp-server`: one line per check. Arguments: the binary, a folder."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

BINARY, FOLDER = sys.argv[1], Path(sys.argv[2])


def say(name: str, holds: bool) -> None:
    print(f"{name}: {'yes' if holds else 'no'}", flush=True)


async def main() -> None:
    asked: list[str] = []
    answer = "accept"

    async def elicited(_: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action=answer, content={} if answer == "accept" else None)

    server = StdioServerParameters(command=BINARY, args=["mcp-server", "-c", "model_provider=offline"],
                                   env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write, elicitation_callback=elicited) as session:
        hello = await session.initialize()
        say("it says who it is", hello.server_info.name == "oarlock-mcp-server")
        tools = await session.list_tools()
        say("its tools are listed", [tool.name for tool in tools.tools] == ["codex", "codex-reply"])
        first = await session.call_tool("codex", {"prompt": "Say hello", "cwd": str(FOLDER)})
        structured = first.structured_content or {}
        say("a thread is begun", not first.is_error and "hello" in structured.get("content", ""))
        again = await session.call_tool("codex-reply", {"prompt": "Say hello", "threadId": structured.get("threadId")})
        say("and gone on with", (again.structured_content or {}).get("threadId") == structured.get("threadId"))
        for answer, file in (("accept", "wanted"), ("decline", "unwanted")):
            arguments = {"prompt": f"Run `touch {file}`", "cwd": str(FOLDER), "approval-policy": "untrusted",
                         "sandbox": "workspace-write"}
            await session.call_tool("codex", arguments)
            say(f"a command is asked about, answered with {answer}", len(asked) > 0 and file in asked[-1])
            say(f"and happens accordingly ({file})", (FOLDER / file).exists() == (answer == "accept"))
        wrong = await session.call_tool("codex-reply", {"prompt": "x", "threadId": "no"})
        say("a mistake is a result", bool(wrong.is_error))


asyncio.run(main())
