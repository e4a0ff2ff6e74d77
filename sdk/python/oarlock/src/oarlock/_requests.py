"""When the model is asked: the wire says when an answer is over, and what comes before shows that a request begins."""

from __future__ import annotations

from typing import Any

from ._events import Event, ItemCompleted, ItemStarted

# Items that are input, or part of an answer; all others are calls, whose ends the model is told.
_NO_CALLS = frozenset(
    {
        "agentMessage",
        "contextCompaction",
        "enteredReviewMode",
        "exitedReviewMode",
        "hookPrompt",
        "imageGeneration",
        "plan",
        "reasoning",
        "userMessage",
        "webSearch",
    }
)


class RequestWatch:
    """Of the root agent of a task."""

    def __init__(self) -> None:
        self._is_asking = False
        self._calls: set[str] = set()

    def turn_begins(self) -> bool:
        """Each of these is true when a request has just begun."""
        self._calls.clear()
        return self._begins()

    def turn_ends(self) -> None:
        self._is_asking = False
        self._calls.clear()

    def answered(self) -> None:
        """A new total of tokens: the answer is over."""
        self._is_asking = False

    def answers(self) -> bool:
        """A piece of the answer."""
        return not self._is_asking and self._begins()

    def opened(self) -> bool:
        """The old total again: a stream has opened."""
        return self._begins()

    def saw(self, event: Event) -> bool:
        match event:
            case ItemStarted() if (call := _call_of(event)) is not None:
                self._calls.add(call)
            case ItemCompleted() if (call := _call_of(event)) is not None:
                was_open = call in self._calls
                self._calls.discard(call)
                return was_open and not self._calls and self._begins()
        return False

    def _begins(self) -> bool:
        was_asking, self._is_asking = self._is_asking, True
        return not was_asking


def _call_of(event: ItemStarted | ItemCompleted) -> str | None:
    wire: Any = event.wire()
    return str(wire["id"]) if wire["type"] not in _NO_CALLS else None
