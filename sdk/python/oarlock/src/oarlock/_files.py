"""Files of a task's workspace, by the host."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypedDict

import anyio
import oarlock_protocol as protocol

from ._errors import BackendError, ConfigError

if TYPE_CHECKING:
    from ._host import Host


class _There(TypedDict, total=False):
    placement_id: str


class Files:
    """The files where a task works. Paths are relative to its workspace."""

    def __init__(self, host: Host, thread_id: str, root: str) -> None:
        self._host = host
        self._thread_id = thread_id
        self._root = root
        # Unset: not yet known whether the host has the files on its own machine.
        self._is_here: bool | None = None

    async def _path(self, path: str) -> tuple[str, _There]:
        """The absolute path, and the placement that has it, where that is not the host's machine as it is."""
        pure = PurePosixPath(path)
        if ".." in pure.parts:
            raise ConfigError(f"{path}: leave out `..`; paths are within the workspace")
        if not self._root:
            raise ConfigError("this task was opened to read and decide only; open it with its agent to use files")
        if self._is_here:
            return str(PurePosixPath(self._root) / pure), {}
        place = await self._host._placement_of(self._thread_id)
        if place is None or place.backend == "local":
            self._is_here = True
            return str(PurePosixPath(self._root) / pure), {}
        if "placementFiles" not in self._host._opened().features:
            raise BackendError(f"files: this task works in {place.name}, from where this host passes no files on")
        # One that was made again may have another workspace.
        return str(PurePosixPath(place.workspace or self._root) / pure), {"placement_id": place.id}

    async def read_bytes(self, path: str) -> bytes:
        """The whole file, of up to 64 MiB."""
        target, there = await self._path(path)
        params = protocol.FsReadFileParams(path=target, **there)
        answer = await self._host._request(protocol.CLIENT_REQUESTS["fs/readFile"], params)
        return base64.b64decode(answer.data_base64)

    async def read_text(self, path: str) -> str:
        """The whole file as UTF-8."""
        return (await self.read_bytes(path)).decode()

    async def write(self, path: str, data: str | bytes) -> None:
        """Writes the whole file, and makes missing folders."""
        target, there = await self._path(path)
        folder = protocol.FsCreateDirectoryParams(path=str(PurePosixPath(target).parent), recursive=True, **there)
        await self._host._request(protocol.CLIENT_REQUESTS["fs/createDirectory"], folder)
        raw = data.encode() if isinstance(data, str) else data
        params = protocol.FsWriteFileParams(path=target, data_base64=base64.b64encode(raw).decode(), **there)
        await self._host._request(protocol.CLIENT_REQUESTS["fs/writeFile"], params)

    async def list(self, path: str = ".") -> Sequence[str]:
        """Names, sorted; those of folders end with `/`."""
        target, there = await self._path(path)
        params = protocol.FsReadDirectoryParams(path=target, **there)
        answer = await self._host._request(protocol.CLIENT_REQUESTS["fs/readDirectory"], params)
        return sorted(f"{entry.file_name}/" if entry.is_directory else entry.file_name for entry in answer.entries)

    async def upload(self, src: str | Path, *, to: str) -> None:
        """Copies a file of this machine into the workspace."""
        await self.write(to, await anyio.Path(src).read_bytes())

    async def download(self, path: str, *, to: str | Path) -> Path:
        """Copies a file of the workspace to this machine, and gives where it is."""
        await anyio.Path(to).write_bytes(await self.read_bytes(path))
        return Path(to)
