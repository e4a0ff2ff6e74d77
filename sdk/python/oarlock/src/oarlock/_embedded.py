"""Finds or starts the host of a store."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio

from ._errors import TransportClosed
from ._transports import ProcessTransport, SocketTransport, Transport

# A host that another process starts at the same moment has this long to open its socket.
_SOCKET_WITHIN = 10.0


class EmbeddedHost:
    """The store of an embedded host: the first process that opens it runs the host, the others connect to that."""

    def __init__(self, store: str | Path | None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="oarlock-") if store is None else None
        self.path = Path(self._temporary) / "tasks.sqlite" if self._temporary else Path(str(store)).absolute()

    @property
    def socket(self) -> Path:
        return self.path.with_name(self.path.name + ".sock")

    def workspace(self, thread_id: str) -> Path:
        """A folder for one task alone."""
        return self.path.with_name(self.path.name + ".work") / thread_id

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
            [*(await argv()), "--store", f"sqlite:{self.path}", "--listen", "stdio://"],
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

    async def after_refusal(self) -> Transport:
        """The host that was faster."""
        with anyio.move_on_after(_SOCKET_WITHIN):
            while True:
                if (found := await self._running()) is not None:
                    return found
                await anyio.sleep(0.05)
        raise TransportClosed(f"no host answers at {self.socket}")
