"""What people see: reprs, notebooks, a turn on the terminal; and hooks of capabilities."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import anyio
import pytest

from oarlock import Agent, Approve, Capability, Local, Task, TurnResult, tool
from oarlock._show import TurnPrinter
from oarlock.events import CommandOutput, Event, ItemCompleted, ItemStarted, Notice, TextDelta
from oarlock.testing import Call, ScriptedModel, offline_host
from oarlock.tools import ExecCommand
from test_pending import until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("needs_provides")]


@tool
def refund(order: str) -> str:
    """Refund an order."""
    return "paid"


async def test_a_turn_is_shown_as_it_happens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ScriptedModel(
        Call("exec_command", {"cmd": "echo <made>"}), Call("refund", {"order": "A-17"}), "It is <paid>."
    )
    agent = Agent(
        tools=[ExecCommand, refund],
        tool_set="replace",
        sandbox="danger-full-access",
        settings={"approval_policy": "never"},
    )
    async with offline_host(model, backend=Local(tmp_path)) as host:
        task = await host.start(agent, task_id="A-17")
        assert repr(task) == "<Task A-17: no turn yet>"
        run = task.run("go", timeout=60)
        assert repr(run) == "<Run of task A-17: new>"
        await run.print()
        shown = capsys.readouterr().out
        assert "<made>" in shown and "echo" in shown
        assert shown.endswith("[waits] refund(order='A-17')\n[paused]\n")
        assert "<li><code>refund(order=&#x27;A-17&#x27;)</code></li>" in run._repr_html_()
        assert repr(task) == "<Task A-17: 1 wait for a decision>"
        [call] = await task.pending()
        await task.decide(call, Approve())
        run = task.resume(timeout=60)
        await run.print()
        assert capsys.readouterr().out.endswith("It is <paid>.\n[completed]\n")
        assert "<pre>It is &lt;paid&gt;.</pre>" in run._repr_html_()
        assert "<b>Task A-17</b>: completed<pre>It is &lt;paid&gt;.</pre>" in task._repr_html_()


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def show(out: StringIO, *events: Event) -> str:
    printer = TurnPrinter(out)
    for event in events:
        printer.show(event)
    printer.end("completed")
    return out.getvalue()


COMMAND: dict[str, Any] = {
    "type": "commandExecution",
    "id": "c",
    "command": "/bin/bash -lc 'ls -l | wc'",
    "cwd": "/",
    "status": "completed",
    "commandActions": [],
    "aggregatedOutput": "".join(f"{number}\n" for number in range(25)),
    "exitCode": 3,
}


async def test_a_command_is_shown_as_it_was_written_and_with_its_output() -> None:
    plain = show(StringIO(), ItemStarted.of(1, COMMAND), ItemCompleted.of(2, COMMAND))
    assert plain.startswith("$ ls -l | wc\n… 5 lines\n5\n")
    assert plain.endswith("24\n[completed] $ ls -l | wc (3)\n[completed]\n")
    # Output that was shown as it came is not shown again.
    streamed = show(StringIO(), CommandOutput(item_id="c", text="0\n"), ItemCompleted.of(2, COMMAND))
    assert streamed == "0\n[completed] $ ls -l | wc (3)\n[completed]\n"


async def test_a_terminal_has_colours_and_obeys_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    said = TextDelta(item_id="t", text="a\x1b[2Jb\n")
    assert show(Terminal(), said) == "a\ufffd[2Jb\n\x1b[32m[completed]\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert show(Terminal(), said) == "a\ufffd[2Jb\n[completed]\n"
    assert show(StringIO(), said) == "a\x1b[2Jb\n[completed]\n"


class Diary(Capability):
    """Writes down how turns end."""

    id: ClassVar[str] = "diary"

    def __init__(self) -> None:
        self.lines: list[str] = []

    async def on_start(self, task: Task[Any]) -> None:
        self.lines.append("start")

    async def on_turn_end(self, task: Task[Any], result: TurnResult[Any]) -> None:
        self.lines.append(f"{result.status}: {result.text}")
        if result.text == "two":
            raise ZeroDivisionError


async def test_capabilities_hear_of_the_end_of_turns() -> None:
    diary = Diary()
    async with offline_host(ScriptedModel("one", "two")) as host:
        task = await host.start(Agent(capabilities=[diary], tool_set="replace"))
        notices: list[Event] = []

        async def listen() -> None:
            async for event in task.events():
                if isinstance(event, Notice):
                    notices.append(event)

        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await task.run("go", timeout=60)
            await task.run("go", timeout=60)
            await until(lambda: bool(notices))
            group.cancel_scope.cancel()
    assert diary.lines == ["start", "completed: one", "completed: two"]
    assert [event.message for event in notices if isinstance(event, Notice)] == [
        "on_turn_end of diary raised ZeroDivisionError: "
    ]


async def test_a_notice_that_nobody_heard_is_kept_for_the_first_who_listens() -> None:
    async with offline_host(ScriptedModel("one", "two")) as host:
        task = await host.start(Agent(tool_set="replace"))
        task._follower.notice("early")
        events = [event async for event in task.run("go", timeout=60)]
        assert [event.message for event in events if isinstance(event, Notice)] == ["early"]
        task._follower.notice("later")
        followed = task.events()
        assert await anext(followed) == Notice(seq=events[-1].seq, message="later")
        again = [event async for event in task.run("go", timeout=60)]
        assert not any(isinstance(event, Notice) for event in again)
