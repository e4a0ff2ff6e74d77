"""A program in a terminal of its own, with keys to press and a screen to read. Needs tmux 3.2 or newer."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

COLUMNS, ROWS, SCROLLBACK = 110, 45, 500
POLL_SECONDS = 0.05
# Keys that come as fast as a paste are taken for one, and Enter would then be a line break in it.
PAUSE_BEFORE_ENTER_SECONDS = 0.3


class Screen:
    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        # The path of a socket must be short, so it is not among the files of the check.
        self._sockets = tempfile.mkdtemp(prefix="tmux-")
        self._env = {**env, "TMUX_TMPDIR": self._sockets}
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        # What a program that ended has left on the screen tells why.
        keep = ["set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "history-limit", str(SCROLLBACK)]
        self._tmux("start-server", ";", *keep, ";", "new-session", "-d", "-s", "0", *size, "-c", str(cwd), *command)

    def text(self) -> str:
        """What is to be seen."""
        return self._tmux("capture-pane", "-p", "-t", "0")

    def everything(self) -> str:
        """With what has been scrolled out of sight."""
        return self._tmux("capture-pane", "-p", "-t", "0", "-S", f"-{SCROLLBACK}")

    def press(self, key: str) -> None:
        self._tmux("send-keys", "-t", "0", key)

    def type(self, words: str) -> None:
        """Types a line and enters it. A mark before it may be shown as something else."""
        self._tmux("send-keys", "-t", "0", "-l", words)
        self.wait_for(words.lstrip("!"))
        time.sleep(PAUSE_BEFORE_ENTER_SECONDS)
        self.press("Enter")

    def ended(self) -> bool:
        return self._tmux("display-message", "-p", "-t", "0", "#{pane_dead}").strip() == "1"

    def wait(self, condition: Callable[[], object], what: str, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
            time.sleep(POLL_SECONDS)

    def wait_for(self, *words: str, seconds: float = 10) -> None:
        """Until all of these are to be seen."""

        def condition() -> bool:
            text = self.text()
            return all(word in text for word in words)

        self.wait(condition, f"{' and '.join(repr(word) for word in words)} on the screen", seconds)

    def close(self) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._sockets, ignore_errors=True)

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=10).stdout
