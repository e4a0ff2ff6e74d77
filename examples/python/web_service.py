"""A web service: requests start tasks, people approve by HTTP, and a retried request starts nothing twice.

    pip install starlette uvicorn httpx

Prints: POST /tasks/A-17: paused
Prints: waits: refund(order='A-17', cents=4900)
Prints: POST /pending: completed: The refund is on its way.
Prints: paid: ['A-17 4900']
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx
from oarlock import Agent, Approve, Host, Reject, ToolContext, tool
from oarlock.testing import Call, ScriptedModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


@dataclass
class Bank:
    """What the tools of a task work with."""

    paid: list[str] = field(default_factory=list)


@tool
async def refund(ctx: ToolContext[Bank], order: str, cents: int) -> str:
    """Refund part of an order."""
    ctx.deps.paid.append(f"{order} {cents}")
    return "paid"


desk = Agent(name="desk", deps_type=Bank, tools=[refund], tool_set="replace")
model = ScriptedModel(Call("refund", {"order": "A-17", "cents": 4900}), "The refund is on its way.")
bank = Bank()


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """One host for the whole service. With `store="runs.db"`, tasks outlive the service."""
    async with Host(provider=model) as host:
        app.state.host = host
        yield


async def start(request: Request) -> JSONResponse:
    """The id is the caller's: a request that is sent twice opens the same task."""
    host: Host = request.app.state.host
    task = await host.start(desk, task_id=request.path_params["id"], if_exists="open", deps=bank)
    result = await task.run((await request.json())["text"], timeout=60)
    return JSONResponse({"status": result.status, "text": result.text})


async def pending(request: Request) -> JSONResponse:
    """All that waits, of every task."""
    host: Host = request.app.state.host
    calls = await host.pending()
    return JSONResponse([{"id": c.operation_id, "digest": c.arguments_digest, "what": c.describe()} for c in calls])


async def decide(request: Request) -> JSONResponse:
    """The digest binds the decision to what the person was shown."""
    host: Host = request.app.state.host
    given = await request.json()
    decision = Approve() if given["approve"] else Reject(given.get("reason"))
    await host.decide(given["id"], decision, digest=given["digest"], by=given["by"])
    task = await host.open(given["task"], desk, deps=bank)
    result = await task.resume(timeout=60)
    return JSONResponse({"status": result.status, "text": result.text})


app = Starlette(
    lifespan=lifespan,
    routes=[
        Route("/tasks/{id}", start, methods=["POST"]),
        Route("/pending", pending),
        Route("/pending", decide, methods=["POST"]),
    ],
)


async def main() -> None:
    """A client in the same process; `uvicorn web_service:app` serves real ones."""
    transport = httpx.ASGITransport(app)
    async with lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://desk", timeout=60) as client:
        answer = await client.post("/tasks/A-17", json={"text": "Refund 49.00 of A-17"})
        print(f"POST /tasks/A-17: {answer.json()['status']}")
        [call] = (await client.get("/pending")).json()
        print(f"waits: {call['what']}")
        decision = {"id": call["id"], "digest": call["digest"], "task": "A-17", "approve": True, "by": "mira"}
        answer = (await client.post("/pending", json=decision)).json()
        print(f"POST /pending: {answer['status']}: {answer['text']}")
        print(f"paid: {bank.paid}")


if __name__ == "__main__":
    anyio.run(main)
