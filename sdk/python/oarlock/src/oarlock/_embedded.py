"""Finds or starts the host of a store."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import TransportClosed
from ._process import HostProcess
from ._scratch import remove_folder, scratch_folder

if TYPE_CHECKING:
    from ._transports import Transport

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
        self._temporary = scratch_folder("oarlock-") if store is None else None
        self._database = store if isinstance(store, str) and store.startswith(_POSTGRES) else None
        if self._database is not None:
            import hashlib

            # By its address: this machine may use several databases.
            digest = hashlib.sha256(self._database.encode()).hexdigest()[:12]
            self._replica = f"{_machine_name()}-{digest}"
            self.path = _home() / f"host-{self._replica}"
        else:
            self.path = Path(self._temporary) / "tasks.sqlite" if self._temporary else Path(str(store)).absolute()

    @property
    def is_temporary(self) -> bool:
        """Its tasks end with it."""
        return self._temporary is not None

    @property
    def socket(self) -> Path:
        return self.path.with_name(self.path.name + ".sock")

    def workspace(self, thread_id: str) -> Path:
        """A folder for one task alone."""
        return self.path.with_name(self.path.name + ".work") / thread_id

    def _store_arguments(self) -> list[str]:
        if self._database is None:
            # A store that is thrown away need not wait for the disk.
            return ["--store", f"sqlite:{self.path}", *(["--scratch"] if self.is_temporary else [])]
        given = [] if self._has_password() else ["--store", self._database]
        return [*given, "--replica", self._replica]

    def _store_variables(self) -> dict[str, str]:
        """Command lines are for every user of the machine to see."""
        return {"OARLOCK_STORE": self._database} if self._database is not None and self._has_password() else {}

    def _has_password(self) -> bool:
        from urllib.parse import parse_qs, urlsplit

        try:
            address = urlsplit(self._database or "")
            return address.password is not None or "password" in parse_qs(address.query)
        except ValueError:
            # The host says what is wrong with the address.
            return True

    def remove(self) -> None:
        """A store without a name is gone with its host."""
        if self._temporary is not None:
            remove_folder(self._temporary)

    def spawn(self, argv: Sequence[str], environment: Mapping[str, str]) -> HostProcess:
        """A new host, as a child of this process."""
        return HostProcess(
            [*argv, *self._store_arguments(), "--listen", "stdio://"],
            {**os.environ, **environment, **self._store_variables()},
        )

    def may_run(self) -> bool:
        """Whether another process may have a host of this store."""
        return self.socket.exists()

    async def running(self) -> Transport | None:
        """A host of this store, by its socket."""
        from ._transports import SocketTransport

        if not self.may_run():
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
        import anyio

        with anyio.move_on_after(_SOCKET_WITHIN):
            while True:
                if (found := await self.running()) is not None:
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
    import platform

    name = "".join(letter for letter in platform.node() if letter.isalnum() or letter in "-_.")
    return name[:60] or "host"
