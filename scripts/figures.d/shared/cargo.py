"""Runs a test of the workspace whose count is part of a figure."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 1800


def run_test(
    package: str, test: str, variables: dict[str, str] | None = None, target: str = "--test=journal"
) -> tuple[bool | None, str]:
    """Whether the tests with this name pass (none when there is no cargo), and what they print."""
    if not shutil.which("cargo"):
        return None, "cargo is not installed"
    command = ["cargo", "test", "--package", package, target, test, "--", "--nocapture"]
    environment = {**os.environ, **(variables or {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS)
    said = done.stdout + done.stderr
    ran = sum(int(count) for count in re.findall(r"^test result: \w+\. (\d+) passed", said, re.MULTILINE))
    return done.returncode == 0 and ran > 0, said
