"""A worker: opens the active tasks of its agents."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio

from ._agent import Agent
from ._errors import OarlockError

if TYPE_CHECKING:
    from ._host import Host
    from ._ids import TaskInfo

log = logging.getLogger("oarlock")

# Also without news: a notification may be lost with its connection.
_LOOK_EVERY = 10.0
_ACTIVE = ("running", "waiting", "waitingForCarrier", "queued", "creating", "suspended")
_MANY = 1_000_000


async def serve(host: Host, agents: Sequence[Agent[Any]], deps: Any) -> None:
    by_name = {agent.name: agent for agent in agents}
    news = anyio.Event()

    def heard() -> None:
        news.set()

    listeners = host._routed().task_listeners
    listeners.append(heard)
    try:
        while True:
            for state in _ACTIVE:
                for info in await host.tasks(status=state, limit=_MANY):
                    await _open(host, info, by_name, deps)
            with anyio.move_on_after(_LOOK_EVERY):
                await news.wait()
            news = anyio.Event()
    finally:
        listeners.remove(heard)


async def _open(host: Host, info: TaskInfo, by_name: Mapping[str, Agent[Any]], deps: Any) -> None:
    agent = by_name.get(info.agent)
    if agent is None or host._is_served(info.id):
        return
    given = {} if deps is ... else {"deps": deps(info)}
    try:
        await host.open(info.id, agent, **given)
    except OarlockError as error:
        log.warning("task %s cannot be served: %s", info.id, error)
