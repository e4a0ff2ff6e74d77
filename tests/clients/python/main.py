"""Runs the checks of the Python client. Usage: main.py BINARY WORK_DIR [PART_OF_A_NAME]"""

import os
import sys
from pathlib import Path

import async_face
import control
import inputs
import low_level
import settings
import stored
import turns
from world import CHECKS, run_check

MODULES = (turns, inputs, settings, stored, control, async_face, low_level)


def main() -> int:
    binary, work = Path(sys.argv[1]), Path(sys.argv[2])
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    order = {module.__name__: place for place, module in enumerate(MODULES)}
    checks = sorted(CHECKS, key=lambda listed: order[listed[1].__module__])
    checks = [(name, function) for name, function in checks if wanted in name]
    passed = [run_check(name, function, binary, work) for name, function in checks]
    print(f"python: {sum(passed)} passed, {len(passed) - sum(passed)} failed", flush=True)
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # A check that never ended leaves threads of the client behind, which an ordinary exit would wait for.
    os._exit(status)
