"""The prototype's tools and capabilities: classes with names, and how they become ours."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from ... import _pending as waiting
from ... import _tools as core
from ..._decisions import Approve, Decision, Defer
from ..._errors import ConfigError
from ..._typing import JSON
from ._manifest import Manifest
from ._pending import PendingFunctionToolCall, PendingToolCall, ToolDecision, from_core, to_core

ApprovalPolicy: TypeAlias = Callable[[Any], "Awaitable[ToolDecision | None] | ToolDecision | None"]


class Tool:
    """Something the model can call."""


@dataclass(frozen=True, slots=True)
class BuiltinToolSpec:
    """The name that the model knows a tool of the runtime by."""

    tool_name: str


@dataclass(frozen=True, slots=True)
class ConfiguredBuiltinTool(Tool):
    """A tool of the runtime with a policy."""

    tool_type: type[BuiltinTool]
    approval_policy: ApprovalPolicy | None = None

    def builtin_spec(self) -> BuiltinToolSpec:
        return self.tool_type.builtin_spec()


class BuiltinTool(Tool):
    """A tool of the runtime."""

    codex_builtin_tool: ClassVar[str]

    @classmethod
    def builtin_spec(cls) -> BuiltinToolSpec:
        name = getattr(cls, "codex_builtin_tool", "")
        if not name:
            raise TypeError(f"{cls.__name__} must define codex_builtin_tool")
        return BuiltinToolSpec(name)

    @classmethod
    def with_approval_policy(cls, *, policy: ApprovalPolicy) -> ConfiguredBuiltinTool:
        return ConfiguredBuiltinTool(cls, policy)


class FunctionTool(Tool):
    """A tool of this program: name, description and schema as attributes, `run` as its body."""

    name: ClassVar[str]
    description: ClassVar[str]
    input_schema: ClassVar[dict[str, Any]]

    @classmethod
    def dynamic_tool_spec(cls) -> dict[str, Any]:
        for attribute in ("name", "description", "input_schema"):
            if not getattr(cls, attribute, None):
                raise TypeError(f"{cls.__name__} must define {attribute}")
        return {"name": cls.name, "description": cls.description, "inputSchema": cls.input_schema}

    async def approve(self, call: PendingFunctionToolCall) -> ToolDecision | None:
        """None leaves the call pending."""
        return None

    def instructions(self) -> str | None:
        return None

    async def run(self, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError


class ExecCommand(BuiltinTool):
    codex_builtin_tool = "exec_command"


class WriteStdin(BuiltinTool):
    codex_builtin_tool = "write_stdin"


class Shell(BuiltinTool):
    codex_builtin_tool = "shell"


class UpdatePlan(BuiltinTool):
    codex_builtin_tool = "update_plan"


class RequestUserInput(BuiltinTool):
    codex_builtin_tool = "request_user_input"


class ApplyPatch(BuiltinTool):
    codex_builtin_tool = "apply_patch"


class WebSearch(BuiltinTool):
    codex_builtin_tool = "web_search"


class ViewImage(BuiltinTool):
    codex_builtin_tool = "view_image"


class SearchToolBm25(BuiltinTool):
    codex_builtin_tool = "search_tool_bm25"


class ReadFile(BuiltinTool):
    codex_builtin_tool = "read_file"


class ListDir(BuiltinTool):
    codex_builtin_tool = "list_dir"


class GrepFiles(BuiltinTool):
    codex_builtin_tool = "grep_files"


class ListMcpResources(BuiltinTool):
    codex_builtin_tool = "list_mcp_resources"


class ListMcpResourceTemplates(BuiltinTool):
    codex_builtin_tool = "list_mcp_resource_templates"


class ReadMcpResource(BuiltinTool):
    codex_builtin_tool = "read_mcp_resource"


class SpawnAgent(BuiltinTool):
    codex_builtin_tool = "spawn_agent"


class SendInput(BuiltinTool):
    codex_builtin_tool = "send_input"


class ResumeAgent(BuiltinTool):
    codex_builtin_tool = "resume_agent"


class Wait(BuiltinTool):
    """`wait` is another tool here; this one waits for child agents, as the prototype's did."""

    codex_builtin_tool = "wait_agent"


class CloseAgent(BuiltinTool):
    codex_builtin_tool = "close_agent"


class SpawnAgentsOnCsv(BuiltinTool):
    codex_builtin_tool = "spawn_agents_on_csv"


class JsRepl(BuiltinTool):
    codex_builtin_tool = "js_repl"


class JsReplReset(BuiltinTool):
    codex_builtin_tool = "js_repl_reset"


class Artifacts(BuiltinTool):
    """Not there: an agent that names it is refused."""

    codex_builtin_tool = "artifacts"


class ReportAgentJobResult(BuiltinTool):
    codex_builtin_tool = "report_agent_job_result"


class TestSyncTool(BuiltinTool):
    __test__ = False
    codex_builtin_tool = "test_sync_tool"


ALL_BUILTIN_TOOLS: tuple[type[BuiltinTool], ...] = (
    ExecCommand,
    WriteStdin,
    Shell,
    UpdatePlan,
    RequestUserInput,
    ApplyPatch,
    WebSearch,
    ViewImage,
    SearchToolBm25,
    ReadFile,
    ListDir,
    GrepFiles,
    ListMcpResources,
    ListMcpResourceTemplates,
    ReadMcpResource,
    SpawnAgent,
    SendInput,
    ResumeAgent,
    Wait,
    CloseAgent,
    SpawnAgentsOnCsv,
    JsRepl,
    JsReplReset,
    Artifacts,
    ReportAgentJobResult,
    TestSyncTool,
)


class Capability:
    """Tools, instructions and a change of the manifest that belong together."""

    def tools(self) -> Sequence[Tool | type[Tool]]:
        return ()

    def instructions(self) -> str | None:
        return None

    def process_manifest(self, manifest: Manifest) -> Manifest:
        return manifest


@dataclass(frozen=True, slots=True)
class UnifiedExecCapability(Capability):
    """Commands in a terminal."""

    def tools(self) -> Sequence[Tool | type[Tool]]:
        return (ExecCommand, WriteStdin)


# ---- as ours ----


class _GivenSchema:
    """Stands where the schema of a signature would: the tool brings its own."""

    takes_context = False

    def __init__(self, schema: Mapping[str, JSON]) -> None:
        self.input_schema = schema

    def arguments(self, given: JSON) -> dict[str, Any]:
        return {"arguments": dict(given or {})}

    def plain(self, given: JSON) -> dict[str, JSON]:
        return dict(given or {})

    def dump(self, value: Any) -> JSON:
        return json.dumps(value, indent=2, sort_keys=True)


class AdaptedFunction(core.FunctionTool[Any, Any, Any]):
    """A `FunctionTool` of the prototype as one of ours: `effects="once"`, asked about by its `approve`."""

    def __init__(self, tool: FunctionTool) -> None:
        spec = tool.dynamic_tool_spec()
        self.wrapped = tool
        self.name = spec["name"]
        self.description = spec["description"]
        self.input_schema = spec["inputSchema"]
        self.output_schema = None
        self.effects = "once"
        self.timeout = None
        self.strict = False
        self.fn = tool.run
        self.schema = _GivenSchema(self.input_schema)  # type: ignore[assignment]
        self.approval = policy_of(tool.approve)
        self.reconciler = None


class _AdaptedBuiltin(core.BuiltinTool):
    def __init__(self, name: str, policy: ApprovalPolicy | None) -> None:
        super().__init__(approval=policy_of(policy) if policy is not None else None)
        self.name = name


def policy_of(policy: ApprovalPolicy) -> waiting.Policy:
    """The prototype's policy as one of ours. One that gives nonsense leaves the call pending, with a notice."""

    async def decide(call: waiting.Pending) -> Decision | None:
        pending = from_core(call)
        given = policy(pending)
        decision = await given if inspect.isawaitable(given) else given
        # None is no opinion: nothing but people decide after it.
        return to_core(decision, pending) or Defer()

    decide.__name__ = getattr(policy, "__name__", "policy")
    return decide


def lets_others_run(call: waiting.Pending) -> Decision | None:
    """Only commands, patches and function tools wait in the prototype; a tool with a policy was asked before this."""
    return Approve() if isinstance(call, waiting.PendingTool) else None


def adapt(tools: Sequence[Tool | type[Tool]]) -> list[core.Tool[Any]]:
    """Ours. The same tool of the runtime again is one tool, and the later policy counts."""
    functions: dict[str, AdaptedFunction] = {}
    policies: dict[str, ApprovalPolicy | None] = {}
    taken = {tool.codex_builtin_tool for tool in ALL_BUILTIN_TOOLS}
    for tool in tools:
        given = tool() if isinstance(tool, type) and issubclass(tool, FunctionTool) else tool
        if isinstance(given, FunctionTool):
            adapted = AdaptedFunction(given)
            if adapted.name in taken:
                raise ValueError(f"function tool name collides with a tool of the runtime: {adapted.name}")
            if adapted.name in functions:
                raise ValueError(f"duplicate function tool name: {adapted.name}")
            functions[adapted.name] = adapted
            continue
        name, policy = _builtin(given)
        policies[name] = policy or policies.get(name)
    if "artifacts" in policies:
        raise ConfigError("Artifacts: this runtime has no such tool; leave it out")
    return [*(_AdaptedBuiltin(name, policy) for name, policy in policies.items()), *functions.values()]


def _builtin(tool: Tool | type[Tool]) -> tuple[str, ApprovalPolicy | None]:
    if isinstance(tool, ConfiguredBuiltinTool):
        return tool.builtin_spec().tool_name, tool.approval_policy
    kind = tool if isinstance(tool, type) else type(tool)
    if not issubclass(kind, BuiltinTool):
        raise ConfigError(f"{tool!r} is not a tool")
    return kind.builtin_spec().tool_name, None


__all__ = ["AdaptedFunction", "PendingToolCall", "adapt", "lets_others_run", "policy_of"]
