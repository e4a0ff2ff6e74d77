"""Agents whose work outlives every process. Start with `Agent`, `Host` and `tool`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._agent import Agent, Limits
    from ._backends import Backend, Command, Docker, Kubernetes, Local, Podman, Ssh
    from ._capabilities import Capability, RuntimeInfo
    from ._decisions import Answer, Approve, Decision, Defer, Grant, Reject, Replace, Respond, Retry
    from ._errors import (
        BackendError,
        ConfigError,
        DecisionConflict,
        LimitExceeded,
        OarlockError,
        ProtocolError,
        ProviderError,
        ProviderFailed,
        RpcError,
        RuntimeMismatch,
        SandboxUnavailable,
        StoreError,
        TaskBusy,
        TaskExists,
        TaskNotFound,
        ToolError,
        TransportClosed,
        TurnFailed,
        TurnInterrupted,
        TurnPaused,
    )
    from ._events import Event, Notice, TextDelta, ToolPending
    from ._files import Files
    from ._host import Host
    from ._ids import TaskInfo
    from ._manifest import Dir, Entry, GitRepo, LocalDir, LocalFile, Manifest, Secret, Text
    from ._pending import (
        Pending,
        PendingBase,
        PendingCommand,
        PendingFileChange,
        PendingFunction,
        PendingPermissions,
        PendingTool,
        PendingUserInput,
        Policy,
    )
    from ._providers import (
        Anthropic,
        Chat,
        Key,
        ModelCapabilities,
        ModelProvider,
        ModelRequest,
        Offline,
        OpenAI,
        Provider,
    )
    from ._results import Completed, Failed, Image, Input, Interrupted, Paused, Skill, TaskUsage, TurnResult, Usage
    from ._run import Run
    from ._sync import SyncFiles, SyncHost, SyncRun, SyncTask
    from ._task import Task, TurnSettings
    from ._tools import BuiltinTool, FunctionTool, Tool, ToolContext, ToolDecorator, tool
    from ._typing import Effects

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Anthropic",
    "Answer",
    "Approve",
    "Backend",
    "BackendError",
    "BuiltinTool",
    "Capability",
    "Chat",
    "Command",
    "Completed",
    "ConfigError",
    "Decision",
    "DecisionConflict",
    "Defer",
    "Dir",
    "Docker",
    "Effects",
    "Entry",
    "Event",
    "Failed",
    "Files",
    "FunctionTool",
    "GitRepo",
    "Grant",
    "Host",
    "Image",
    "Input",
    "Interrupted",
    "Key",
    "Kubernetes",
    "LimitExceeded",
    "Limits",
    "Local",
    "LocalDir",
    "LocalFile",
    "Manifest",
    "ModelCapabilities",
    "ModelProvider",
    "ModelRequest",
    "Notice",
    "OarlockError",
    "Offline",
    "OpenAI",
    "Paused",
    "Pending",
    "PendingBase",
    "PendingCommand",
    "PendingFileChange",
    "PendingFunction",
    "PendingPermissions",
    "PendingTool",
    "PendingUserInput",
    "Podman",
    "Policy",
    "ProtocolError",
    "Provider",
    "ProviderError",
    "ProviderFailed",
    "Reject",
    "Replace",
    "Respond",
    "Retry",
    "RpcError",
    "Run",
    "RuntimeInfo",
    "RuntimeMismatch",
    "SandboxUnavailable",
    "Secret",
    "Skill",
    "Ssh",
    "StoreError",
    "SyncFiles",
    "SyncHost",
    "SyncRun",
    "SyncTask",
    "Task",
    "TaskBusy",
    "TaskExists",
    "TaskNotFound",
    "TaskInfo",
    "Text",
    "TextDelta",
    "Tool",
    "ToolContext",
    "ToolDecorator",
    "ToolError",
    "ToolPending",
    "TransportClosed",
    "TurnFailed",
    "TurnInterrupted",
    "TurnPaused",
    "TurnResult",
    "TurnSettings",
    "TaskUsage",
    "Usage",
    "tool",
]

# Loaded when first asked for: a program does not wait for the parts that it does not use.
_NAMES = {
    "_agent": "Agent Limits",
    "_backends": "Backend Command Docker Kubernetes Local Podman Ssh",
    "_capabilities": "Capability RuntimeInfo",
    "_decisions": "Answer Approve Decision Defer Grant Reject Replace Respond Retry",
    "_errors": (
        "BackendError ConfigError DecisionConflict LimitExceeded OarlockError ProtocolError ProviderError "
        "ProviderFailed RpcError RuntimeMismatch SandboxUnavailable StoreError TaskBusy TaskExists TaskNotFound "
        "ToolError TransportClosed TurnFailed TurnInterrupted TurnPaused"
    ),
    "_events": "Event Notice TextDelta ToolPending",
    "_files": "Files",
    "_host": "Host",
    "_ids": "TaskInfo",
    "_manifest": "Dir Entry GitRepo LocalDir LocalFile Manifest Secret Text",
    "_pending": (
        "Pending PendingBase PendingCommand PendingFileChange PendingFunction PendingPermissions PendingTool "
        "PendingUserInput Policy"
    ),
    "_providers": "Anthropic Chat Key ModelCapabilities ModelProvider ModelRequest Offline OpenAI Provider",
    "_results": "Completed Failed Image Input Interrupted Paused Skill TaskUsage TurnResult Usage",
    "_run": "Run",
    "_sync": "SyncFiles SyncHost SyncRun SyncTask",
    "_task": "Task TurnSettings",
    "_tools": "BuiltinTool FunctionTool Tool ToolContext ToolDecorator tool",
    "_typing": "Effects",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
