"""The prototype's manifest: mutable, with paths as keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeAlias

from ... import _manifest as core


@dataclass(slots=True)
class Dir:
    """A folder."""

    children: Mapping[str | Path, Entry] = field(default_factory=dict)
    description: str | None = None


@dataclass(slots=True)
class LocalFile:
    """A copy of a file."""

    src: str | Path
    mode: int = 0o644


@dataclass(slots=True)
class LocalDir:
    """A copy of a folder with everything in it, `.git` too."""

    src: str | Path


Entry: TypeAlias = Dir | LocalFile | LocalDir


@dataclass(slots=True)
class Manifest:
    """Contents of a workspace."""

    root: str = "/workspace"
    entries: Mapping[str | Path, Entry] = field(default_factory=dict)


def to_core(manifest: Manifest) -> core.Manifest:
    return core.Manifest(
        root=manifest.root, entries={_name(name): _entry(entry) for name, entry in manifest.entries.items()}
    )


def _name(name: str | Path) -> str:
    return name.as_posix() if isinstance(name, PurePath) else name


def _entry(entry: Entry) -> core.Entry:
    match entry:
        case Dir():
            children = {_name(name): _entry(child) for name, child in entry.children.items()}
            return core.Dir(children, describe=entry.description)
        case LocalFile():
            return core.LocalFile(entry.src, mode=entry.mode)
        case LocalDir():
            return core.LocalDir(entry.src, exclude=())
