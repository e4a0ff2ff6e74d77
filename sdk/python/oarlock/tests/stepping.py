"""Cancels a piece of work at a chosen await."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any

import anyio


class _Stepped:
    """Passes a coroutine's awaits on to the event loop, and cancels the scope at the chosen one."""

    def __init__(self, work: Awaitable[Any], at: int, scope: anyio.CancelScope) -> None:
        self._work = work
        self._at = at
        self._scope = scope
        self.steps = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self._work.__await__()
        send: Callable[[Any], Any] = steps.send
        given: Any = None
        while True:
            try:
                wanted = send(given)
            except StopIteration as end:
                return end.value
            self.steps += 1
            if self.steps == self._at:
                self._scope.cancel()
            try:
                given, send = (yield wanted), steps.send
            except BaseException as error:
                given, send = error, steps.throw


async def cancelled_at(step: int, work: Callable[[], Awaitable[Any]]) -> bool:
    """Whether the work had as many awaits, and so was cancelled."""
    with anyio.CancelScope() as scope:
        await _Stepped(work(), step, scope)
    return scope.cancelled_caught
