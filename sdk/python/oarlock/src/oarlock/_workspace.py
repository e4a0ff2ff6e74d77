"""The folder in which a task of an embedded host works."""

from __future__ import annotations

import os
from pathlib import Path

from ._backends import Backend, Local
from ._embedded import EmbeddedHost
from ._errors import ConfigError
from ._manifest import Manifest, PlannedFile, planned_files


def prepare_workspace(
    embedded: EmbeddedHost | None, thread_id: str, backend: Backend | None, manifest: Manifest
) -> str | None:
    """Makes the folder, with what the manifest asks for. Nothing where the host chooses one by itself."""
    match backend:
        case None | Local(workspace=None):
            if embedded is None:
                if manifest.entries:
                    raise ConfigError("manifest: entries need an embedded host, or a placement of the host")
                return None
            folder = embedded.workspace(thread_id)
        case Local(workspace=workspace) if workspace is not None:
            folder = Path(workspace).absolute()
        case _:
            raise ConfigError(f"backend: {backend!r}: this host runs tasks on its own machine only")
    fill(folder, manifest)
    return str(folder)


def fill(folder: Path, manifest: Manifest) -> None:
    """Writes the entries into the folder. Nothing that is there is overwritten."""
    planned = list(planned_files(manifest))
    for part in planned:
        if isinstance(part, PlannedFile) and (folder / part.path).exists():
            raise ConfigError(f"manifest: {folder / part.path} is there already and is not overwritten")
    os.makedirs(folder, exist_ok=True)
    for part in planned:
        if not isinstance(part, PlannedFile):
            os.makedirs(folder / part, exist_ok=True)
            continue
        target = folder / part.path
        os.makedirs(target.parent, exist_ok=True)
        target.write_bytes(part.data)
        if part.mode is not None:
            target.chmod(part.mode)
