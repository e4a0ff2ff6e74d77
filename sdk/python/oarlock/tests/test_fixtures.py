"""The fixtures that pytest finds where the package is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oarlock.testing import progress_of, tool_context

TESTS = """
import pytest
from oarlock import Agent, Host
from oarlock.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_answers(offline_host: Host, scripted_model: ScriptedModel) -> None:
    scripted_model.add("hello")
    assert (await offline_host.run(Agent(tool_set="replace"), "hi", timeout=60)).unwrap() == "hello"


async def test_forgets(offline_host: Host, scripted_model: ScriptedModel) -> None:
    scripted_model.add("never asked for")
"""


def test_a_host_and_its_script_are_fixtures(tmp_path: Path) -> None:
    (tmp_path / "test_agent.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "oarlock._pytest", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "2 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "1 steps were not used, the first is 'never asked for'" in done.stdout


@pytest.mark.anyio
async def test_each_context_keeps_its_own_progress() -> None:
    first, second = tool_context("a"), tool_context("b")
    await first.progress("half way")
    assert (progress_of(first), progress_of(second)) == (["half way"], [])
    assert (first.deps, second.deps) == ("a", "b")
