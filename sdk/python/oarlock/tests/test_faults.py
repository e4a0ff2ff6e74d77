"""Kills of the program, the host and the runtime at every step of a task, on SQLite and Postgres.

A few of them by default, all with OARLOCK_FAULTS=all (`scripts/figures --only python-faults`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fault_life import STEPS, hosts_of

pytestmark = pytest.mark.usefixtures("home")

VICTIMS = ("program", "host", "runtime")
EFFECTS = ("readonly", "idempotent", "once")
ALL = [(victim, step, effects) for victim in VICTIMS for step in STEPS for effects in EFFECTS]
# A tool that only looks is not asked about: it has no pause.
ALL = [case for case in ALL if case[2] != "readonly" or case[1] not in ("paused", "decided")]
FEW = [
    ("program", "decided", "once"),
    ("program", "after", "once"),
    ("program", "before", "idempotent"),
    ("host", "after", "once"),
    ("host", "paused", "once"),
    ("host", "asked", "readonly"),
    ("runtime", "after", "once"),
    ("runtime", "asked", "idempotent"),
]
IS_FULL = os.environ.get("OARLOCK_FAULTS") == "all"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Path]:
    """A server of its own, reached by a socket; stopped afterwards."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        pytest.skip("Postgres is not installed")
    folder = Path(tempfile.mkdtemp(prefix="oarlock-pg-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        as_user = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    folder.chmod(0o755)
    data = str(folder / "data")

    def run(program: str, *arguments: str) -> None:
        command = [*as_user, str(programs[-1] / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=60)

    run("initdb", "-D", data, "-A", "trust", "-U", "oar", "--no-sync")
    options = f"-c listen_addresses='' -c fsync=off -k {folder}"
    subprocess.run(
        [*as_user, str(programs[-1] / "pg_ctl"), "-D", data, "-w", "-l", str(folder / "log"), "-o", options, "start"],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
    )
    try:
        yield folder
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def database(server: Path, name: str) -> str:
    command = ["psql", "-h", str(server), "-U", "oar", "-d", "postgres", "-qc", f'CREATE DATABASE "{name}"']
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return f"postgres://oar@{str(server).replace('/', '%2F')}/{name}"


def live(store: str, folder: Path, effects: str, victim: str, step: str) -> int:
    here = Path(__file__).parent
    paths = [here.parent / "src", here.parent.parent / "oarlock-protocol" / "src"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, str(here / "fault_life.py"), store, str(folder), effects, victim, step]
    with (folder / "stderr").open("ab") as errors:
        return subprocess.run(command, env=environment, stderr=errors, timeout=120).returncode


def check(store: str, folder: Path, victim: str, step: str, effects: str) -> None:
    """First a life with a kill in it, then lives until the task has ended."""
    codes = [live(store, folder, effects, victim, step)]
    while codes[-1] != 0 and len(codes) < 4:
        codes.append(live(store, folder, effects, "nobody", ""))
    log = (folder / "log").read_text().splitlines()
    story = f"{codes}\n" + "\n".join(log) + "\n" + (folder / "stderr").read_text()[-2_000:]
    assert (folder / "killed").exists(), f"nothing was killed: {story}"
    assert codes[-1] == 0 and log[-1] == "ended completed", story
    done = [line for line in log if line.startswith("effect ")]
    unknown = [line.split()[1:] for line in log if line.startswith("unknown")]
    assert all({"retry", "respond", "reject"} <= set(words) for words in unknown), story
    if effects == "once":
        assert len(done) <= 1, story
        assert len(done) == 1 or unknown, story
        assert log.count("decided") <= 1, story
    else:
        # Run again, and always as the same operation: downstream it is one.
        assert len(set(done)) == 1 and not unknown, story
    assert not hosts_of(store), "a host was left behind"


@pytest.mark.parametrize(("victim", "step", "effects"), ALL if IS_FULL else FEW)
def test_on_sqlite(victim: str, step: str, effects: str, tmp_path: Path) -> None:
    check(str(tmp_path / "runs.db"), tmp_path, victim, step, effects)


@pytest.mark.parametrize(("victim", "step", "effects"), ALL if IS_FULL else FEW[1:4])
def test_on_postgres(victim: str, step: str, effects: str, tmp_path: Path, postgres: Path) -> None:
    store = database(postgres, f"{victim}_{step}_{effects}")
    check(store, tmp_path, victim, step, effects)
