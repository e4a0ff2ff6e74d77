"""Events of a task from its record, and from then on as they happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import anyio
import oarlock_protocol as protocol

from ._events import CommandOutput, Event, ItemCompleted, ReasoningDelta, TextDelta, TurnStarted, turn_ended

if TYPE_CHECKING:
    from ._follow import TaskFollower

# What a record keeps, one number each: the same in every process, so that `after` means the same everywhere.
RECORDED = frozenset({"turn/started", "item/completed", "turn/completed"})
# Between two looks at a record in which nothing happens.
_FIRST_READ = 0.1
_LAST_READ = 2.0


def recorded_events(turns: Sequence[protocol.Turn]) -> Iterator[Event]:
    """The events that the record keeps, numbered from 1."""
    seq = 0
    for turn in turns:
        seq += 1
        yield TurnStarted(seq=seq, turn_id=turn.id)
        for item in turn.items:
            if getattr(item, "status", None) == "inProgress":
                continue
            seq += 1
            yield ItemCompleted(seq=seq, item=item)
        if turn.status != "inProgress":
            seq += 1
            error = turn.error.to_wire() if turn.error is not None else None
            yield turn_ended(seq, turn.id, turn.status, error)


class RecordedEvents:
    """Follows a task by its record alone, which needs no runtime and no agent. Never ends by itself."""

    def __init__(self, after: int | None, read: Callable[[], Awaitable[Sequence[protocol.Turn]]]) -> None:
        self._after = after
        self._read = read
        self._found: deque[Event] = deque()
        self._pause = _FIRST_READ

    def __aiter__(self) -> RecordedEvents:
        return self

    async def __anext__(self) -> Event:
        while not self._found:
            recorded = list(recorded_events(await self._read()))
            if self._after is None:
                self._after = recorded[-1].seq if recorded else 0
            self._found.extend(event for event in recorded if event.seq > self._after)
            if self._found:
                self._after, self._pause = recorded[-1].seq, _FIRST_READ
            else:
                await anyio.sleep(self._pause)
                self._pause = min(self._pause * 2, _LAST_READ)
        return self._found.popleft()


class TaskEvents:
    """Not a generator: a listener may just leave.

    Replays what was recorded after `after`, then the text of the running message so far, then follows.
    """

    def __init__(
        self, follower: TaskFollower, after: int | None, read: Callable[[], Awaitable[Sequence[protocol.Turn]]]
    ) -> None:
        self._follower = follower
        self._after = after
        self._read = read
        self._replayed: deque[Event] = deque()
        self._buffer = follower.listen()
        self._is_following = after is None

    def __aiter__(self) -> TaskEvents:
        return self

    async def __anext__(self) -> Event:
        if not self._is_following:
            await self._replay()
        if self._replayed:
            return self._replayed.popleft()
        event = await self._buffer.next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def _replay(self) -> None:
        assert self._after is not None
        turns = await self._read()
        # From here on nothing waits: between what was read and what comes there is no gap.
        recorded = list(recorded_events(turns))
        last = recorded[-1].seq if recorded else 0
        self._replayed.extend(event for event in recorded if event.seq > self._after)
        # Deltas are part of the items, or of the text of the running one.
        self._replayed.extend(
            event
            for event in self._buffer.drain()
            if event.seq > last and not isinstance(event, TextDelta | ReasoningDelta | CommandOutput)
        )
        if (text := self._follower.running_text()) is not None:
            self._replayed.append(text)
        self._is_following = True
