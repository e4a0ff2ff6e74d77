"""The packages as they are installed: into an empty environment, without the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

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


def test_the_public_names() -> None:
    assert sorted(set(oarlock.__all__)) == sorted(oarlock.__all__)
    assert all(hasattr(oarlock, name) for name in oarlock.__all__)
    kept = PACKAGE / "tests" / "public_names.txt"
    assert kept.read_text().split() == sorted(oarlock.__all__), f"the public names changed; update {kept.name}"
