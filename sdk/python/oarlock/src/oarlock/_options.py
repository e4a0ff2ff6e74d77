"""Choices of a `Host`, and the command line they make. Loads nothing that a host does not need to be started."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ._errors import ConfigError
from ._providers import Anthropic, Chat, ModelProvider, Offline, OpenAI, Provider, host_arguments
from ._records import record
from ._typing import JSON


@record(kw_only=True)
class SessionOptions:
    """Choices of a `Host`: the address of one that runs, or how an embedded one is started."""

    url: str | None = None
    token: str | None = None
    store: str | Path | None = None
    provider: Provider | None = None
    adopt: bool = False
    secrets: Mapping[str, str] = field(default_factory=dict)
    tool_concurrency: int = 40
    runtime: Path | None = None
    config: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def own_provider(self) -> ModelProvider | None:
        """The provider that is an object of this program."""
        provider = self.provider
        if provider is None or isinstance(provider, str | OpenAI | Anthropic | Chat | Offline):
            return None
        return provider

    @property
    def may_outlive(self) -> bool:
        """Whether an embedded host may go on for other processes when this one has left.

        Not with a provider of this program: model requests would lead nowhere.
        """
        return self.store is not None and self.own_provider is None

    def argv(self) -> list[str]:
        """Of an embedded host; without what a provider of this program adds."""
        argv = [find_runtime(self.runtime), "host"]
        match self.provider:
            case None | str() | OpenAI() | Anthropic() | Chat() | Offline() as provider:
                argv += host_arguments(provider)
            case _:
                pass
        if not self.adopt:
            argv.append("--no-adopt")
        if self.may_outlive:
            argv.append("--stay-for-others")
        for key, value in self.config.items():
            argv += ["-c", f"{key}={_toml(value)}"]
        return argv

    def environment(self) -> dict[str, str]:
        return {**self.secrets, **secret_variables(self.secrets)}


def secret_variables(secrets: Mapping[str, str]) -> dict[str, str]:
    """Where the host finds the secrets that manifests name."""
    return {f"OARLOCK_SECRET_{name.upper().replace('-', '_')}": value for name, value in secrets.items()}


def find_runtime(explicit: Path | None) -> str:
    """The `oarlock` program: the one named, OARLOCK_BIN, that of the wheel `oarlock-runtime`, else on PATH."""
    if explicit is not None:
        if not Path(explicit).is_file():
            raise ConfigError(f"runtime: {explicit} is not a file")
        return str(explicit)
    if named := os.environ.get("OARLOCK_BIN"):
        return named
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("oarlock_runtime") is not None:
        return str(import_module("oarlock_runtime").binary_path())
    from shutil import which

    if found := which("oarlock"):
        return found
    raise ConfigError(
        "no `oarlock` program: pip install oarlock-runtime, put it on PATH, set OARLOCK_BIN, or give Host(runtime=…)"
    )


def _toml(value: JSON) -> str:
    """A value for `-c`: JSON is TOML for all that a setting is made of, but for tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(str(key))} = {_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)
