"""The same without an event loop, and inside one that runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from oarlock import Agent, Approve, Local, Offline, Paused, SyncHost
from oarlock.events import TurnCompleted
from oarlock.tools import ExecCommand

HELLO = Agent(name="hello", tool_set="replace")


def test_a_program_without_an_event_loop(tmp_path: Path) -> None:
    agent = Agent(name="worker", tools=[ExecCommand], tool_set="replace", ask="host", sandbox="danger-full-access")
    with SyncHost(provider=Offline(), backend=Local(tmp_path)) as host:
        assert host.run(HELLO, "say good morning", timeout=60).result().unwrap().endswith("good morning")
        task = host.start(agent, task_id="A-17")
        paused = task.run("run touch made", timeout=60).result()
        assert isinstance(paused, Paused)
        task.decide(task.pending()[0], Approve())
        assert task.resume(timeout=60).result().status == "completed"
        assert "made" in task.files.list()
        events = list(task.run("say hello", timeout=60))
        assert isinstance(events[-1], TurnCompleted)
        with task.run("say a b c d e f", timeout=60) as run:
            assert "".join(run.text_deltas()).endswith("a b c d e f")
        assert {info.id for info in host.tasks()} >= {"A-17"}


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> str:
        with SyncHost(provider=Offline()) as host:
            return host.run(HELLO, "say good morning", timeout=60).result().unwrap()

    assert asyncio.run(notebook()).endswith("good morning")


def test_the_generated_file_is_in_sync() -> None:
    script = Path(__file__).parent.parent / "scripts" / "generate_sync.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
