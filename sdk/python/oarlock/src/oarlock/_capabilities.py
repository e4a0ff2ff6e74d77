"""Capabilities: tools, instructions, files, settings and a policy that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ._decisions import Decision
from ._manifest import Manifest
from ._pending import Pending, Policy
from ._tools import BuiltinTool, Tool
from ._typing import JSON

if TYPE_CHECKING:
    from ._results import TurnResult
    from ._task import Task


@dataclass(frozen=True, slots=True)
class RuntimeInfo:
    """Where an agent's runtime works."""

    target: str
    """For example x86_64-unknown-linux-musl."""
    os: str
    shell: str | None
    version: str


class Capability:
    """Derive from it and override what you need."""

    id: ClassVar[str]
    requires: ClassVar[frozenset[str]] = frozenset()
    """Ids of capabilities that must be there too; checked when a task starts."""
    order: ClassVar[int] = 100

    def tools(self) -> Sequence[Tool[Any] | type[BuiltinTool]]:
        return ()

    def instructions(self, env: RuntimeInfo) -> str | None:
        return None

    def manifest(self, base: Manifest) -> Manifest:
        return base

    def settings(self) -> Mapping[str, JSON]:
        return {}

    def approval(self, call: Pending) -> Decision | None:
        return None

    async def on_start(self, task: Task[Any]) -> None:
        """Called once, when a task was started."""

    async def on_turn_end(self, task: Task[Any], result: TurnResult[Any]) -> None:
        """Called after each turn that this process follows."""


def policy_of(capability: Capability) -> Policy | None:
    """Nothing where the capability has no opinion of its own."""
    if type(capability).approval is Capability.approval:
        return None
    return capability.approval


def with_turn_hook(capabilities: Sequence[Capability]) -> list[Capability]:
    """Those that want to hear of the end of a turn."""
    return [each for each in capabilities if type(each).on_turn_end is not Capability.on_turn_end]
