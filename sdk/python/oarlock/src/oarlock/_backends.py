"""Where a task runs, as data that the host understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, TypeAlias

from ._records import record


@record()
class Local:
    """On the host's machine."""

    workspace: str | Path | None = None
    """Work in this folder, in place. Unset: a folder of its own."""


@record()
class Docker:
    """In a container of `docker`."""

    image: str
    user: str | None = field(default=None, kw_only=True)
    memory: str | None = field(default=None, kw_only=True)
    cpus: float | None = field(default=None, kw_only=True)
    network: str | None = field(default=None, kw_only=True)
    mounts: Sequence[str] = field(default=(), kw_only=True)
    pull: Literal["missing", "always", "never"] = field(default="missing", kw_only=True)


@record()
class Podman(Docker):
    """In a container of `podman`."""


@record()
class Ssh:
    """On another machine."""

    host: str
    workspace: str | None = field(default=None, kw_only=True)


@record(kw_only=True)
class Kubernetes:
    """In a pod."""

    image: str | None = None
    template: Path | None = None
    context: str | None = None
    namespace: str | None = None


@record()
class Command:
    """Behind any command that runs what follows it."""

    argv: Sequence[str]
    workspace: str = field(default="/workspace", kw_only=True)
    create: Sequence[str] | None = field(default=None, kw_only=True)
    destroy: Sequence[str] | None = field(default=None, kw_only=True)


Backend: TypeAlias = Local | Docker | Ssh | Kubernetes | Command | str
"""A `str` names a placement of the host's configuration."""
