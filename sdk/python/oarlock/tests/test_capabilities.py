"""Capabilities with a real host: which tools and words the model gets, and whose policy counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from oarlock import (
    Agent,
    Approve,
    BuiltinTool,
    Capability,
    Decision,
    Local,
    ModelRequest,
    PendingCommand,
    Reject,
    RuntimeInfo,
    tool,
)
from oarlock import tools as builtins
from oarlock._typing import JSON
from oarlock.capabilities import Compaction, Files, Shell
from oarlock.events import Notice
from oarlock.testing import Call, ScriptedModel, offline_host
from oarlock.tools import ExecCommand, ReadFile

pytestmark = pytest.mark.anyio


@tool(effects="readonly")
def clock() -> str:
    """The time."""
    return "noon"


class Fly(BuiltinTool):
    tool_name = "fly"


class Words(Capability):
    """Some tools and some words."""

    id: ClassVar[str] = "words"

    def __init__(self, *offered: Any, words: str = "Be careful.") -> None:
        self._offered, self._words = offered, words
        self.seen: list[RuntimeInfo] = []

    def tools(self) -> Sequence[Any]:
        return self._offered

    def instructions(self, env: RuntimeInfo) -> str | None:
        self.seen.append(env)
        return self._words


async def shown(agent: Agent[Any], tmp_path: Path) -> tuple[list[str], str, list[str]]:
    """The tools and the text that a model gets, and notices."""
    model = ScriptedModel("done")
    async with offline_host(model, backend=Local(tmp_path)) as host:
        task = await host.start(agent)
        notices = [event.message async for event in task.run("go", timeout=60) if isinstance(event, Notice)]
    return model.seen[0].tools, model.seen[0].text, notices


async def test_tools_that_are_named_are_there_in_either_mode(tmp_path: Path) -> None:
    added, _, _ = await shown(Agent(capabilities=[Files()]), tmp_path)
    assert {"read_file", "list_dir", "grep_files", "apply_patch", "update_plan", "exec_command"} <= set(added)
    plain, _, _ = await shown(Agent(), tmp_path)
    assert "read_file" not in plain and set(plain) <= set(added)
    replaced, _, _ = await shown(Agent(tools=[ReadFile], tool_set="replace"), tmp_path)
    assert replaced == ["read_file"]


async def test_words_about_tools_that_are_not_there_are_left_out(tmp_path: Path) -> None:
    for capability, is_told, said in (
        (Words(Fly), False, ["words: this release has no fly", "words are left out: none of its tools"]),
        (Words(Fly, clock), True, ["words: this release has no fly"]),
        (Words(), True, []),
    ):
        offered, text, notices = await shown(Agent(capabilities=[capability], tool_set="replace"), tmp_path)
        assert ("Be careful." in text) is is_told
        assert offered == (["clock"] if clock in capability.tools() else [])
        assert len(notices) == len(said)
        assert all(words in notice for words, notice in zip(said, notices, strict=True))
        info = capability.seen[0]
        assert (info.os, info.version) == ("linux", "0.1.0") and info.target.endswith("-unknown-linux")


async def test_the_later_policy_of_a_built_in_counts(tmp_path: Path) -> None:
    def no(call: PendingCommand) -> Decision | None:
        return Reject("not by the capability")

    def yes(call: PendingCommand) -> Decision | None:
        return Approve()

    model = ScriptedModel(Call("exec_command", {"cmd": "touch made"}), "done")
    agent = Agent(
        capabilities=[Shell(no)],
        tools=[ExecCommand(approval=yes)],
        tool_set="replace",
        sandbox="danger-full-access",
    )
    async with offline_host(model, backend=Local(tmp_path)) as host:
        assert (await host.run(agent, "go", timeout=60)).status == "completed"
    assert (tmp_path / "made").exists()


async def test_the_runtime_knows_every_built_in_by_its_name(tmp_path: Path) -> None:
    every = [getattr(builtins, name) for name in builtins.__all__ if name != "BuiltinTool"]
    async with offline_host(backend=Local(tmp_path)) as host:
        await host.start(Agent(tools=every, tool_set="replace"))


async def test_a_provider_is_told_what_a_request_is_for() -> None:
    asked: list[tuple[str, str, str]] = []

    class Telling(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
            asked.append((request.purpose, request.thread_id, request.segment_id.rsplit(":", 1)[1]))
            async for event in super().stream(request):
                yield event

    model = Telling("one", "all of it, in short", "two")
    async with offline_host(model) as host:
        task = await host.start(Agent(tool_set="replace", capabilities=[Compaction(1)]))
        for word in ("first", "second"):
            (await task.run(word, timeout=60)).unwrap()
    assert [purpose for purpose, _, _ in asked] == ["turn", "compaction", "turn"]
    assert {thread for _, thread, _ in asked} == {task.id}
    assert [segment for _, _, segment in asked] == ["0", "0", "0"]
