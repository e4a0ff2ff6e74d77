"""Puts the program into the wheel, and says for which platform it is."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RuntimeBuildHook(BuildHookInterface[Any]):
    """`OARLOCK_BIN` names the program. `OARLOCK_WHEEL_PLATFORM` names the platform; that of this machine when unset.

    `OARLOCK_STAGED` names the build that a host copies into other places, where one comes along.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        named = os.environ.get("OARLOCK_BIN", "")
        if not Path(named).is_file():
            raise FileNotFoundError(
                f"OARLOCK_BIN={named!r} is not a file; build one with `cargo build --release -p oarlock-cli`"
            )
        platform = os.environ.get("OARLOCK_WHEEL_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(
            ".", "_"
        )
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        # In the folder of scripts: `oarlock` is on PATH wherever the wheel is installed.
        build_data["shared_scripts"] = {named: "oarlock"}
        if staged := os.environ.get("OARLOCK_STAGED"):
            # Where the program looks for it: in `../lib/oarlock`.
            build_data["shared_data"] = {staged: f"lib/oarlock/{Path(staged).name}"}
