"""The built binary, for the tests that compare the package with it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest


def run(*arguments: str) -> str:
    """What the binary prints. Skips the test when `OARLOCK_BIN` does not name one."""
    binary = os.environ.get("OARLOCK_BIN")
    if not binary:
        pytest.skip("OARLOCK_BIN is not set")
    return subprocess.run([binary, *arguments], check=True, capture_output=True, text=True).stdout


def schemas(folder: Path) -> dict[str, Any]:
    """Every type of the experimental surface as JSON Schema, by name."""
    run("app-server", "generate-json-schema", "--experimental", "--out", str(folder))
    bundle = json.loads((folder / "codex_app_server_protocol.schemas.json").read_text())["definitions"]
    return {**bundle.pop("v2"), **bundle}
