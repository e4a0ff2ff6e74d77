"""Contents of a task's workspace: data, checked before anything starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import TypeAlias, Union

from ._errors import ConfigError
from ._records import record


@record()
class Text:
    """A text file."""

    content: str
    mode: int | None = field(default=None, kw_only=True)
    ephemeral: bool = field(default=False, kw_only=True)
    """Left out of snapshots."""
    describe: str | None = field(default=None, kw_only=True)
    """Shown to the model with the workspace."""


@record()
class Dir:
    """A folder."""

    children: Mapping[str, Entry] = field(default_factory=dict)
    describe: str | None = field(default=None, kw_only=True)


@record()
class LocalFile:
    """A copy of a file of this machine."""

    src: str | Path
    sha256: str | None = field(default=None, kw_only=True)
    mode: int | None = field(default=None, kw_only=True)


@record()
class LocalDir:
    """A copy of a folder of this machine."""

    src: str | Path
    include: Sequence[str] = field(default=(), kw_only=True)
    exclude: Sequence[str] = field(default=(".git",), kw_only=True)
    describe: str | None = field(default=None, kw_only=True)


@record()
class GitRepo:
    """A repository, resolved to a commit where the host is."""

    url: str
    ref: str = field(default="HEAD", kw_only=True)
    depth: int | None = field(default=1, kw_only=True)
    subpath: str | None = field(default=None, kw_only=True)


Entry: TypeAlias = Union[str, bytes, Text, "Dir", LocalFile, LocalDir, GitRepo]


@record()
class Secret:
    """The name of a secret. The host resolves it; it is never serialised."""

    name: str


@record(kw_only=True)
class Manifest:
    """Files, environment and setup commands of a workspace."""

    root: str | PurePosixPath = "/workspace"
    entries: Mapping[str, Entry] = field(default_factory=dict)
    env: Mapping[str, str | Secret] = field(default_factory=dict)
    setup: Sequence[Sequence[str]] = ()

    def merged(self, other: Manifest) -> Manifest:
        """Both; where they differ, `other` counts."""
        return replace(
            self,
            entries={**self.entries, **other.entries},
            env={**self.env, **other.env},
            setup=(*self.setup, *other.setup),
        )

    def digest(self) -> str:
        """Of this description: contents that it has, modes, names of secrets, and where other files come from.

        What a file or a repository that it names has in it does not count.
        """
        described = {
            "root": str(self.root),
            "entries": {path: _described(entry) for path, entry in self.entries.items()},
            "env": {key: {"secret": v.name} if isinstance(v, Secret) else v for key, v in self.env.items()},
            "setup": [list(command) for command in self.setup],
        }
        return "sha256:" + hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _described(entry: Entry) -> object:
    match entry:
        case str():
            return {"text": entry}
        case bytes():
            return {"sha256": hashlib.sha256(entry).hexdigest()}
        case Text():
            return {"text": entry.content, "mode": entry.mode, "ephemeral": entry.ephemeral}
        case Dir():
            return {"dir": {name: _described(child) for name, child in entry.children.items()}}
        case LocalFile():
            return {"localFile": str(entry.src), "sha256": entry.sha256, "mode": entry.mode}
        case LocalDir():
            return {"localDir": str(entry.src), "include": list(entry.include), "exclude": list(entry.exclude)}
        case GitRepo():
            return {"git": entry.url, "ref": entry.ref, "depth": entry.depth, "subpath": entry.subpath}


def describe_workspace(manifest: Manifest) -> str | None:
    """The entries that say what they are, as the model is told of them."""
    lines = [line for path, entry in manifest.entries.items() for line in _descriptions(path, entry)]
    return "\n".join(["In the workspace:", *lines]) if lines else None


def _descriptions(path: str, entry: Entry) -> Iterator[str]:
    if (words := getattr(entry, "describe", None)) is not None:
        yield f"- {path}: {words}"
    if isinstance(entry, Dir):
        for name, child in entry.children.items():
            yield from _descriptions(f"{path}/{name}", child)


def checked_path(path: str) -> PurePosixPath:
    """A path within the workspace."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise ConfigError(f"entries: {path!r} is not a path within the workspace; leave out `/` in front and `..`")
    return pure


@record()
class PlannedFile:
    """One file that a manifest asks for."""

    path: PurePosixPath
    data: bytes
    mode: int | None = None


def planned_files(manifest: Manifest) -> Iterator[PlannedFile | PurePosixPath]:
    """Files, and folders by their path, in the order in which they can be made."""
    for path, entry in manifest.entries.items():
        yield from _planned(checked_path(path), entry)


def planned_entry(path: str, entry: Entry) -> Iterator[PlannedFile | PurePosixPath]:
    """The files and folders of one entry."""
    yield from _planned(PurePosixPath(path), entry)


def _planned(path: PurePosixPath, entry: Entry) -> Iterator[PlannedFile | PurePosixPath]:
    match entry:
        case str():
            yield PlannedFile(path, entry.encode())
        case bytes():
            yield PlannedFile(path, entry)
        case Text():
            yield PlannedFile(path, entry.content.encode(), entry.mode)
        case Dir():
            yield path
            for name, child in entry.children.items():
                yield from _planned(path / checked_path(name), child)
        case LocalFile():
            yield _local_file(path, entry)
        case LocalDir():
            yield path
            yield from _local_dir(path, entry)
        case GitRepo():
            raise ConfigError(f"entries: {path}: GitRepo needs a placement of the host; an embedded one has none yet")


def _local_file(path: PurePosixPath, entry: LocalFile) -> PlannedFile:
    source = Path(entry.src)
    if not source.is_file():
        raise ConfigError(f"entries: {path}: {source} is not a file")
    data = source.read_bytes()
    if entry.sha256 is not None and hashlib.sha256(data).hexdigest() != entry.sha256:
        raise ConfigError(f"entries: {path}: {source} is not the file with sha256 {entry.sha256}")
    return PlannedFile(path, data, entry.mode)


def _local_dir(path: PurePosixPath, entry: LocalDir) -> Iterator[PlannedFile]:
    source = Path(entry.src)
    if not source.is_dir():
        raise ConfigError(f"entries: {path}: {source} is not a folder")
    for file in sorted(source.rglob("*")):
        inside = PurePosixPath(file.relative_to(source).as_posix())
        if file.is_symlink() or not file.is_file() or any(_fits(inside, pattern) for pattern in entry.exclude):
            continue
        if entry.include and not any(_fits(inside, pattern) for pattern in entry.include):
            continue
        yield PlannedFile(path / inside, file.read_bytes(), file.stat().st_mode & 0o777)


def _fits(path: PurePosixPath, pattern: str) -> bool:
    """The pattern means a whole path, or any folder or file on the way to it."""
    return fnmatch(str(path), pattern) or any(fnmatch(part, pattern) for part in path.parts)
