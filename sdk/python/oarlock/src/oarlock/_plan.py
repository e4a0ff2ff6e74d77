"""An agent with its capabilities put together: what its tasks are started with, and who judges a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._agent import Agent
from ._capabilities import Capability, RuntimeInfo, policy_of
from ._errors import ConfigError
from ._manifest import Manifest, describe_workspace
from ._pending import Policy
from ._records import record
from ._tools import BuiltinTool, FunctionTool, Tool
from ._typing import JSON


@record()
class AgentPlan:
    """The tools, policies and settings of an agent and its capabilities."""

    agent: Agent[Any]
    capabilities: tuple[Capability, ...]
    functions: Mapping[str, FunctionTool[Any, Any, Any]]
    builtins: Mapping[str, BuiltinTool]
    manifest: Manifest
    settings: Mapping[str, JSON]
    capability_policies: tuple[Policy, ...]
    notices: tuple[str, ...]
    instructions: str | None

    def policies_for(self, tool: str) -> list[Policy]:
        """In the order in which they are asked."""
        declared: Tool[Any] | None = self.functions.get(tool) or self.builtins.get(tool)
        first = [declared.approval] if declared is not None and declared.approval is not None else []
        last = [self.agent.approval] if self.agent.approval is not None else []
        return [*first, *self.capability_policies, *last]

    def asking_functions(self) -> list[str]:
        """A tool that only looks does not wait, unless somebody has an opinion about it."""
        return [
            name
            for name, function in self.functions.items()
            if function.effects != "readonly" or self.policies_for(name)
        ]

    def tool_set(self) -> Mapping[str, JSON] | None:
        """As `thread/start` takes it. Nothing where the runtime's own choice is meant."""
        asking = self.asking_functions()
        per_tool = {name: "host" if name in asking else "runtime" for name in self.functions}
        per_tool |= {name: "host" for name, builtin in self.builtins.items() if builtin.approval is not None}
        is_replaced = self.agent.tool_set == "replace"
        if not per_tool and not self.builtins and self.agent.ask == "runtime" and not is_replaced:
            return None
        return {
            "mode": self.agent.tool_set,
            # Additive: also those that the runtime would not offer by itself.
            "builtin": {"allow": list(self.builtins)} if is_replaced or self.builtins else {},
            "dynamic": [_declared(function) for function in self.functions.values()],
            "approval": {"default": self.agent.ask, "perTool": per_tool},
        }

    def provides(self) -> list[dict[str, str]]:
        """The tools that this process runs."""
        return [
            {"name": function.name, "schemaDigest": function.schema_digest()} for function in self.functions.values()
        ]


def _declared(function: FunctionTool[Any, Any, Any]) -> Mapping[str, JSON]:
    return {
        "name": function.name,
        "description": function.description,
        "inputSchema": dict(function.input_schema),
        "effects": function.effects,
    }


# Where it is not known yet, or must not matter.
ANYWHERE = RuntimeInfo(target="", os="", shell=None, version="")


def plan_agent(agent: Agent[Any], info: RuntimeInfo = ANYWHERE) -> AgentPlan:
    """Checks the agent; what cannot work is a ConfigError before anything starts."""
    capabilities = _ordered(agent.capabilities)
    functions: dict[str, FunctionTool[Any, Any, Any]] = {}
    builtins: dict[str, BuiltinTool] = {}
    notices: list[str] = []
    fragments: list[str] = [agent.instructions] if agent.instructions else []
    manifest, settings = agent.manifest, dict(agent.settings)
    for capability in capabilities:
        offered = [_instance(tool) for tool in capability.tools()]
        there = [tool for tool in offered if _is_there(tool)]
        for tool in there:
            _add(tool, functions, builtins, capability.id)
        missing = [tool.name for tool in offered if tool not in there]
        if missing:
            notices.append(f"{capability.id}: this release has no {', '.join(missing)}")
        manifest = capability.manifest(manifest)
        settings |= capability.settings()
        if fragment := capability.instructions(info):
            if offered and not there:
                notices.append(f"instructions of {capability.id} are left out: none of its tools is there")
            else:
                fragments.append(fragment)
    if described := describe_workspace(manifest):
        fragments.append(described)
    for given in agent.tools:
        _add(_instance(given), functions, builtins, f"agent {agent.name}")
    if "request_user_input" in builtins:
        # By itself a runtime lets the model ask in its plan mode alone.
        settings.setdefault("features.default_mode_request_user_input", True)
    policies = tuple(policy for capability in capabilities if (policy := policy_of(capability)))
    return AgentPlan(
        agent=agent,
        capabilities=tuple(capabilities),
        functions=functions,
        builtins=builtins,
        manifest=manifest,
        settings=settings,
        capability_policies=policies,
        notices=tuple(notices),
        instructions="\n\n".join(fragments) or None,
    )


def _ordered(capabilities: Sequence[Capability]) -> list[Capability]:
    ordered = sorted(capabilities, key=lambda capability: capability.order)
    ids = {capability.id for capability in ordered}
    for capability in ordered:
        if missing := capability.requires - ids:
            raise ConfigError(f"capability {capability.id} requires {', '.join(sorted(missing))}")
    return ordered


def _instance(tool: Tool[Any] | type[BuiltinTool]) -> Tool[Any]:
    if not isinstance(tool, type):
        return tool
    return tool()


def _add(
    tool: Tool[Any],
    functions: dict[str, FunctionTool[Any, Any, Any]],
    builtins: dict[str, BuiltinTool],
    where: str,
) -> None:
    match tool:
        case FunctionTool():
            if tool.name in functions and functions[tool.name] is not tool:
                raise ConfigError(f"{where}: there is a tool {tool.name} already; give this one another name")
            functions[tool.name] = tool
        case BuiltinTool():
            before = builtins.get(tool.name)
            # The same tool again: the later policy counts.
            if before is None or tool.approval is not None:
                builtins[tool.name] = tool
        case _:
            raise ConfigError(f"{where}: {tool!r} is not a tool; decorate the function with @tool")


def _is_there(tool: Tool[Any]) -> bool:
    """A capability may be written for a later release, with tools that this one does not have."""
    from . import tools

    known = (getattr(tools, name) for name in tools.__all__)
    return not isinstance(tool, BuiltinTool) or any(tool.name == builtin.tool_name for builtin in known)
