"""How a turn ended, or why it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Generic, Literal, NoReturn, TypeAlias

from ._errors import TurnInterrupted, TurnPaused, turn_failed
from ._pending import Pending
from ._records import record
from ._typing import JSON, T, T_co


@record()
class Image:
    """A picture for the model: a path, a URL or bytes."""

    src: str | Path | bytes


@record()
class Skill:
    """A skill of the workspace, by name."""

    name: str


Input: TypeAlias = str | Sequence[str | Image | Skill]


@record()
class Usage:
    """Tokens and, where the host knows prices, money."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


@record()
class TaskUsage(Usage):
    """All that a task used, with its children."""

    task_id: str = ""
    requests: int = 0
    """Of the model."""


@record(kw_only=True)
class _Turn:
    """What every result has."""

    turn_id: str
    text: str
    """The agent's last message."""
    usage: Usage
    """Of the turn with its child agents, since this process follows it."""
    usage_by_agent: Mapping[tuple[str, ...], Usage]
    """By path: `("root",)`, `("root", CHILD)` and so on."""
    task_id: str = ""


@record(kw_only=True)
class Completed(_Turn, Generic[T_co]):
    """The turn is done."""

    output: T_co
    """The answer: the text, or an instance of `output=`."""
    status: Literal["completed"] = "completed"

    def unwrap(self) -> T_co:
        """The output."""
        return self.output


@record(kw_only=True)
class Paused(_Turn):
    """The turn waits for decisions, for as long as it takes, whether or not any process lives."""

    pending: tuple[Pending, ...]
    status: Literal["paused"] = "paused"

    def unwrap(self) -> NoReturn:
        """Raises `TurnPaused`."""
        waits = "; ".join(call.describe() for call in self.pending)
        raise TurnPaused(f"the turn waits for a decision: {waits}", task_id=self.task_id or None)


@record(kw_only=True)
class Interrupted(_Turn):
    """The turn was stopped."""

    reason: Literal["interrupted", "timeout"] = "interrupted"
    status: Literal["interrupted"] = "interrupted"

    def unwrap(self) -> NoReturn:
        """Raises `TurnInterrupted`."""
        message = "the turn took too long" if self.reason == "timeout" else "the turn was interrupted"
        raise TurnInterrupted(message, task_id=self.task_id or None)


@record(kw_only=True)
class Failed(_Turn):
    """The turn failed; the task can go on with another one."""

    error: Mapping[str, JSON]
    status: Literal["failed"] = "failed"

    def unwrap(self) -> NoReturn:
        """Raises `TurnFailed`, or the kind of it that the error is: `LimitExceeded`, `ProviderFailed`."""
        raise turn_failed(self.error, self.task_id or None)


TurnResult: TypeAlias = Completed[T] | Paused | Interrupted | Failed
