"""An agent: a frozen description without process, key or connection."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias

from ._capabilities import Capability
from ._manifest import Manifest
from ._pending import Policy
from ._tools import BuiltinTool, Tool
from ._typing import JSON, D_contra

SandboxName: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]


class UnsetSandbox(str):
    """A sandbox that nobody chose: this one, or none where the place of the task is itself the boundary."""

    __slots__ = ()


_SANDBOX: Any = UnsetSandbox("workspace-write")


@dataclass(frozen=True, slots=True)
class Limits:
    """A budget for a task and its children. The host's own limits hold all the same, and it counts by its prices."""

    usd: float | None = None
    tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class Agent(Generic[D_contra]):
    """A description of an agent: model, instructions, tools, workspace, policies."""

    name: str = "agent"
    model: str | None = None
    """The host's default when unset."""
    instructions: str | None = None
    """Added to the runtime's own."""
    base_instructions: str | None = None
    """In place of the runtime's own."""
    deps_type: type[D_contra] | None = None
    manifest: Manifest = field(default_factory=Manifest)
    capabilities: Sequence[Capability] = ()
    tools: Sequence[Tool[D_contra] | type[BuiltinTool]] = ()
    tool_set: Literal["additive", "replace"] = "additive"
    """`replace`: the model has the tools named here and no others."""
    ask: Literal["runtime", "host"] = "runtime"
    """Who decides that a built-in asks: the runtime's policy, or `host`: every call asks."""
    approval: Policy | None = None
    """Asked last about every call that waits."""
    sandbox: SandboxName = _SANDBOX
    """`workspace-write` when unset; in a container or a pod, which is itself the sandbox, any choice is refused."""
    settings: Mapping[str, JSON] = field(default_factory=dict)
    """Configuration of the task by dotted key."""
    limits: Limits = field(default_factory=Limits)

    def digest(self) -> str:
        """Covers names, schemas, effects, instructions and manifest, also of capabilities; no bodies of functions."""
        from ._plan import plan_agent

        plan = plan_agent(self)
        facts = {
            "name": self.name,
            "model": self.model,
            "instructions": plan.instructions,
            "baseInstructions": self.base_instructions,
            "manifest": plan.manifest.digest(),
            "functions": {name: [tool.description, tool.schema_digest()] for name, tool in plan.functions.items()},
            "builtins": sorted(plan.builtins),
            "toolSet": self.tool_set,
            "ask": self.ask,
            "sandbox": self.sandbox,
            "settings": dict(plan.settings),
        }
        text = json.dumps(facts, sort_keys=True, default=str)
        return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
