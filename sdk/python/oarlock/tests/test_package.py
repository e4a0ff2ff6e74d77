"""The packages as they are installed: into an empty environment, without the repository."""

from __future__ import annotations

import ast
import inspect
import os
import re
import resource
import subprocess
import sys
import sysconfig
from importlib import import_module
from pathlib import Path
from typing import Any, is_typeddict
from zipfile import ZipFile

import pytest

import oarlock

PACKAGE = Path(__file__).parent.parent
PACKAGES = [PACKAGE.parent / name for name in ("oarlock-protocol", "oarlock", "oarlock-runtime")]


def run(*command: str, **environment: str) -> str:
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "OARLOCK_BIN")}
    done = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_readme_runs_from_wheels_in_an_empty_environment(tmp_path: Path) -> None:
    # The wheel carries whatever program it is given; a debug build would take long to pack.
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\nexec "{os.environ["OARLOCK_BIN"]}" "$@"\n')
    program.chmod(0o755)
    wheels = tmp_path / "wheels"
    build = ["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    run(sys.executable, *build, "--wheel-dir", str(wheels), *map(str, PACKAGES), OARLOCK_BIN=str(program))
    names = sorted(path.name for path in wheels.iterdir())
    assert len(names) == 3
    assert "py3-none-any" in names[0] and "py3-none-any" in names[1]
    assert "py3-none-linux" in names[2]
    with ZipFile(wheels / names[0]) as wheel:
        [about] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/METADATA")]
        [entries] = [wheel.read(name).decode() for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    assert "[pytest11]\noarlock = oarlock._pytest" in entries
    needed = {line.removeprefix("Requires-Dist: ") for line in about.splitlines() if line.startswith("Requires-Dist: ")}
    # The program comes along; what talks to hosts elsewhere does not.
    assert {"oarlock-runtime~=0.1.0", "websockets>=13; extra == 'remote'"} <= needed
    environment = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = str(environment / "bin" / "python")
    [site] = environment.glob("lib/python*/site-packages")
    # The dependencies are those of the tests; only our own packages are installed.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run(sys.executable, *install, "--no-index", "--ignore-installed", *map(str, wheels.iterdir()))
    [snippet] = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    (tmp_path / "readme.py").write_text(snippet)
    assert "Utrecht: 21 degrees, dry" in run(python, str(tmp_path / "readme.py"))
    where = run(python, "-c", "import oarlock, oarlock_runtime; print(oarlock.__file__, oarlock_runtime.binary_path())")
    assert all(path.startswith(str(environment)) for path in where.split())


# Beside `oarlock` itself.
MODULES = ("capabilities", "compat.sdk_v2", "events", "providers", "testing", "tools")


def described(name: str, thing: Any) -> list[str]:
    """A name with its parameters, and those of its methods."""
    if not callable(thing) or not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return [name]
    if is_typeddict(thing):
        return [f"{name}: {' '.join(thing.__annotations__)}"]
    lines = [f"{name}{inspect.signature(thing)}"]
    if not inspect.isclass(thing):
        return lines
    for key, member in sorted(vars(thing).items()):
        if key.startswith("_"):
            continue
        kind = "property" if isinstance(member, property) else ""
        function = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        if inspect.isfunction(function):
            lines.append(f"    {kind or 'def'} {key}{inspect.signature(function)}")
    return lines


def test_the_public_interface() -> None:
    """A change here is a change for everybody who uses the package: review it, then write the file anew."""
    assert sorted(set(oarlock.__all__)) == sorted(oarlock.__all__)
    found = "".join(f"{line}\n" for name in sorted(oarlock.__all__) for line in described(name, getattr(oarlock, name)))
    for module in (import_module(f"oarlock.{name}") for name in MODULES):
        assert sorted(set(module.__all__)) == sorted(module.__all__)
        # Names of `oarlock` itself are described above.
        lines = (
            described(name, getattr(module, name)) if name not in oarlock.__all__ else [name]
            for name in sorted(module.__all__)
        )
        found += f"\n{module.__name__}\n" + "".join(
            f"    {line}\n" for described_name in lines for line in described_name
        )
    kept = PACKAGE / "tests" / "public_api.txt"
    if os.environ.get("OARLOCK_UPDATE"):
        kept.write_text(found)
    assert kept.read_text() == found, f"the public interface changed; OARLOCK_UPDATE=1 writes {kept.name}"


def undescribed(name: str, thing: Any) -> list[str]:
    """What an editor has nothing to say about. A method that overrides another has that one's words."""
    if inspect.isfunction(thing):
        return [] if inspect.getdoc(thing) else [name]
    if not inspect.isclass(thing):
        return []
    methods = [key for key, member in vars(thing).items() if not key.startswith("_") and inspect.isfunction(member)]
    found = [f"{name}.{key}" for key in methods if not inspect.getdoc(getattr(thing, key))]
    return found if inspect.getdoc(thing) else [name, *found]


def test_everything_public_says_what_it_is() -> None:
    # Not those of the prototype: their programs are written already.
    names = [name for name in MODULES if not name.startswith("compat")]
    modules = [oarlock, *(import_module(f"oarlock.{name}") for name in names)]
    # Providers and built-in tools do what their protocol and their base class say.
    silent = {"capabilities", "stream", "aclose"}
    found = [
        missing
        for module in modules
        for name in module.__all__
        for missing in undescribed(f"{module.__name__}.{name}", getattr(module, name))
        if missing.split(".")[-1] not in silent or "ModelProvider" in missing
    ]
    assert found == []


def test_the_public_names_are_where_the_package_says() -> None:
    # Type checkers read the imports, programs the table: both must say the same.
    [block] = [node for node in ast.parse(Path(oarlock.__file__).read_text()).body if isinstance(node, ast.If)][:1]
    imported = {
        alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert imported == oarlock._HOMES
    assert set(imported) == set(oarlock.__all__)


def seconds(program: str) -> float:
    """Processor time of a program, the best of some runs: what else runs here does not count."""
    best = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([sys.executable, "-c", program], check=True)
        best = min(best, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    return best


def test_importing_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(str(package / "src") for package in PACKAGES[:2]))
    program = "import sys; from oarlock import Agent, Host, tool; print(*sys.modules)"
    loaded = set(run_here(program).split())
    assert not loaded & {"anyio", "asyncio", "oarlock_protocol.types", "pydantic", "oarlock._events", "oarlock._sync"}
    ours, pydantic = seconds("from oarlock import Agent, Host, tool"), seconds("from pydantic import BaseModel")
    assert ours <= 1.5 * pydantic, f"{ours:.3f} s beside {pydantic:.3f} s of pydantic alone"


def run_here(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
