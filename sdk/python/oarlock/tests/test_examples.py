"""The examples, and the programs of the documentation, as they stand."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import engines

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent.parent
CONTAINER = ROOT / "examples" / "python" / "container.py"
EXAMPLES = sorted(set((ROOT / "examples" / "python").glob("*.py")) - {CONTAINER})
# The README's program is run by test_package.
PAGES = [ROOT / "docs" / "python.md"]
BLOCKS = [
    pytest.param(page, block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL), 1)
]


def run(source: Path, folder: Path) -> str:
    paths = [PACKAGE / "src", PACKAGE.parent / "oarlock-protocol" / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, str(source)], cwd=folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(example: Path, tmp_path: Path) -> None:
    check(example, tmp_path)


@pytest.mark.parametrize("engine", ["docker", "podman"], indirect=True)
def test_the_example_for_containers(engine: engines.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE", engine.name)
    monkeypatch.setenv("IMAGE", engines.IMAGE)
    check(CONTAINER, tmp_path)
    assert engine.containers() == []


def check(example: Path, tmp_path: Path) -> None:
    doc = ast.get_docstring(ast.parse(example.read_text())) or ""
    expected = [line.removeprefix("Prints: ") for line in doc.splitlines() if line.startswith("Prints: ")]
    printed = run(example, tmp_path)
    assert expected
    assert all(line in printed for line in expected), printed


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_a_snippet_of_the_documentation_runs(page: Path, block: str, tmp_path: Path) -> None:
    source = tmp_path / "snippet.py"
    source.write_text(block)
    # The others declare things, which must work as well.
    printed = run(source, tmp_path)
    assert printed.strip() or not ("anyio.run(" in block or "SyncHost(" in block)
