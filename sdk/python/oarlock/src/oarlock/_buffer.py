"""Events between the connection, which never waits, and a reader that may."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import anyio

from ._events import CommandOutput, Event, ReasoningDelta, TextDelta

# Beyond this many unread events, deltas of one item are joined: a reader that stops costs the text, not every piece.
_JOIN_AFTER = 256
_Delta = TextDelta | ReasoningDelta | CommandOutput


class _Joined:
    """Deltas of one item, as one event when it is read."""

    __slots__ = ("first", "texts")

    def __init__(self, first: _Delta) -> None:
        self.first = first
        self.texts = [first.text]

    def takes(self, event: _Delta) -> bool:
        return type(event) is type(self.first) and event.item_id == self.first.item_id

    def event(self) -> Event:
        return self.first if len(self.texts) == 1 else replace(self.first, text="".join(self.texts))


class EventBuffer:
    """One reader's events, in order. Ends after `close`."""

    def __init__(self) -> None:
        self._events: deque[Event | _Joined] = deque()
        self._news: anyio.Event | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._events)

    def feed(self, event: Event) -> None:
        if self._is_closed:
            return
        if len(self._events) < _JOIN_AFTER or not isinstance(event, _Delta):
            self._events.append(event)
        elif isinstance(last := self._events[-1], _Joined) and last.takes(event):
            last.texts.append(event.text)
        else:
            self._events.append(_Joined(event))
        self._wake()

    def drain(self) -> list[Event]:
        """All that is there."""
        events = [event.event() if isinstance(event, _Joined) else event for event in self._events]
        self._events.clear()
        return events

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.set()

    async def next(self) -> Event | None:
        """Nothing when there will be no more."""
        while not self._events:
            if self._is_closed:
                return None
            if self._news is None:
                self._news = anyio.Event()
            await self._news.wait()
        event = self._events.popleft()
        return event.event() if isinstance(event, _Joined) else event
