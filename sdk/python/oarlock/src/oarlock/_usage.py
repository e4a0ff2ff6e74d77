"""Tokens of a turn, from totals that the host sends more than once."""

from __future__ import annotations

from collections.abc import Mapping

from ._results import Usage

AgentPath = tuple[str, ...]
ROOT: AgentPath = ("root",)
_NOTHING = Usage()


def added(one: Usage, other: Usage) -> Usage:
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        cached_input_tokens=one.cached_input_tokens + other.cached_input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        reasoning_tokens=one.reasoning_tokens + other.reasoning_tokens,
    )


def without(total: Usage, base: Usage) -> Usage:
    return Usage(
        input_tokens=total.input_tokens - base.input_tokens,
        cached_input_tokens=total.cached_input_tokens - base.cached_input_tokens,
        output_tokens=total.output_tokens - base.output_tokens,
        reasoning_tokens=total.reasoning_tokens - base.reasoning_tokens,
    )


class UsageMeter:
    """The totals of a task's agents, and what they were when the turn began.

    A host sends the total of a thread after each response, and the old one again when the next stream opens. So tokens
    of a turn are the difference of two totals, never the sum of what came.
    """

    def __init__(self) -> None:
        self._totals: dict[AgentPath, Usage] = {}
        self._bases: dict[AgentPath, Usage] = {}

    def starts_at_zero(self, path: AgentPath) -> None:
        """This agent is new: it has used nothing."""
        self._totals.setdefault(path, _NOTHING)
        self._bases.setdefault(path, _NOTHING)

    def turn_begins(self) -> None:
        self._bases = dict(self._totals)

    def take(self, path: AgentPath, total: Usage, last: Usage, *, is_answered: bool) -> Usage | None:
        """A total from the host. Gives the tokens of the request that it counts; nothing for one that was counted.

        Args:
            path: of the agent
            total: of its thread
            last: of the last request in it
            is_answered: the model has said something since this process listens; then the first total that is heard
                counts a new request, else it is of before
        """
        if path not in self._totals:
            self._bases[path] = without(total, last) if is_answered else total
            self._totals[path] = self._bases[path]
        used = without(total, self._totals[path])
        self._totals[path] = total
        return used if used != _NOTHING else None

    def of_turn(self) -> Mapping[AgentPath, Usage]:
        """By agent; the root is always there."""
        spent = {path: without(total, self._bases.get(path, _NOTHING)) for path, total in self._totals.items()}
        return {ROOT: spent.get(ROOT, _NOTHING)} | {path: usage for path, usage in spent.items() if usage != _NOTHING}
