"""Capabilities that come with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, ClassVar

from ._capabilities import Capability, RuntimeInfo
from ._errors import ConfigError
from ._manifest import GitRepo, LocalDir, Manifest
from ._pending import Policy
from ._records import record
from ._tools import BuiltinTool, Tool
from ._typing import JSON
from .tools import ApplyPatch, ExecCommand, GrepFiles, ListDir, ReadFile, WriteStdin


@record()
class Shell(Capability):
    """Commands in a terminal, asked about by `policy` where there is one."""

    id: ClassVar[str] = "shell"
    policy: Policy | None = None

    def tools(self) -> Sequence[Tool[Any] | type[BuiltinTool]]:
        return (ExecCommand(approval=self.policy), WriteStdin)


@record()
class Files(Capability):
    """Reading, searching and changing files."""

    id: ClassVar[str] = "files"
    read_only: bool = False

    def tools(self) -> Sequence[Tool[Any] | type[BuiltinTool]]:
        reading: tuple[type[BuiltinTool], ...] = (ReadFile, ListDir, GrepFiles)
        return reading if self.read_only else (*reading, ApplyPatch)


@record()
class Skills(Capability):
    """Skills from a folder of this machine, or from a repository, put into the workspace."""

    id: ClassVar[str] = "skills"
    source: str | Path | GitRepo

    def manifest(self, base: Manifest) -> Manifest:
        entry = self.source if isinstance(self.source, GitRepo) else LocalDir(self.source)
        return base.merged(Manifest(entries={".agents/skills": entry}))


@record()
class Memory(Capability):
    """Notes of earlier tasks of this workspace."""

    id: ClassVar[str] = "memory"
    read: bool = True
    generate: bool = True

    def settings(self) -> Mapping[str, JSON]:
        return {
            "features.memories": self.read or self.generate,
            "memories.use_memories": self.read,
            "memories.generate_memories": self.generate,
        }


@record()
class Compaction(Capability):
    """Sums the conversation up when it has this many tokens."""

    id: ClassVar[str] = "compaction"
    threshold: int

    def settings(self) -> Mapping[str, JSON]:
        return {"model_auto_compact_token_limit": self.threshold}


@record()
class Mcp(Capability):
    """An MCP server: a command, or a URL."""

    id: ClassVar[str] = "mcp"
    name: str
    command: Sequence[str] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)

    def settings(self) -> Mapping[str, JSON]:
        key = f"mcp_servers.{self.name}"
        if bool(self.command) == (self.url is not None):
            raise ConfigError(f"Mcp {self.name}: give either `command` or `url`")
        if self.url is not None:
            return {f"{key}.url": self.url}
        settings: dict[str, JSON] = {f"{key}.command": self.command[0], f"{key}.args": list(self.command[1:])}
        if self.env:
            settings[f"{key}.env"] = dict(self.env)
        return settings

    def instructions(self, env: RuntimeInfo) -> str | None:
        return None


__all__ = ["Capability", "Compaction", "Files", "Mcp", "Memory", "RuntimeInfo", "Shell", "Skills"]
