"""Finds or starts the host of a store."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio

from ._errors import TransportClosed
from ._transports import ProcessTransport, SocketTransport, Transport

# In the error of a host whose store is taken.
_TAKEN = "is used by another process"
_POSTGRES = ("postgres://", "postgresql://")
# A host that another process starts at the same moment has this long to open its socket.
_SOCKET_WITHIN = 10.0


class EmbeddedHost:
    """The host of a store: the first process of this machine that opens it runs the host, the others connect to that.

    A store is a file, or a Postgres, which hosts of several machines may share.
    """

    def __init__(self, store: str | Path | None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="oarlock-") if store is None else None
        self._database = store if isinstance(store, str) and store.startswith(_POSTGRES) else None
        if self._database is not None:
            # By its address: this machine may use several databases.
            digest = hashlib.sha256(self._database.encode()).hexdigest()[:12]
            self._replica = f"{_machine_name()}-{digest}"
            self.path = _home() / f"host-{self._replica}"
        else:
            self.path = Path(self._temporary) / "tasks.sqlite" if self._temporary else Path(str(store)).absolute()

    @property
    def socket(self) -> Path:
        return self.path.with_name(self.path.name + ".sock")

    def workspace(self, thread_id: str) -> Path:
        """A folder for one task alone."""
        return self.path.with_name(self.path.name + ".work") / thread_id

    def _store_arguments(self) -> list[str]:
        if self._database is not None:
            return ["--store", self._database, "--replica", self._replica]
        return ["--store", f"sqlite:{self.path}"]

    def remove(self) -> None:
        """A store without a name is gone with its host."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    async def connect(
        self,
        argv: Callable[[], Awaitable[Sequence[str]]],
        environment: Mapping[str, str],
    ) -> Transport:
        """A running host by its socket, else a new one as a child of this process."""
        found = await self._running()
        if found is not None:
            return found
        return await ProcessTransport.spawn(
            [*(await argv()), *self._store_arguments(), "--listen", "stdio://"],
            {**os.environ, **environment},
        )

    async def _running(self) -> Transport | None:
        if not self.socket.exists():
            return None
        try:
            return await SocketTransport.connect(self.socket)
        except OSError:
            # Left behind by a host that was killed.
            return None

    def was_slower(self, last_words: str) -> bool:
        """Whether a new host ended because another process has the store."""
        return _TAKEN in last_words

    async def after_refusal(self) -> Transport:
        """The host that was faster."""
        with anyio.move_on_after(_SOCKET_WITHIN):
            while True:
                if (found := await self._running()) is not None:
                    return found
                await anyio.sleep(0.05)
        raise TransportClosed(f"no host answers at {self.socket}")


def _home() -> Path:
    """As the host finds it."""
    for name in ("OARLOCK_HOME", "CODEX_HOME"):
        if value := os.environ.get(name):
            return Path(value).absolute()
    return Path.home() / ".oarlock"


def _machine_name() -> str:
    name = "".join(letter for letter in platform.node() if letter.isalnum() or letter in "-_.")
    return name[:60] or "host"
