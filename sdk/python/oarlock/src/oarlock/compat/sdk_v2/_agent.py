"""The prototype's agent and backend: an embedded host per task."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..._agent import Agent as CoreAgent
from ..._backends import Local
from ..._host import Host
from ..._providers import OpenAI, Provider
from ..._workspace import fill
from ._manifest import Manifest, to_core
from ._task import Task
from ._tools import AdaptedFunction, Capability, FunctionTool, Tool, UnifiedExecCapability, adapt, lets_others_run


@dataclass(slots=True)
class LocalBackendOptions:
    """Where a session works, and with which program."""

    workspace_root: Path | None = None
    codex_binary: Path | None = None


class LocalSession:
    """A folder with what the manifest asks for."""

    def __init__(self, *, workspace_root: Path, binary: Path | None, owned_workspace: bool) -> None:
        self.workspace_root = workspace_root
        self.binary = binary
        self.owned_workspace = owned_workspace

    async def stop(self) -> None:
        if self.owned_workspace:
            shutil.rmtree(self.workspace_root, ignore_errors=True)


class LocalBackend:
    """This machine.

    Args:
        codex_binary: the `oarlock` program; the usual one where it is unset
        provider: what carries model requests; OpenAI, at OPENAI_BASE_URL where that is set
    """

    def __init__(self, *, codex_binary: Path | None = None, provider: Provider | None = None) -> None:
        self.codex_binary = codex_binary
        self.provider = provider

    async def create_session(self, *, manifest: Manifest, options: LocalBackendOptions | None = None) -> LocalSession:
        """Makes the folder. Files that are there already are not overwritten."""
        options = options or LocalBackendOptions()
        is_owned = options.workspace_root is None
        root = options.workspace_root or Path(tempfile.mkdtemp(prefix="oarlock-session-"))
        fill(root, to_core(manifest))
        return LocalSession(
            workspace_root=root, binary=options.codex_binary or self.codex_binary, owned_workspace=is_owned
        )

    def _provider(self) -> Provider:
        if self.provider is not None:
            return self.provider
        if not os.environ.get("OPENAI_API_KEY"):
            raise RuntimeError("OPENAI_API_KEY must be set, or LocalBackend(provider=…) given")
        return OpenAI(base_url=os.environ.get("OPENAI_BASE_URL"))


class OwnedHost:
    """A host in a task of its own, so that it ends with `stop`, or with the event loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._stop = asyncio.Event()
        self._opened: asyncio.Future[Host] = asyncio.get_running_loop().create_future()
        self._life = asyncio.ensure_future(self._live())

    async def _live(self) -> None:
        try:
            async with self._host as host:
                self._opened.set_result(host)
                await self._stop.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    async def opened(self) -> Host:
        return await self._opened

    async def stop(self) -> None:
        self._stop.set()
        await self._life


@dataclass(slots=True)
class Agent:
    """A description of an agent, and `start`."""

    manifest: Manifest
    model: str | None = "gpt-5.2-codex"
    base_instructions: str | None = None
    developer_instructions: str | None = None
    tools: Sequence[Tool | type[Tool]] = ()
    capabilities: Sequence[Capability] = field(default_factory=lambda: (UnifiedExecCapability(),))
    backend: LocalBackend = field(default_factory=LocalBackend)
    approval_policy: str | None = None

    async def start(
        self, *, backend_options: LocalBackendOptions | None = None, session: LocalSession | None = None
    ) -> Task:
        """A task with a host of its own, ended by `task.close()`."""
        provider = self.backend._provider()
        manifest = replace(self.manifest)
        for capability in self.capabilities:
            manifest = capability.process_manifest(manifest)
        agent = self._core()
        if session is None:
            session = await self.backend.create_session(manifest=manifest, options=backend_options)
        host = OwnedHost(Host(provider=provider, runtime=session.binary, backend=Local(session.workspace_root)))
        try:
            task = await (await host.opened()).start(agent)
        except BaseException:
            await host.stop()
            raise
        functions = {tool.name: tool for tool in agent.tools if isinstance(tool, AdaptedFunction)}
        return Task(session, task, host, functions)

    def _core(self) -> CoreAgent[None]:
        tools = adapt([*(tool for capability in self.capabilities for tool in capability.tools()), *self.tools])
        sections = [
            self.developer_instructions,
            *(capability.instructions() for capability in self.capabilities),
            *(tool.wrapped.instructions() for tool in tools if isinstance(tool, AdaptedFunction)),
        ]
        return CoreAgent(
            name="sdk_v2",
            model=self.model,
            base_instructions=self.base_instructions,
            instructions="\n\n".join(section for section in sections if section) or None,
            tools=tools,
            tool_set="replace",
            ask="host",
            approval=lets_others_run,
            settings={"approval_policy": self.approval_policy} if self.approval_policy is not None else {},
        )


__all__ = ["Agent", "FunctionTool", "LocalBackend", "LocalBackendOptions", "LocalSession", "OwnedHost"]
