"""Where a new task works: a folder that is made here, or a placement that the host makes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import oarlock_protocol as protocol

from ._backends import Backend, Command, Docker, Kubernetes, Local, Ssh
from ._errors import ConfigError
from ._manifest import Manifest, PlannedFile, planned_files
from ._placing import manifest_of, name_of, needs_placement, settings_of, words_of, workspace_of
from ._records import record
from ._typing import JSON

if TYPE_CHECKING:
    from ._session import Session


@record()
class TaskPlace:
    """As `thread/start` takes it; nothing where the host chooses by itself."""

    cwd: str | None = None
    placement: protocol.PlacementSpec | None = None
    config: Mapping[str, JSON] = field(default_factory=dict)
    """The table of a placement that the host need not know."""

    def params(self) -> dict[str, Any]:
        given = {"cwd": self.cwd, "placement": self.placement}
        return {name: value for name, value in given.items() if value is not None}


def prepare_place(session: Session, thread_id: str, backend: Backend | None, manifest: Manifest) -> TaskPlace:
    """Makes the folder where it is one of this machine; else describes the place to the host."""
    match backend:
        case None | Local():
            return _local(session, thread_id, backend, manifest)
        case str():
            return TaskPlace(placement=_described(session, backend, workspace_of(backend, manifest), manifest))
        case Docker() | Ssh() | Kubernetes() | Command():
            name = name_of(backend)
            if not session.is_here and words_of(backend) is None:
                raise ConfigError(
                    f"backend: {backend!r}: a host on another machine has placements of its own; give the name of one"
                )
            # In words where they say all; else with its table, for a host that was started without it.
            words = words_of(backend)
            config = {f"placements.{name}": settings_of(backend)} if words is None else {}
            described = _described(session, words or name, workspace_of(backend, manifest), manifest)
            return TaskPlace(placement=described, config=config)


def _local(session: Session, thread_id: str, backend: Local | None, manifest: Manifest) -> TaskPlace:
    embedded = session.embedded
    workspace = backend.workspace if backend is not None else None
    # Said where the program says it: a host that somebody else started may run tasks elsewhere by default.
    named = protocol.PlacementSpec(backend="local") if backend is not None else None
    if embedded is None:
        if manifest_of(manifest, is_here=session.is_here) is None:
            return TaskPlace(cwd=str(workspace) if workspace is not None else None, placement=named)
        there = str(workspace) if workspace is not None else None
        return TaskPlace(placement=_described(session, "local", there, manifest))
    folder = Path(workspace).absolute() if workspace is not None else embedded.workspace(thread_id)
    if not needs_placement(manifest):
        fill(folder, manifest)
        return TaskPlace(cwd=str(folder), placement=named)
    taken = [path for path in manifest.entries if path != "." and (folder / path).exists()]
    if taken:
        raise ConfigError(f"manifest: {folder / taken[0]} is there already and is not overwritten")
    os.makedirs(folder, exist_ok=True)
    return TaskPlace(placement=_described(session, "local", str(folder), manifest))


def _described(session: Session, backend: str, workspace: str | None, manifest: Manifest) -> protocol.PlacementSpec:
    written = manifest_of(manifest, is_here=session.is_here)
    return protocol.PlacementSpec(backend=backend, workspace=workspace, manifest=written)


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
