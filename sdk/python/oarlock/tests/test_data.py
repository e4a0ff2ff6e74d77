"""Descriptions as data: inputs, manifests, decisions, digests, settings. No binary."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from oarlock_protocol import Operation

from oarlock import (
    Agent,
    Answer,
    Anthropic,
    Approve,
    Chat,
    ConfigError,
    Defer,
    Dir,
    GitRepo,
    Grant,
    Image,
    Key,
    LocalDir,
    LocalFile,
    Manifest,
    OpenAI,
    Pending,
    PendingCommand,
    PendingFileChange,
    PendingPermissions,
    PendingTool,
    PendingUserInput,
    Reject,
    Replace,
    Respond,
    Retry,
    Secret,
    Skill,
    Text,
    tool,
)
from oarlock._decisions import to_wire
from oarlock._embedded import EmbeddedHost
from oarlock._inputs import to_user_input
from oarlock._manifest import PlannedFile, planned_files
from oarlock._pending import pending_of
from oarlock._plan import plan_agent
from oarlock._providers import host_arguments
from oarlock.capabilities import Compaction, Files, Mcp, Memory, Shell, Skills
from oarlock.events import ToolPending, TurnPaused
from oarlock.tools import ApplyPatch, ExecCommand


@pytest.fixture(autouse=True)
def home() -> None:
    """Nothing here needs a program."""


def test_input_of_every_kind(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_bytes(b"\x89PNG...")
    parts = to_user_input(["look", Image(picture), Image(b"\xff\xd8\xff"), Skill("draw")])
    assert parts[0]["text"] == "look"
    assert parts[1] == {"type": "image", "url": "data:image/png;base64,iVBORy4uLg=="}
    assert parts[2]["url"].startswith("data:image/jpeg;base64,")
    assert parts[3]["text"] == "$draw"
    [linked] = to_user_input([Image("https://example.com/a.png")])
    assert linked["url"] == "https://example.com/a.png"
    [read] = to_user_input([Image(str(picture))])
    assert read["url"].startswith("data:image/png;base64,")


def test_a_manifest_is_planned_and_has_a_digest(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / ".git").mkdir(parents=True)
    (source / ".git" / "config").write_text("secret")
    (source / "a.py").write_text("a")
    (source / "b.txt").write_text("b")
    digest = hashlib.sha256(b"b").hexdigest()
    manifest = Manifest(
        entries={
            "text": Text("hello", mode=0o600),
            "bytes": b"\x00",
            "code": LocalDir(source, include=["*.py"]),
            "one": LocalFile(source / "b.txt", sha256=digest),
            "made": Dir({"deep": Dir({"x": "y"})}),
        },
        env={"TOKEN": Secret("token"), "LANG": "C"},
        setup=[["make"]],
    )
    files = {str(part.path): part.data for part in planned_files(manifest) if isinstance(part, PlannedFile)}
    assert files == {"text": b"hello", "bytes": b"\x00", "code/a.py": b"a", "one": b"b", "made/deep/x": b"y"}
    assert manifest.digest() == manifest.merged(Manifest()).digest()
    assert manifest.digest() != manifest.merged(Manifest(entries={"more": GitRepo("https://example.com/x")})).digest()
    wrong: list[tuple[Any, str]] = [
        (LocalFile(source / "missing"), "is not a file"),
        (LocalFile(source / "a.py", sha256="0"), "is not the file with sha256"),
        (LocalDir(source / "missing"), "is not a folder"),
        (GitRepo("https://example.com/x"), "needs a placement"),
    ]
    for entry, message in wrong:
        with pytest.raises(ConfigError, match=message):
            list(planned_files(Manifest(entries={"x": entry})))


def test_the_model_is_told_what_is_in_the_workspace() -> None:
    children: dict[str, str | Text] = {"a.csv": Text("1", describe="one row"), "b.csv": "2"}
    manifest = Manifest(entries={"data": Dir(children, describe="all we know"), "plain": "x"})
    agent = Agent(instructions="Count.", manifest=manifest)
    told = "Count.\n\nIn the workspace:\n- data: all we know\n- data/a.csv: one row"
    assert plan_agent(agent).instructions == told
    assert plan_agent(Agent(manifest=Manifest(entries={"plain": "x"}))).instructions is None


def test_decisions_on_the_wire() -> None:
    def wire(decision: Any) -> Any:
        written = to_wire(decision)
        assert written is not None
        return written.to_wire()

    assert wire(Approve("session")) == {"type": "approve", "scope": "session"}
    assert wire(Reject("no", end_turn=True)) == {"type": "reject", "message": "no", "endTurn": True}
    assert wire(Replace(command=["ls"]))["command"] == ["ls"]
    assert wire(Replace(arguments={"a": 1}))["arguments"] == {"a": 1}
    assert json.loads(wire(Respond({"a": 1}))["contentItems"][0]["text"]) == {"a": 1}
    answers = json.loads(wire(Answer({"q": "yes", "r": ["a", "b"]}))["contentItems"][0]["text"])
    assert answers == {"answers": {"q": {"answers": ["yes"]}, "r": {"answers": ["a", "b"]}}}
    granted = json.loads(wire(Grant({"network": True}, "session"))["contentItems"][0]["text"])
    assert granted == {"permissions": {"network": True}, "scope": "session"}
    assert wire(Retry()) == {"type": "retry"}
    assert to_wire(Defer()) is None
    with pytest.raises(ConfigError, match="exactly one"):
        Replace()


def operation(kind: str, arguments: Any, decisions: tuple[str, ...] = ("accept",), tool: str = "tool") -> Pending:
    wire = {
        "operationId": "thread:turn:call",
        "threadId": "thread",
        "taskId": "thread",
        "state": "proposed",
        "type": kind,
        "tool": tool,
        "namespace": None,
        "itemId": "call",
        "agentPath": ["root"],
        "arguments": arguments,
        "argumentsDigest": "sha256:0",
        "effects": "once",
        "availableDecisions": list(decisions),
        "reason": None,
        "attempt": 0,
        "decision": None,
        "createdAtMs": 0,
        "updatedAtMs": 0,
    }
    return pending_of(Operation.from_wire(wire))


def test_what_waits_is_one_of_a_closed_union() -> None:
    command = operation(
        "command", {"command": ["/bin/bash", "-lc", "ls -a"], "commandActions": [{"type": "listFiles"}]}
    )
    assert isinstance(command, PendingCommand)
    assert (command.describe(), command.is_read_only(), command.turn_id) == ("ls -a", True, "turn")
    words = operation("command", {"command": ["rm", "a b"]})
    assert isinstance(words, PendingCommand)
    assert words.describe() == "rm 'a b'" and not words.is_read_only()
    change = operation("fileChange", {"changes": {"a.txt": {"type": "add"}}})
    assert isinstance(change, PendingFileChange) and change.describe() == "change a.txt"
    asked = operation("userInput", {"questions": [{"id": "q", "question": "Which?"}]})
    assert isinstance(asked, PendingUserInput) and asked.describe() == "Which?" and "answer" in asked.allowed
    permissions = operation("permission", {"permissions": {"network": True}})
    assert isinstance(permissions, PendingPermissions) and "grant" in permissions.allowed
    assert permissions.describe() == 'permissions {"network": true}'
    other = operation("mcpTool", "plain text")
    assert isinstance(other, PendingTool) and other.describe() == "tool(input='plain text')"
    served = operation("mcpTool", {"cents": 5}, tool="mcp__desk__pay__now")
    assert isinstance(served, PendingTool) and (served.server, served.tool) == ("desk", "pay__now")
    assert served.describe() == "desk.pay__now(cents=5)"
    shown = TurnPaused(seq=3, turn_id="turn", pending=(command,)).to_json()
    assert (shown["type"], shown["pending"][0]["command"]) == ("turn_paused", "ls -a")
    assert ToolPending(seq=1, call=command).to_json()["call"]["allowed"] == ["approve", "defer"]


def test_the_digest_of_an_agent_covers_what_a_task_relies_on() -> None:
    @tool(effects="readonly")
    def look(path: str) -> str:
        """Looks."""
        return path

    agent = Agent(tools=[look, ExecCommand, ApplyPatch(approval=lambda call: None)])
    same = Agent(tools=[look, ExecCommand, ApplyPatch(approval=lambda call: Approve())])
    assert agent.digest() == same.digest()
    assert agent.digest() != Agent(tools=[look]).digest()
    # Tools of a capability count as the agent's own.
    assert Agent(capabilities=[Files()]).digest() != Agent(capabilities=[Files(read_only=True)]).digest()
    assert Agent(capabilities=[Compaction(1)]).digest() != Agent(capabilities=[Compaction(2)]).digest()
    assert look("a") == "a" and repr(look) == "<tool look: readonly>"


def test_settings_of_the_capabilities_that_come_along() -> None:
    assert [tool.name for tool in Shell().tools() if not isinstance(tool, type)] == ["exec_command"]
    assert len(Files().tools()) == len(Files(read_only=True).tools()) + 1
    assert Compaction(1_000).settings() == {"model_auto_compact_token_limit": 1_000}
    assert Memory(generate=False).settings()["memories.generate_memories"] is False
    assert list(Skills("x").manifest(Manifest()).entries) == [".agents/skills"]
    repository = GitRepo("https://example.com/skills.git")
    assert Skills(repository).manifest(Manifest()).entries == {".agents/skills": repository}
    assert Mcp("docs", url="https://example.com/mcp").settings() == {"mcp_servers.docs.url": "https://example.com/mcp"}
    for wrong in (Mcp("none"), Mcp("both", command=["a"], url="https://example.com/mcp")):
        with pytest.raises(ConfigError, match="either `command` or `url`"):
            wrong.settings()
    settings = Mcp("git", command=["mcp-git", "--all"], env={"A": "b"}).settings()
    assert settings["mcp_servers.git.args"] == ["--all"] and settings["mcp_servers.git.env"] == {"A": "b"}


def test_a_password_of_a_database_is_in_no_command_line() -> None:
    plain, secret = EmbeddedHost("postgres://oar@db/tasks"), EmbeddedHost("postgres://oar:hush@db/tasks")
    assert plain._store_arguments()[:2] == ["--store", "postgres://oar@db/tasks"] and plain._store_variables() == {}
    assert "hush" not in " ".join(secret._store_arguments())
    assert secret._store_variables() == {"OARLOCK_STORE": "postgres://oar:hush@db/tasks"}
    named = EmbeddedHost("postgres://oar@db/tasks?sslmode=require&password=hush")
    assert "--store" not in named._store_arguments()
    assert named._store_variables() == {"OARLOCK_STORE": "postgres://oar@db/tasks?sslmode=require&password=hush"}


def test_keys_are_read_by_the_host() -> None:
    assert host_arguments(OpenAI()) == ["--provider", "openai"]
    assert 'env_key = "KEY"' in host_arguments(OpenAI(key=Key(env="KEY")))[-1]
    assert 'wire_api = "messages"' in host_arguments(Anthropic())[-1]
    command = host_arguments(Chat(base_url="http://x/v1", key=Key(command=["pass", "show"])))[-1]
    assert 'auth = { command = "pass", args = ["show"] }' in command
    assert 'args = ["/k"]' in host_arguments(Chat(base_url="http://x/v1", key=Key(file=Path("/k"))))[-1]
    assert host_arguments("mine") == ["--provider", "mine"] and host_arguments(None) == []
