"""A worker: opens the active tasks of its agents."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio
import oarlock_protocol as protocol

from ._agent import Agent
from ._errors import OarlockError

if TYPE_CHECKING:
    from ._host import Host

log = logging.getLogger("oarlock")

# Polled as well: no notification announces a task that another process started.
_LOOK_EVERY = 1.0
_ACTIVE = ("running", "waiting", "queued", "creating", "suspended")


async def serve(host: Host, agents: Sequence[Agent[Any]], deps: Any) -> None:
    by_name = {agent.name: agent for agent in agents}
    news = anyio.Event()

    def heard(_: Any) -> None:
        news.set()

    host._routed().operation_listeners.append(heard)
    try:
        while True:
            await _open_active(host, by_name, deps)
            with anyio.move_on_after(_LOOK_EVERY):
                await news.wait()
            news = anyio.Event()
    finally:
        host._routed().operation_listeners.remove(heard)


async def _open_active(host: Host, by_name: dict[str, Agent[Any]], deps: Any) -> None:
    names = await _agents_of(host)
    for info in await host.tasks(limit=1_000):
        agent = by_name.get(names.get(info.id, ""))
        if agent is None or info.status not in _ACTIVE or host._is_served(info.id):
            continue
        given = {} if deps is ... else {"deps": deps(info)}
        try:
            await host.open(info.id, agent, **given)
        except OarlockError as error:
            log.warning("task %s cannot be served: %s", info.id, error)


async def _agents_of(host: Host) -> dict[str, str]:
    """The name of the agent of each task."""
    from ._ids import task_id_of

    names: dict[str, str] = {}
    cursor: str | None = None
    while True:
        page = await host._request(
            protocol.CLIENT_REQUESTS["thread/list"], protocol.ThreadListParams(limit=100, cursor=cursor)
        )
        names |= {task_id_of(thread.id, thread.name): thread.thread_source or "" for thread in page.data}
        cursor = page.next_cursor
        if cursor is None:
            return names
