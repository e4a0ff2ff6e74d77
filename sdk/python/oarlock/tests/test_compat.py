"""The prototype's names: programs of its five shapes, with nothing changed but the import line."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from oarlock import ConfigError
from oarlock._bridge import ModelBridge
from oarlock.compat import sdk_v2
from oarlock.compat.sdk_v2 import (
    Agent,
    ApproveDecision,
    Artifacts,
    DeferDecision,
    Dir,
    ExecCommand,
    FunctionTool,
    LocalBackend,
    LocalBackendOptions,
    LocalDir,
    LocalFile,
    Manifest,
    PendingCommandExecution,
    PendingFunctionToolCall,
    ReadFile,
    RejectDecision,
    ReplaceCommandDecision,
    RespondDecision,
    RunDecision,
    Task,
    ToolDecision,
    UnifiedExecCapability,
    Wait,
)
from oarlock.testing import Call, ScriptedModel, Step, pending

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The prototype knew asyncio only."""
    return "asyncio"


PRINTS = """
async def show(events):
    async for event in events:
        if event.method == "item/agentMessage/delta":
            print(event.params["delta"], end="", flush=True)
    print()
"""
LOOKUP = """
class LookUp(FunctionTool):
    name = "look_up"
    description = "Looks an order up."
    input_schema = {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
        "additionalProperties": False,
    }

    async def approve(self, call):
        return ApproveDecision() if call.arguments["order"].startswith("demo") else DeferDecision()

    async def run(self, arguments):
        return f"{arguments['order']}: delivered"
"""
SESSION = """
import asyncio
from oarlock.compat.sdk_v2 import Agent, LocalBackend, LocalBackendOptions, Manifest

async def main():
    backend = LocalBackend()
    manifest = Manifest(root="/workspace")
    session = await backend.create_session(manifest=manifest, options=LocalBackendOptions())
    task = await Agent(manifest=manifest, backend=backend).start(session=session)
    try:
        print(await task.collect_text("Say hello."))
        print(task.session.workspace_root.is_dir())
    finally:
        await task.close()
    print(session.workspace_root.exists())

asyncio.run(main())
"""
FUNCTION = (
    """
import asyncio
from oarlock.compat.sdk_v2 import Agent, ApproveDecision, DeferDecision, FunctionTool, LocalBackendOptions, Manifest
"""
    + LOOKUP
    + """
async def main():
    agent = Agent(manifest=Manifest(root="/workspace"), tools=(LookUp(),))
    task = await agent.start(backend_options=LocalBackendOptions())
    try:
        print(await task.collect_text("Look demo-1 up."))
    finally:
        await task.close()

asyncio.run(main())
"""
)
# Like the prototype's own, it never closes its task.
PENDING = (
    """
import asyncio
from oarlock.compat.sdk_v2 import Agent, ApproveDecision, DeferDecision, ExecCommand, FunctionTool, Manifest
from oarlock.compat.sdk_v2 import ReplaceCommandDecision, WriteStdin
"""
    + LOOKUP
    + PRINTS
    + """
async def decide(call):
    if call.command.startswith("ls"):
        return ApproveDecision()
    if call.command.startswith("cat"):
        return ReplaceCommandDecision(command=["echo", "instead"])
    return DeferDecision()

async def main():
    tools = (ExecCommand.with_approval_policy(policy=decide), WriteStdin, LookUp())
    task = await Agent(manifest=Manifest(), tools=tools).start()
    await show(task.run("Go."))
    while task.pending_tool_calls():
        for call in task.pending_tool_calls():
            print(call.describe())
            await call(task)
        await show(task.resume())

asyncio.run(main())
"""
)
FOLDER = (
    """
import asyncio, sys
from pathlib import Path
from oarlock.compat.sdk_v2 import Agent, Dir, ListDir, LocalBackendOptions, LocalDir, Manifest, ReadFile
"""
    + PRINTS
    + """
async def main():
    manifest = Manifest(root="/workspace", entries={"examples": LocalDir(src=Path(sys.argv[1])), "notes": Dir()})
    task = await Agent(manifest=manifest, tools=(ListDir, ReadFile)).start(backend_options=LocalBackendOptions())
    try:
        await show(task.run("List the examples."))
    finally:
        await task.close()

asyncio.run(main())
"""
)
FILE = (
    """
import asyncio, sys
from pathlib import Path
from oarlock.compat.sdk_v2 import Agent, Dir, LocalBackendOptions, LocalFile, Manifest
"""
    + PRINTS
    + """
async def main():
    form = LocalFile(src=Path(sys.argv[1]) / "form.txt")
    manifest = Manifest(root="/workspace", entries={"data": Dir(children={"form.txt": form}), "output": Dir()})
    agent = Agent(manifest=manifest, developer_instructions="You fill forms in.")
    task = await agent.start(backend_options=LocalBackendOptions())
    try:
        await show(task.run("Fill the form in."))
        for call in task.pending_tool_calls():
            print(call.describe())
    finally:
        await task.close()

asyncio.run(main())
"""
)


@asynccontextmanager
async def upstream(model: ScriptedModel) -> AsyncIterator[dict[str, str]]:
    """An endpoint of the Responses API, and the environment in which programs use it."""
    bridge = ModelBridge(model)
    async with anyio.create_task_group() as group:
        await bridge.open(cast(Any, group.start_soon))
        yield {"OPENAI_API_KEY": bridge._token, "OPENAI_BASE_URL": f"http://127.0.0.1:{bridge._port}/v1"}
        group.cancel_scope.cancel()
    await bridge.aclose()
    model.assert_done()


async def run(program: str, model: ScriptedModel, *arguments: str) -> str:
    package = Path(__file__).parent.parent
    paths = f"{package / 'src'}:{package.parent / 'oarlock-protocol' / 'src'}"
    async with upstream(model) as environment:
        with anyio.fail_after(90):
            done = await anyio.run_process(
                [sys.executable, "-X", "dev", "-W", "error", "-c", program, *arguments],
                env={**os.environ, **environment, "PYTHONPATH": paths},
                check=False,
            )
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr and b"was destroyed" not in done.stderr, done.stderr.decode()
    return done.stdout.decode()


async def test_a_session_made_by_the_program() -> None:
    assert await run(SESSION, ScriptedModel("Hello.")) == "Hello.\nTrue\nFalse\n"


async def test_a_function_tool() -> None:
    model = ScriptedModel(Call("look_up", {"order": "demo-1"}), "It was delivered.")
    assert await run(FUNCTION, model) == "It was delivered.\n"
    assert model.seen[0].tools == ["exec_command", "write_stdin", "look_up"]
    assert model.seen[1].last_output == "demo-1: delivered"


async def test_policies_and_pending_calls() -> None:
    model = ScriptedModel(
        Call("exec_command", {"cmd": "ls -a"}),
        Call("exec_command", {"cmd": "touch made"}),
        Call("look_up", {"order": "real-1"}),
        Call("exec_command", {"cmd": "cat README.md"}),
        "All done.",
    )
    printed = await run(PENDING, model)
    assert "Approve command: touch made" in printed
    assert "Run function tool look_up({'order': 'real-1'})" in printed
    assert printed.endswith("All done.\n")
    assert ".." in model.seen[1].last_output
    assert model.seen[3].last_output == "real-1: delivered"
    assert "instead" in model.seen[4].last_output


async def test_a_folder_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "hello.py").write_text("print('hello')\n")
    model = ScriptedModel(Call("list_dir", {"dir_path": "examples"}), "There is hello.py.")
    printed = await run(FOLDER, model, str(tmp_path))
    assert "There is hello.py." in printed
    assert model.seen[0].tools[:4] == ["exec_command", "write_stdin", "list_dir", "read_file"]


async def test_a_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "form.txt").write_text("name:\n")
    model = ScriptedModel(Call("exec_command", {"cmd": "cp data/form.txt output/"}))
    assert "Approve command: cp data/form.txt output/" in await run(FILE, model, str(tmp_path))
    assert "You fill forms in." in model.seen[0].text


class Pay(FunctionTool):
    """Asked about always."""

    name = "pay"
    description = "Pays."
    input_schema = {"type": "object", "properties": {"cents": {"type": "integer"}}}  # noqa: RUF012

    def __init__(self, opinion: ToolDecision | None = None) -> None:
        self.opinion = opinion
        self.paid: list[int] = []

    async def approve(self, call: PendingFunctionToolCall) -> ToolDecision | None:
        return self.opinion

    def instructions(self) -> str | None:
        return "Pay with care."

    async def run(self, arguments: dict[str, Any]) -> Any:
        self.paid.append(arguments["cents"])
        return {"paid": arguments["cents"]}


@asynccontextmanager
async def started(pay: Pay, *steps: Step) -> AsyncIterator[tuple[Task, ScriptedModel]]:
    model = ScriptedModel(*steps)
    agent = Agent(manifest=Manifest(), tools=(pay,), capabilities=(), backend=LocalBackend(provider=model), model=None)
    task = await agent.start()
    try:
        yield task, model
    finally:
        await task.close()
    model.assert_done()


@pytest.mark.parametrize(
    ("decision", "paid", "output"),
    [
        (ApproveDecision(for_session=True), [5], '{\n  "paid": 5\n}'),
        (RunDecision(arguments={"cents": 7}), [7], '{\n  "paid": 7\n}'),
        (RespondDecision({"by": "hand"}), [], '{\n  "by": "hand"\n}'),
        (RejectDecision(), [], "pay was rejected by the host"),
    ],
)
async def test_decisions_about_a_function(decision: ToolDecision, paid: list[int], output: str) -> None:
    pay = Pay(decision)
    async with started(pay, Call("pay", {"cents": 5}), "done") as (task, model):
        assert await task.collect_text("Pay.") == "done"
        assert [_ async for _ in task.resume()] == []
    assert pay.paid == paid
    assert model.seen[1].last_output == output
    assert "Pay with care." in model.seen[0].text


async def test_what_is_pending_is_decided_by_the_program() -> None:
    pay = Pay()
    calls = [Call("pay", {"cents": cents}) for cents in (1, 2, 3, 4)]
    async with started(pay, *calls, "done") as (task, model):
        assert await task.collect_text("Pay.") == ""
        [call] = task.pending_tool_calls()
        assert isinstance(call, PendingFunctionToolCall)
        with pytest.raises(RuntimeError, match="pending"):
            [_ async for _ in task.run("More.")]
        with pytest.raises(RuntimeError, match="pending"):
            [_ async for _ in task.resume()]
        assert not await task.apply_tool_decision(call)
        await task.run_function_tool(call, arguments={"cents": 10})
        assert call.resolved and task.pending_tool_calls() == []
        [_ async for _ in task.resume()]
        [call] = task.pending_tool_calls()
        assert isinstance(call, PendingFunctionToolCall)
        await task.submit_tool_result(call, "by hand")
        [_ async for _ in task.resume()]
        [call] = task.pending_tool_calls()
        pay.opinion = ApproveDecision()
        assert await task.apply_tool_decision(call)
        pay.opinion = None
        [_ async for _ in task.resume()]
        [call] = task.pending_tool_calls()
        await task.reject(call, cancel=True)
        methods = [event.method async for event in task.resume()]
        assert methods[-1] == "turn/completed"
        model._steps.clear()
    assert pay.paid == [10, 3]


async def test_commands_are_approved_rejected_and_replaced(tmp_path: Path) -> None:
    one, two, three = (Call("exec_command", {"cmd": f"echo {n} >> said"}) for n in (1, 2, 3))
    model = ScriptedModel(one, two, "done", three, "done")
    agent = Agent(manifest=Manifest(), backend=LocalBackend(provider=model), model=None)
    task = await agent.start(backend_options=LocalBackendOptions(workspace_root=tmp_path))
    try:
        with anyio.fail_after(60):
            [_ async for _ in task.run("Go.")]
            [call] = task.pending_tool_calls()
            assert isinstance(call, PendingCommandExecution) and call.command == "echo 1 >> said"
            await task.approve(call)
            [_ async for _ in task.resume()]
            [call] = task.pending_tool_calls()
            assert isinstance(call, PendingCommandExecution)
            await task.replace_command(call, ["sh", "-c", "echo other >> said"])
            [_ async for _ in task.resume()]
            assert task.pending_tool_calls() == []
            [_ async for _ in task.run("Go.")]
            [call] = task.pending_tool_calls()
            await task.reject(call)
            [_ async for _ in task.resume()]
    finally:
        await task.close()
    assert (tmp_path / "said").read_text() == "1\nother\n"


def test_what_cannot_work_is_said() -> None:
    with pytest.raises(ConfigError, match="no such tool"):
        Agent(manifest=Manifest(), tools=(Artifacts,))._core()
    with pytest.raises(ValueError, match="duplicate"):
        Agent(manifest=Manifest(), tools=(Pay(), Pay()))._core()
    with pytest.raises(TypeError, match="must define name"):
        Agent(manifest=Manifest(), tools=(FunctionTool,))._core()
    call = sdk_v2._pending.from_core(pending("pay", {}))
    for decision in (ReplaceCommandDecision(["ls"]), ToolDecision()):
        with pytest.raises(TypeError):
            sdk_v2._pending.to_core(decision, call)


async def test_a_key_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(RuntimeError, match="OPENAI_API_KEY"):
        await Agent(manifest=Manifest()).start()


def test_the_later_policy_of_a_tool_counts() -> None:
    async def first(call: PendingCommandExecution) -> ToolDecision | None:
        return DeferDecision()

    async def second(call: PendingCommandExecution) -> ToolDecision | None:
        return ApproveDecision()

    class Bundle(sdk_v2.Capability):
        def tools(self) -> Any:
            return (ExecCommand.with_approval_policy(policy=first), ReadFile)

        def instructions(self) -> str | None:
            return "Be brief."

        def process_manifest(self, manifest: Manifest) -> Manifest:
            return Manifest(root=manifest.root, entries={**manifest.entries, Path("a/b"): Dir(description="notes")})

    bundle = Bundle()
    tools = (ExecCommand.with_approval_policy(policy=second), ExecCommand, Wait)
    core = Agent(manifest=Manifest(), capabilities=(UnifiedExecCapability(), bundle), tools=tools)._core()
    assert {
        tool.name: getattr(tool.approval, "__name__", None) for tool in core.tools if not isinstance(tool, type)
    } == {
        "exec_command": "second",
        "write_stdin": None,
        "read_file": None,
        "wait_agent": None,
    }
    assert core.instructions == "Be brief."
    entries = bundle.process_manifest(Manifest(entries={"c": LocalDir("x"), "d": LocalFile("y")})).entries
    assert list(sdk_v2._manifest.to_core(Manifest(entries=entries)).entries) == ["c", "d", "a/b"]


def test_every_name_is_there() -> None:
    assert all(hasattr(sdk_v2, name) for name in sdk_v2.__all__)
    assert {tool.builtin_spec().tool_name for tool in sdk_v2.ALL_BUILTIN_TOOLS} >= {"exec_command", "test_sync_tool"}
