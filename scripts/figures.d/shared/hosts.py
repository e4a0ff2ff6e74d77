"""Hosts as processes, on either store."""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from report import Skipped
from server import SECONDS, until

# As short as `--lease` may be for a machine that is busy.
LEASE = 5


class Store(Protocol):
    """Where the hosts of one round keep their tasks."""

    kind: str

    def arguments(self, name: str) -> list[str]: ...

    def socket(self, folder: Path, name: str) -> Path: ...

    def records(self, thread: str) -> list[tuple[int, str]]: ...


class Sqlite:
    kind = "sqlite"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tasks.sqlite"

    def arguments(self, name: str) -> list[str]:
        return ["--store", f"sqlite:{self.path}"]

    def socket(self, folder: Path, name: str) -> Path:
        return Path(f"{self.path}.sock")

    def records(self, thread: str) -> list[tuple[int, str]]:
        store = sqlite3.connect(self.path)
        try:
            rows = store.execute("SELECT ordinal, payload FROM records WHERE thread_id = ? ORDER BY ordinal", (thread,))
            return list(rows)
        finally:
            store.close()


class PostgresServer:
    """A database server of its own, from what Debian has, in a folder of its own."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        if not found:
            raise Skipped("there is no initdb on this machine")
        self._programs = found[-1].parent
        self._is_root = os.geteuid() == 0
        self._is_down = True
        self.folder = Path(tempfile.mkdtemp(prefix="oarlock-pg", dir="/tmp"))
        if self._is_root:
            # The server refuses to run as root.
            shutil.chown(self.folder, "postgres", "postgres")
        self._run("initdb", "-D", self._data(), "-A", "trust", "-U", "oar", "--no-sync")
        self.begin()

    def _data(self) -> str:
        return str(self.folder / "data")

    def _command(self, program: str, *arguments: str) -> list[str]:
        as_other = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"] if self._is_root else []
        return [*as_other, str(self._programs / program), *arguments]

    def _run(self, program: str, *arguments: str) -> str:
        command = self._command(program, *arguments)
        # The server inherits what is not given: a pipe would stay open as long as it lives.
        with tempfile.TemporaryFile() as output:
            subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=True)
            output.seek(0)
            return output.read().decode()

    def begin(self) -> None:
        """Unless it runs."""
        if not self._is_down:
            return
        options = f"-c listen_addresses='' -c fsync=off -k {self.folder}"
        start = ("-D", self._data(), "-w", "-l", str(self.folder / "log"), "-o", options, "start")

        def is_up() -> bool:
            try:
                self._run("pg_ctl", *start)
            except subprocess.CalledProcessError:
                return False  # The processes of a server that was killed may be there for a moment.
            return True

        if not until(is_up, SECONDS):
            raise OSError("Postgres does not start")
        self._is_down = False

    def kill(self) -> None:
        """SIGKILL to the server and to all that it has started."""
        self._is_down = True
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for process in [first, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def ask(self, database: str, sql: str) -> list[str]:
        arguments = ("-h", str(self.folder), "-U", "oar", "-d", database, "-At", "-F", "\t", "-c", sql)
        return self._run("psql", *arguments).splitlines()

    def end(self) -> None:
        try:
            self._run("pg_ctl", "-D", self._data(), "-m", "immediate", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class Postgres:
    """A database of its own on a server."""

    kind = "postgres"

    def __init__(self, server: PostgresServer, name: str) -> None:
        self.server, self.name = server, name
        server.ask("postgres", f"CREATE DATABASE {name}")

    def arguments(self, name: str) -> list[str]:
        place = str(self.server.folder).replace("/", "%2F")
        return ["--store", f"postgres://oar@{place}/{self.name}", "--replica", name, "--lease", str(LEASE)]

    def socket(self, folder: Path, name: str) -> Path:
        return folder / "home" / f"host-{name}.sock"

    def records(self, thread: str) -> list[tuple[int, str]]:
        sql = f"SELECT ordinal, payload FROM records WHERE thread_id = '{thread}' ORDER BY ordinal"
        rows = (line.split("\t", 1) for line in self.server.ask(self.name, sql))
        return [(int(ordinal), payload) for ordinal, payload in rows]


class HostProcess:
    """One `oarlock host`, with the model that needs no provider."""

    def __init__(
        self, binary: Path, folder: Path, store: Store, name: str, kill_at: str = "", more: Sequence[str] = ()
    ) -> None:
        self.socket = store.socket(folder, name)
        home = str(folder / "home")
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8"}
        environment |= {"CODEX_HOME": home, "OARLOCK_HOME": home}
        if kill_at:
            environment["OARLOCK_KILL_AT"] = kill_at
        with (folder / "stderr").open("ab") as errors:
            self.process = subprocess.Popen(
                [str(binary), "host", "--provider", "offline", *store.arguments(name), *more],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                cwd=folder,
            )

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        if self.is_alive():
            self.process.send_signal(number)

    def end(self) -> None:
        self.send(signal.SIGKILL)
        self.process.wait(SECONDS)
