"""A turn on standard output, as it happens."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any, TextIO

from ._events import CommandOutput, Event, ItemCompleted, ItemStarted, Notice, ReasoningDelta, TextDelta, ToolPending

_DIM, _BOLD, _RED, _GREEN, _YELLOW = 2, 1, 31, 32, 33
_COLOURS = {"completed": _GREEN, "failed": _RED, "declined": _RED, "interrupted": _YELLOW, "paused": _YELLOW}
# Control characters that a terminal obeys, but for line ends and tabs.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The end of a long output, for a command whose output did not come as it was made.
_MAX_LINES = 20


class TurnPrinter:
    """Writes text plainly, and colours only for a terminal that wants them."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._has_colours = self._is_terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._is_open = False
        self._streamed: set[str] = set()

    def show(self, event: Event) -> None:
        match event:
            case TextDelta(text=text):
                self._write(self._safe(text))
            case ReasoningDelta(text=text) if self._has_colours:
                self._write(self._in(_DIM, self._safe(text)))
            case CommandOutput(item_id=item_id, text=text):
                self._streamed.add(item_id)
                self._write(self._in(_DIM, self._safe(text)))
            case ItemStarted() if event.wire()["type"] == "commandExecution":
                self._line(self._in(_BOLD, f"$ {self._safe(script_of(str(event.wire()['command'])))}"))
            case ItemCompleted(item=item):
                self._end_of(item)
            case ToolPending(call=call):
                self._line(f"{self._mark('waits', _YELLOW)} {self._safe(call.describe())}")
            case Notice(message=message):
                self._line(f"{self._mark('notice', _YELLOW)} {self._safe(message)}")

    def end(self, status: str) -> None:
        self._line(self._mark(status, _COLOURS.get(status, _BOLD)))

    def _end_of(self, item: Any) -> None:
        """One line for an item that is over; nothing for those whose text was shown already."""
        match getattr(item, "type", None):
            case "commandExecution":
                if item.id not in self._streamed and item.aggregated_output:
                    lines = self._safe(item.aggregated_output).splitlines()
                    cut = [f"… {len(lines) - _MAX_LINES} lines"] if len(lines) > _MAX_LINES else []
                    self._line(self._in(_DIM, "\n".join([*cut, *lines[-_MAX_LINES:]])))
                code = f" ({item.exit_code})" if item.exit_code else ""
                about = f"$ {script_of(item.command)}{code}"
            case "dynamicToolCall":
                about = f"{item.tool} {item.arguments}"
            case "fileChange":
                about = f"changed {', '.join(change.path for change in item.changes)}"
            case "mcpToolCall":
                about = f"{item.server}.{item.tool}"
            case _:
                return
        status = str(item.status)
        self._line(f"{self._mark(status, _COLOURS.get(status, _BOLD))} {self._safe(about)}")

    def _mark(self, word: str, colour: int) -> str:
        return self._in(colour, f"[{word}]")

    def _in(self, colour: int, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colours and text else text

    def _safe(self, text: str) -> str:
        """What a model or a command wrote must not command the terminal."""
        return _CONTROL.sub("\ufffd", text) if self._is_terminal else text

    def _line(self, text: str) -> None:
        self._write(f"{chr(10) if self._is_open else ''}{text}\n")

    def _write(self, text: str) -> None:
        if text:
            self._out.write(text)
            self._is_open = not text.removesuffix("\x1b[0m").endswith("\n")
            self._out.flush()


def script_of(command: str) -> str:
    """The command as the model wrote it, without the shell that runs it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    match words:
        case [_, "-lc" | "-c", script]:
            return script
        case _:
            return command
