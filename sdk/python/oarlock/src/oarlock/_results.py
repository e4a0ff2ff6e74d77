"""How a turn ended, or why it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NoReturn, TypeAlias

from ._errors import TurnFailed, TurnInterrupted, TurnPaused
from ._pending import Pending
from ._typing import JSON, T, T_co


@dataclass(frozen=True, slots=True)
class Image:
    """A picture for the model: a path, a URL or bytes."""

    src: str | Path | bytes


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill of the workspace, by name."""

    name: str


Input: TypeAlias = str | Sequence[str | Image | Skill]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and, where the host knows prices, money."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    turn_id: str
    text: str
    """The agent's last message."""
    usage: Usage
    usage_by_agent: Mapping[tuple[str, ...], Usage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed(_Turn, Generic[T_co]):
    """The turn is done."""

    output: T_co
    """The answer: the text, or an instance of `output=`."""
    status: Literal["completed"] = "completed"

    def unwrap(self) -> T_co:
        return self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(_Turn):
    """The turn waits for decisions, for as long as it takes, whether or not any process lives."""

    pending: tuple[Pending, ...]
    status: Literal["paused"] = "paused"

    def unwrap(self) -> NoReturn:
        waits = "; ".join(call.describe() for call in self.pending)
        raise TurnPaused(f"the turn waits for a decision: {waits}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted(_Turn):
    """The turn was stopped."""

    reason: Literal["interrupted", "timeout"] = "interrupted"
    status: Literal["interrupted"] = "interrupted"

    def unwrap(self) -> NoReturn:
        raise TurnInterrupted("the turn took too long" if self.reason == "timeout" else "the turn was interrupted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_Turn):
    """The turn failed; the task can go on with another one."""

    error: Mapping[str, JSON]
    status: Literal["failed"] = "failed"

    def unwrap(self) -> NoReturn:
        raise TurnFailed(str(self.error.get("message", "the turn failed")), error=self.error)


TurnResult: TypeAlias = Completed[T] | Paused | Interrupted | Failed
