"""The same with `claude-agent-sdk` and its own session. Usage: crash_claude.py FOLDER LIFE, with the model in MOCK"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, query, tool

folder, life = sys.argv[1:]
kept = Path(folder) / "session"


@tool("refund", "Refund an order.", {"order": str})
async def refund(arguments: dict[str, Any]) -> dict[str, Any]:
    with open(f"{folder}/paid", "a") as file:
        file.write(arguments["order"] + "\n")
    if life == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"content": [{"type": "text", "text": "paid"}]}


async def main() -> None:
    options = ClaudeAgentOptions(
        mcp_servers={"desk": create_sdk_mcp_server("desk", tools=[refund])},
        allowed_tools=["mcp__desk__refund"],
        resume=kept.read_text() if kept.exists() else None,
        cwd=folder,
        env={
            "ANTHROPIC_BASE_URL": os.environ["MOCK"],
            "ANTHROPIC_API_KEY": "x",
            "CLAUDE_CONFIG_DIR": f"{folder}/claude",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )
    async for message in query(prompt="Refund A-17", options=options):
        session = getattr(message, "session_id", None) or (getattr(message, "data", None) or {}).get("session_id")
        if session:
            kept.write_text(session)
    print(json.dumps({"left": "the session, and a result that tells the model that the call may have happened"}))


anyio.run(main)
