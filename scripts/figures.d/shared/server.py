"""App-server processes, and the folders they keep their state in."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from client import PING, SECONDS, Client, Refused, Silence, until
from report import Json

__all__ = ["PING", "SECONDS", "Client", "Refused", "Server", "Silence", "Socket", "make_home", "until"]
CONFIG = """model = "mock-model"
model_provider = "mock"
approval_policy = "{approval}"
sandbox_mode = "{sandbox}"

[model_providers.mock]
name = "mock"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = {retries}
stream_max_retries = {retries}
supports_websockets = false
{more}"""


class Listens(Protocol):
    """A model, wherever it runs."""

    port: int


def make_home(
    folder: Path,
    model: Listens,
    approval: str = "never",
    sandbox: str = "danger-full-access",
    retries: int = 0,
    more: str = "",
) -> Path:
    """A state folder whose provider is the model."""
    folder.mkdir(parents=True, exist_ok=True)
    values = {"port": model.port, "approval": approval, "sandbox": sandbox, "retries": retries, "more": more}
    (folder / "config.toml").write_text(CONFIG.format(**values))
    return folder


class Server(Client):
    """Starts the process and talks to it over its pipes."""

    def __init__(
        self,
        binary: Path,
        home: Path,
        on_message: Callable[[Json], None] | None = None,
        variables: dict[str, str] | None = None,
        listen: Path | None = None,
        cwd: Path | None = None,
    ) -> None:
        # Not the server's own folder: nothing in that can be read by a command, not even a missing profile.
        user = Path(f"{home}-user")
        user.mkdir(exist_ok=True)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(user), "LANG": "C.UTF-8", "TZ": "Etc/UTC"}
        environment |= {"CODEX_HOME": str(home), "OARLOCK_HOME": str(home)} | (variables or {})
        self.errors = home.parent / f"{home.name}.stderr"
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [str(binary), "app-server", *(["--listen", f"unix://{listen}"] if listen else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=cwd or home.parent,
                bufsize=0,
                # Python ignores the signal of a file that grows too large, and so must the server: it then gets an
                # error instead. Only the measurement of storage faults sends any.
                restore_signals=False,
            )
        self.pid = self.process.pid
        assert self.process.stdin is not None and self.process.stdout is not None
        super().__init__(self.process.stdout, self.process.stdin, str(home.parent), on_message)

    # ---- the process ----

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def memory(self, field: str) -> int:
        """`VmRSS` now or `VmHWM` at its highest, in bytes."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise Silence(f"{field} of process {self.pid}")

    def forget_peak(self) -> int:
        """Lets `VmHWM` start again from what is used now, which is handed back.

        A server may keep its own user from that; its growth then includes what it needed before, for a moment.
        """
        with suppress(PermissionError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return self.memory("VmRSS")

    def kill(self) -> None:
        """SIGKILL, and everything it still had said is heard."""
        self.process.send_signal(signal.SIGKILL)
        self.drain()

    def drain(self) -> None:
        self.reading.set()
        self._reader.join(SECONDS)
        self.process.wait(SECONDS)
        self._close()

    def stop(self, seconds: float = SECONDS) -> int | None:
        """The end of its input; the exit code, or none when it had to be killed."""
        self.reading.set()
        if self.process.stdin:
            self.process.stdin.close()
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        self._reader.join(SECONDS)
        self._close()
        return code

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *reason: object) -> None:
        if self.is_alive():
            self.kill()


class Socket(Client):
    """One more connection, to a server that listens."""

    def __init__(self, path: Path, cwd: Path, on_message: Callable[[Json], None] | None = None) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        if not until(lambda: self._connect(path), SECONDS):
            raise Silence(f"nobody listens on {path}")
        super().__init__(self._socket, self._socket, str(cwd), on_message)

    def _connect(self, path: Path) -> bool:
        return self._socket.connect_ex(str(path)) == 0

    def close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # The server closed it first.
        self._reader.join(SECONDS)
        self._socket.close()

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
