"""Files of a task's workspace, by the host."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import anyio
import oarlock_protocol as protocol

from ._errors import ConfigError

if TYPE_CHECKING:
    from ._host import Host


class Files:
    """The files where a task works. Paths are relative to its workspace."""

    def __init__(self, host: Host, root: str) -> None:
        self._host = host
        self._root = root

    def _path(self, path: str) -> str:
        pure = PurePosixPath(path)
        if ".." in pure.parts:
            raise ConfigError(f"{path}: leave out `..`; paths are within the workspace")
        if not self._root:
            raise ConfigError("this task was opened to read and decide only; open it with its agent to use files")
        return str(PurePosixPath(self._root) / pure)

    async def read_bytes(self, path: str) -> bytes:
        params = protocol.FsReadFileParams(path=self._path(path))
        answer = await self._host._request(protocol.CLIENT_REQUESTS["fs/readFile"], params)
        return base64.b64decode(answer.data_base64)

    async def read_text(self, path: str) -> str:
        return (await self.read_bytes(path)).decode()

    async def write(self, path: str, data: str | bytes) -> None:
        """Makes missing folders too."""
        target = self._path(path)
        folder = protocol.FsCreateDirectoryParams(path=str(PurePosixPath(target).parent), recursive=True)
        await self._host._request(protocol.CLIENT_REQUESTS["fs/createDirectory"], folder)
        raw = data.encode() if isinstance(data, str) else data
        params = protocol.FsWriteFileParams(path=target, data_base64=base64.b64encode(raw).decode())
        await self._host._request(protocol.CLIENT_REQUESTS["fs/writeFile"], params)

    async def list(self, path: str = ".") -> Sequence[str]:
        """Names, sorted; those of folders end with `/`."""
        params = protocol.FsReadDirectoryParams(path=self._path(path))
        answer = await self._host._request(protocol.CLIENT_REQUESTS["fs/readDirectory"], params)
        return sorted(f"{entry.file_name}/" if entry.is_directory else entry.file_name for entry in answer.entries)

    async def upload(self, src: str | Path, *, to: str) -> None:
        await self.write(to, await anyio.Path(src).read_bytes())

    async def download(self, path: str, *, to: str | Path) -> Path:
        await anyio.Path(to).write_bytes(await self.read_bytes(path))
        return Path(to)
