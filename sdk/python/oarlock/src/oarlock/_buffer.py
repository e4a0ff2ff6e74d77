"""Events between the connection, which never waits, and a reader that may."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import anyio

from ._events import CommandOutput, DeltaKind, Event, ReasoningDelta, TextDelta

# Beyond this many unread events, deltas of one item are joined: a reader that stops costs the text, not every piece.
_JOIN_AFTER = 256
_DELTAS = (TextDelta, ReasoningDelta, CommandOutput)


class _Pieces:
    """Deltas of one item. Each becomes an event when it is read; the rest becomes one together."""

    __slots__ = ("item_id", "kind", "rest", "seq", "texts")

    def __init__(self, kind: DeltaKind, seq: int, item_id: str) -> None:
        self.kind = kind
        self.seq = seq
        self.item_id = item_id
        self.texts: deque[str] = deque()
        self.rest: list[str] = []


class EventBuffer:
    """One reader's events, in order. Ends after `close`."""

    def __init__(self) -> None:
        self._events: deque[Event | _Pieces] = deque()
        self._unread = 0
        self._news: anyio.Event | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return self._unread

    def feed(self, event: Event) -> None:
        if isinstance(event, _DELTAS):
            return self.feed_deltas(type(event), event.seq, event.item_id, (event.text,))
        if self._is_closed:
            return
        self._events.append(event)
        self._unread += 1
        if self._news is not None:
            self._wake()

    def feed_deltas(self, kind: DeltaKind, seq: int, item_id: str, texts: Sequence[str]) -> None:
        """Pieces that follow each other."""
        if self._is_closed or not texts:
            return
        last = self._events[-1] if self._events else None
        if not isinstance(last, _Pieces) or (last.kind, last.seq, last.item_id) != (kind, seq, item_id):
            last = _Pieces(kind, seq, item_id)
            self._events.append(last)
        # What follows something joined is joined to it.
        room = max(0, _JOIN_AFTER - self._unread) if not last.rest else 0
        single = texts[:room]
        last.texts.extend(single)
        self._unread += len(single)
        if len(texts) > room:
            self._unread += not last.rest
            last.rest.extend(texts[room:])
        if self._news is not None:
            self._wake()

    def drain(self) -> list[Event]:
        """All that is there."""
        events: list[Event] = []
        while (event := self.take()) is not None:
            events.append(event)
        return events

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.set()

    def take(self) -> Event | None:
        """The next one, if it is there already: a reader that is behind need not wait for each."""
        if not self._events:
            return None
        first = self._events[0]
        if not isinstance(first, _Pieces):
            self._events.popleft()
            self._unread -= 1
            return first
        return first.kind(seq=first.seq, item_id=first.item_id, text=self._next_text(first))

    def take_text(self) -> str | None:
        """The agent's next words, if they are there already. Other events are passed over, and none is made."""
        while self._events:
            first = self._events[0]
            if not isinstance(first, _Pieces):
                self._events.popleft()
                self._unread -= 1
            elif first.kind is TextDelta:
                return self._next_text(first)
            else:
                self._events.popleft()
                self._unread -= len(first.texts) + bool(first.rest)
        return None

    def _next_text(self, first: _Pieces) -> str:
        self._unread -= 1
        if first.texts:
            text = first.texts.popleft()
        else:
            text = "".join(first.rest)
            first.rest.clear()
        if not first.texts and not first.rest:
            self._events.popleft()
        return text

    async def more(self) -> bool:
        """Waits until something is there. False when there will be no more."""
        while not self._events:
            if self._is_closed:
                return False
            if self._news is None:
                self._news = anyio.Event()
            await self._news.wait()
        return True

    async def next(self) -> Event | None:
        """Nothing when there will be no more."""
        return self.take() if await self.more() else None
