"""Events between the connection, which never waits, and a reader that may."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import anyio

from ._events import CommandOutput, Event, ReasoningDelta, TextDelta

# Beyond this many unread events, deltas of one item are joined: a reader that stops costs the text, not every piece.
_JOIN_AFTER = 256


class EventBuffer:
    """One reader's events, in order. Ends after `close`."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._news = anyio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._events)

    def feed(self, event: Event) -> None:
        if self._is_closed:
            return
        if len(self._events) >= _JOIN_AFTER and isinstance(event, TextDelta | ReasoningDelta | CommandOutput):
            last = self._events[-1]
            if type(last) is type(event) and last.item_id == event.item_id:
                self._events[-1] = replace(last, text=last.text + event.text)
                return
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def next(self) -> Event | None:
        """Nothing when there will be no more."""
        while not self._events:
            if self._is_closed:
                return None
            await self._news.wait()
        return self._events.popleft()
