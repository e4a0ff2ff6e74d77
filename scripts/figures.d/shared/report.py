"""What a measurement is given, what it hands back, and how that is shown."""

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_STARTED = time.monotonic()


class Skipped(Exception):
    """The figure cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Run:
    """One run of one figure."""

    binary: Path
    folder: Path
    quick: bool
    seed: int

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass
class Outcome:
    """What was measured. Without failures, the figure holds."""

    measured: str
    failures: list[str] = field(default_factory=list)
    details: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    figure: str
    goal: str
    measured: str
    passed: bool | None
    failures: list[str]
    details: Json
    seconds: float

    def verdict(self) -> str:
        return {True: "pass", False: "FAIL", None: "skip"}[self.passed]

    def as_json(self) -> Json:
        return {
            "figure": self.figure,
            "goal": self.goal,
            "measured": self.measured,
            "result": self.verdict().lower(),
            "failures": self.failures,
            "details": self.details,
            "seconds": round(self.seconds, 1),
        }


def progress(text: str) -> None:
    print(f"[{time.monotonic() - _STARTED:6.1f} s] {text}", file=sys.stderr, flush=True)


class Counter:
    """Says how far a long loop is, at most every few seconds."""

    def __init__(self, what: str, total: int) -> None:
        self.what, self.total, self.done, self.told = what, total, 0, time.monotonic()

    def step(self) -> None:
        self.done += 1
        if time.monotonic() - self.told > 5:
            self.told = time.monotonic()
            progress(f"  {self.what}: {self.done} of {self.total}")


def table(results: list[Result]) -> str:
    """One row per figure, columns aligned."""
    rows = [["figure", "goal", "measured", "seconds", "result"]]
    rows += [[r.figure, r.goal, r.measured, f"{r.seconds:.0f}", r.verdict()] for r in results]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"
