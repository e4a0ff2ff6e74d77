"""A real model server with real weights: turns, an interrupt, a server that dies. `tests/models/run` does the work."""

import subprocess
from pathlib import Path

from report import Outcome, Run, Skipped

SCRIPT = Path(__file__).resolve().parents[2] / "tests" / "models" / "run"
SECONDS = 1200


def measure(run: Run) -> Outcome:
    if run.quick:
        raise Skipped("not with --quick: a first turn of the small model takes half a minute")
    done = subprocess.run([str(SCRIPT), "--binary", str(run.binary)], capture_output=True, text=True, timeout=SECONDS)
    lines = done.stdout.splitlines()
    skipped = [line for line in lines if line.startswith("skipped: ")]
    if skipped:
        raise Skipped(skipped[0].removeprefix("skipped: "))
    failures = [line for line in lines if line.startswith("FAILED: ")]
    if done.returncode != 0 and not failures:
        failures = [done.stderr[-500:]]
    held = sum(line.startswith("ok: ") for line in lines)
    return Outcome(f"{held} of {held + len(failures)} checks hold", failures, {"checks": lines})
