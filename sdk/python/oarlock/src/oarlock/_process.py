"""An embedded host as a process: a child that ends when this process does. Loads no event loop."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from ._scratch import scratch_log

_STDERR_BYTES = 4_096


# Hosts that go on without this process.
_LEFT: list[subprocess.Popen[bytes]] = []


class HostProcess:
    """A host and its pipes, which never block."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        # A file and not a pipe: runtimes of the host inherit it, and would keep a pipe open for longer than the host.
        self._stderr = scratch_log()
        self._words = ""
        _LEFT[:] = [process for process in _LEFT if process.poll() is None]
        self.is_greeted = False
        """Whether the first lines of the connection were written when it was started."""
        try:
            # A session of its own: Ctrl-C is this program's, which ends the host by closing its input.
            self._process = subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=dict(environment),
                bufsize=0,
                start_new_session=True,
            )
        except BaseException:
            self._stderr.close()
            raise
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def stdin(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def stdout(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def greet(self, lines: bytes) -> None:
        """Writes the first lines. They fit into a new pipe whole, or into none."""
        try:
            self.is_greeted = os.write(self.stdin, lines) == len(lines)
        except OSError:
            # It ended at once; whoever reads from it learns why.
            self.is_greeted = False

    def close_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()

    def close(self) -> None:
        """After its end."""
        self._words = self.last_words()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._stderr.close()

    def leave(self) -> None:
        """Lets it live for others. It is reaped when the next one is started, or by the system."""
        self.close_input()
        self.close()
        _LEFT.append(self._process)

    def abandon(self) -> None:
        """Ends it at once, whatever it does: nobody has spoken with it yet."""
        self.close_input()
        self._process.kill()
        self._process.wait()
        self.close()

    def last_words(self) -> str:
        """The end of what the host wrote."""
        if self._stderr.closed:
            return self._words
        size = self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, size - _STDERR_BYTES))
        return self._stderr.read().decode(errors="replace").strip()
