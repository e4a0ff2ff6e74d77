"""Capabilities: tools, instructions, files, settings and a policy that belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ._decisions import Decision
from ._manifest import Manifest
from ._pending import Pending, Policy
from ._records import record
from ._tools import BuiltinTool, Tool
from ._typing import JSON

if TYPE_CHECKING:
    from ._results import TurnResult
    from ._task import Task


@record()
class RuntimeInfo:
    """Where an agent's runtime works, as far as its host says."""

    target: str
    """For example x86_64-unknown-linux."""
    os: str
    shell: str | None
    """Nothing where it is known only when a runtime has started."""
    version: str
    """Of the program."""


class Capability:
    """Derive from it and override what you need."""

    id: ClassVar[str]
    requires: ClassVar[frozenset[str]] = frozenset()
    """Ids of capabilities that must be there too; checked when a task starts."""
    order: ClassVar[int] = 100

    def tools(self) -> Sequence[Tool[Any] | type[BuiltinTool]]:
        """Function tools and built-in ones. A name that another capability has is an error."""
        return ()

    def instructions(self, env: RuntimeInfo) -> str | None:
        """A paragraph for the model; left out, with a notice, where none of the capability's tools is there."""
        return None

    def manifest(self, base: Manifest) -> Manifest:
        """The workspace, with what this capability needs in it: `base.merged(Manifest(…))`."""
        return base

    def settings(self) -> Mapping[str, JSON]:
        """Configuration of the task's runtime, by dotted key."""
        return {}

    def approval(self, call: Pending) -> Decision | None:
        """A decision, or nothing to pass the call on; asked after the tool's own policy and before the agent's."""
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
