"""Model providers: data for the host, or an object of this program."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from ._errors import ConfigError
from ._records import record
from ._typing import JSON


@record(kw_only=True)
class Key:
    """Where the host finds a key. The key itself never enters this program."""

    env: str | None = None
    file: Path | None = None
    command: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.env, self.file, self.command)) != 1:
            raise ConfigError("Key takes exactly one of `env`, `file` and `command`")


@record(kw_only=True)
class OpenAI:
    """The Responses API of OpenAI, or of an endpoint like it."""

    key: Key = field(default_factory=lambda: Key(env="OPENAI_API_KEY"))
    base_url: str | None = None


@record(kw_only=True)
class Anthropic:
    """The Messages API."""

    key: Key = field(default_factory=lambda: Key(env="ANTHROPIC_API_KEY"))
    base_url: str | None = None


@record(kw_only=True)
class Chat:
    """Any OpenAI-compatible chat endpoint."""

    base_url: str
    key: Key | None = None


@record()
class Offline:
    """The model of fixed rules inside the binary: no key, no network."""


@record()
class ModelCapabilities:
    """Features of a model behind a provider."""

    wire: Literal["responses", "chat", "messages", "other"] = "responses"
    parallel_tool_calls: bool = True
    freeform_tools: bool = False
    hosted_tools: frozenset[str] = frozenset()
    images_in: bool = True
    json_schema_output: bool = True
    context_window: int | None = None


@record()
class ModelRequest:
    """A request as the runtime authored it."""

    id: str
    thread_id: str
    turn_id: str
    segment_id: str
    attempt: int
    purpose: str
    body: Mapping[str, JSON]
    """Of the Responses API."""
    digest: str


@runtime_checkable
class ModelProvider(Protocol):
    """Carries requests in this program, for what the host cannot reach or must not see."""

    id: str

    def capabilities(self, model: str) -> ModelCapabilities:
        """Features of the model: asked when the host starts, and for each model that an agent chooses."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        """Yields events of the Responses API."""
        ...

    async def aclose(self) -> None:
        """Called when the host is closed."""
        ...


Provider: TypeAlias = OpenAI | Anthropic | Chat | Offline | ModelProvider | str
"""A `str` names a provider of the host's configuration."""

_NAME = "sdk"


def _quoted(text: str) -> str:
    """A TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _key_settings(key: Key | None) -> dict[str, str]:
    if key is None:
        return {}
    if key.env is not None:
        return {"env_key": _quoted(key.env)}
    command = list(key.command) if key.command is not None else ["cat", str(key.file)]
    arguments = "[" + ", ".join(_quoted(argument) for argument in command[1:]) + "]"
    return {"auth": f"{{ command = {_quoted(command[0])}, args = {arguments} }}"}


def _defined(name: str, base_url: str, wire: str, key: Key | None, **more: str) -> list[str]:
    settings = {"name": _quoted(name), "base_url": _quoted(base_url), "wire_api": _quoted(wire), **_key_settings(key)}
    settings |= more
    table = ", ".join(f"{setting} = {value}" for setting, value in settings.items())
    return ["--provider", _NAME, "-c", f"model_providers.{_NAME}={{ {table} }}"]


def host_arguments(provider: OpenAI | Anthropic | Chat | Offline | str | None) -> list[str]:
    """Arguments of `oarlock host` for the provider."""
    match provider:
        case None:
            return []
        case str():
            return ["--provider", provider]
        case Offline():
            return ["--provider", "offline"]
        case OpenAI(key=Key(env="OPENAI_API_KEY"), base_url=None):
            return ["--provider", "openai"]
        case OpenAI(key=key, base_url=base_url):
            return _defined("OpenAI", base_url or "https://api.openai.com/v1", "responses", key)
        case Anthropic(key=key, base_url=base_url):
            return _defined("Anthropic", base_url or "https://api.anthropic.com/v1", "messages", key)
        case Chat(base_url=base_url, key=key):
            return _defined("Chat", base_url, "chat", key)


ABOUT_HEADER = "x-oarlock-request"
"""What a request is for, and of which thread."""


def bridge_arguments(name: str, base_url: str, token_variable: str, settings: Mapping[str, JSON]) -> list[str]:
    """How `oarlock host` reaches a provider of this program."""
    # The host fills in this header for whoever has it among the settings.
    wanted = f'{{ {_quoted(ABOUT_HEADER)} = "filled in by the host" }}'
    defined = _defined(name, base_url, "responses", Key(env=token_variable), http_headers=wanted)
    argv = [*defined, "-c", f"model={_quoted(name)}"]
    for key, value in settings.items():
        argv += ["-c", f"{key}={json.dumps(value)}"]
    return argv


def model_settings(can: ModelCapabilities) -> dict[str, JSON]:
    """The configuration that a model with these features needs."""
    settings: dict[str, JSON] = {}
    if can.context_window is not None:
        settings["model_context_window"] = can.context_window
    if not can.images_in:
        settings["tools.view_image"] = False
    return settings
