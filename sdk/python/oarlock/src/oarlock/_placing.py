"""Placements and manifests as the host takes them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ._backends import Command, Docker, Kubernetes, Podman, Ssh
from ._errors import ConfigError
from ._manifest import (
    Dir,
    Entry,
    GitRepo,
    LocalDir,
    LocalFile,
    Manifest,
    PlannedFile,
    Secret,
    Text,
    checked_path,
    planned_entry,
)
from ._typing import JSON

DescribedBackend = Docker | Ssh | Kubernetes | Command
"""A place that has to be described to the host; the others it knows."""

_ROOT = "/workspace"


def settings_of(backend: DescribedBackend) -> dict[str, JSON]:
    """As a table `[placements.NAME]` of the host's configuration."""
    settings: dict[str, JSON]
    match backend:
        case Docker():
            settings = {
                "backend": "podman" if isinstance(backend, Podman) else "docker",
                "image": backend.image,
                "user": backend.user,
                "memory": backend.memory,
                "cpus": f"{backend.cpus:g}" if backend.cpus is not None else None,
                "network": backend.network,
                "mounts": list(backend.mounts) or None,
                "pull": backend.pull if backend.pull != "missing" else None,
            }
        case Ssh():
            settings = {"backend": "ssh", "host": backend.host, "workspace": backend.workspace}
        case Kubernetes():
            if (backend.image is None) == (backend.template is None):
                raise ConfigError("Kubernetes takes exactly one of `image` and `template`")
            settings = {
                "backend": "kubernetes",
                "image": backend.image,
                "template": str(Path(backend.template).absolute()) if backend.template is not None else None,
                "context": backend.context,
                "namespace": backend.namespace,
            }
        case Command():
            settings = {
                "backend": "command",
                "argv": list(backend.argv),
                "workspace": backend.workspace,
                "create": list(backend.create) if backend.create is not None else None,
                "destroy": list(backend.destroy) if backend.destroy is not None else None,
            }
    return {name: value for name, value in settings.items() if value is not None}


def name_of(backend: DescribedBackend) -> str:
    """The same for the same settings, so that every program that gives them means one placement."""
    text = json.dumps(settings_of(backend), sort_keys=True)
    return "sdk-" + hashlib.sha256(text.encode()).hexdigest()[:12]


def words_of(backend: DescribedBackend) -> str | None:
    """`BACKEND:WHAT`, where that says all: every host on this machine understands it."""
    settings = settings_of(backend)
    kind = settings.pop("backend")
    if len(settings) == 1 and (what := settings.get("image") or settings.get("host")):
        return f"{kind}:{what}"
    return None


def workspace_of(backend: DescribedBackend | str, manifest: Manifest) -> str | None:
    """The path of the workspace there, where the manifest chooses one."""
    root = str(manifest.root)
    return None if root == _ROOT or isinstance(backend, Ssh) else root


def needs_placement(manifest: Manifest) -> bool:
    """Whether only the host can make this workspace."""
    return bool(manifest.env or manifest.setup) or any(map(_has_repository, manifest.entries.values()))


def _has_repository(entry: Entry) -> bool:
    match entry:
        case GitRepo():
            return True
        case Dir():
            return any(map(_has_repository, entry.children.values()))
        case _:
            return False


def manifest_of(manifest: Manifest, *, is_here: bool) -> dict[str, JSON] | None:
    """As `thread/start.placement.manifest` takes it; nothing where it says nothing.

    Args:
        manifest: of the agent and its capabilities
        is_here: the host is on this machine and reads files itself; else their contents are sent
    """
    entries: dict[str, JSON] = {}
    for path, entry in manifest.entries.items():
        for where, written in _written(_wire_path(path, entry), entry, is_here):
            entries[where] = written
    env: dict[str, JSON] = {
        name: {"secret": value.name} if isinstance(value, Secret) else value for name, value in manifest.env.items()
    }
    setup = [list(command) for command in manifest.setup]
    found: dict[str, JSON] = {"entries": entries, "env": env, "setup": setup}
    return {name: value for name, value in found.items() if value} or None


def _wire_path(path: str, entry: Entry) -> str:
    if path == "." and isinstance(entry, Dir | LocalDir | GitRepo):
        return path
    return str(checked_path(path))


def _written(path: str, entry: Entry, is_here: bool) -> Iterator[tuple[str, JSON]]:
    match entry:
        case str():
            yield path, {"type": "text", "text": entry}
        case Text():
            if entry.ephemeral:
                raise ConfigError(f"entries: {path}: ephemeral: this host leaves nothing out of snapshots")
            yield path, _with_mode({"type": "text", "text": entry.content}, entry.mode)
        case bytes():
            yield path, {"type": "bytes", "base64": base64.b64encode(entry).decode()}
        case Dir():
            yield path, {"type": "dir"}
            for name, child in entry.children.items():
                yield from _written(_joined(path, str(checked_path(name))), child, is_here)
        case LocalFile() if is_here and entry.sha256 is None and entry.mode is None:
            yield path, {"type": "localFile", "path": _existing(path, entry.src)}
        case LocalDir() if is_here:
            chosen: dict[str, JSON] = {"include": list(entry.include), "exclude": list(entry.exclude)}
            source: dict[str, JSON] = {"type": "localDir", "path": _existing(path, entry.src)}
            yield path, source | {name: globs for name, globs in chosen.items() if globs}
        case LocalFile() | LocalDir():
            for part in planned_entry(path, entry):
                if isinstance(part, PlannedFile):
                    data: dict[str, JSON] = {"type": "bytes", "base64": base64.b64encode(part.data).decode()}
                    yield str(part.path), _with_mode(data, part.mode)
                else:
                    yield str(part), {"type": "dir"}
        case GitRepo():
            yield path, _repository(path, entry)


def _repository(path: str, entry: GitRepo) -> Mapping[str, JSON]:
    if entry.depth is not None and entry.depth < 1:
        raise ConfigError(f"entries: {path}: depth: expected a number of commits, or None for all of them")
    chosen: dict[str, JSON] = {
        "rev": entry.ref if entry.ref != "HEAD" else None,
        # All of the history is 0 on the wire.
        "depth": (entry.depth or 0) if entry.depth != 1 else None,
        "subpath": entry.subpath,
    }
    return {"type": "git", "url": entry.url} | {name: value for name, value in chosen.items() if value is not None}


def _with_mode(entry: dict[str, JSON], mode: int | None) -> dict[str, JSON]:
    return entry if mode is None else {**entry, "mode": mode}


def _joined(folder: str, path: str) -> str:
    return path if folder == "." else f"{folder}/{path}"


def _existing(path: str, source: str | Path) -> str:
    if not Path(source).exists():
        raise ConfigError(f"entries: {path}: {source} does not exist")
    return str(Path(source).absolute())
