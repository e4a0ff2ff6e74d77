"""Providers that wrap others: one after the other, recorded, replayed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from ._errors import ConfigError, ProviderError
from ._providers import Anthropic, Chat, Key, ModelCapabilities, ModelProvider, ModelRequest, Offline, OpenAI, Provider
from ._typing import JSON


class Fallback:
    """Asks the next provider when one fails before its first event."""

    def __init__(self, providers: Sequence[ModelProvider]) -> None:
        if not providers:
            raise ConfigError("Fallback needs at least one provider")
        self._providers = list(providers)
        self.id = providers[0].id

    def capabilities(self, model: str) -> ModelCapabilities:
        return self._providers[0].capabilities(model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        for at, provider in enumerate(self._providers):
            has_begun = False
            try:
                async for event in provider.stream(request):
                    has_begun = True
                    yield event
                return
            except Exception:
                # After the first event the model was heard: another answer would contradict it.
                if has_begun or at == len(self._providers) - 1:
                    raise

    async def aclose(self) -> None:
        for provider in self._providers:
            await provider.aclose()


class Recorder:
    """Writes every request with its answer to a file, one JSON line each."""

    def __init__(self, provider: ModelProvider, path: str | Path) -> None:
        self._provider = provider
        self._path = Path(path)
        self.id = provider.id

    def capabilities(self, model: str) -> ModelCapabilities:
        return self._provider.capabilities(model)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        events: list[Mapping[str, JSON]] = []
        async for event in self._provider.stream(request):
            events.append(event)
            yield event
        with self._path.open("a") as file:
            file.write(json.dumps({"digest": request.digest, "body": request.body, "events": events}) + "\n")

    async def aclose(self) -> None:
        await self._provider.aclose()


class Replayer:
    """Answers from a file of `Recorder`, in its order.

    A request beyond it is refused, and so is one that is not the one in the file: other tools, another user message,
    other calls before it. What tools answered may differ, as times and folders do.
    """

    def __init__(self, path: str | Path, *, id: str = "replay") -> None:
        self._answers = [json.loads(line) for line in Path(path).read_text().splitlines()]
        self._next = 0
        self.id = id

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        if self._next >= len(self._answers):
            raise ProviderError(f"the record has {len(self._answers)} answers and all are used")
        recorded = self._answers[self._next]
        self._next += 1
        if (difference := _difference(recorded["body"], request.body)) is not None:
            raise ProviderError(f"request {self._next} is not the one in the record: {difference}")
        for event in recorded["events"]:
            yield event

    async def aclose(self) -> None:
        return None


def _difference(recorded: Mapping[str, JSON], asked: Mapping[str, JSON]) -> str | None:
    """The first thing that a program chose and that is not as it was."""
    for what, of in (("tools", _tools), ("user messages", _said), ("calls", _calls)):
        before, now = of(recorded), of(asked)
        if before != now:
            at = next((i for i, (one, other) in enumerate(zip(before, now, strict=False)) if one != other), None)
            if at is None:
                return f"{len(now)} {what} instead of {len(before)}"
            return f"{what}: {now[at]!r} instead of {before[at]!r}"
    return None


def _tools(body: Mapping[str, JSON]) -> list[str]:
    return [str(tool.get("name", tool.get("type"))) for tool in body.get("tools") or ()]


def _said(body: Mapping[str, JSON]) -> list[str]:
    """Of the user; context of the runtime, which has the role too, is marked up and has folders and dates."""
    messages = (item for item in body.get("input") or () if item.get("role") == "user")
    texts = ("".join(str(part.get("text", "")) for part in item.get("content") or ()) for item in messages)
    return [text for text in texts if not text.lstrip().startswith(("<", "# AGENTS.md"))]


def _calls(body: Mapping[str, JSON]) -> list[str]:
    calls = (item for item in body.get("input") or () if str(item.get("type", "")).endswith("_call"))
    return [f"{call.get('name', call['type'])} {call.get('arguments', call.get('input', ''))}" for call in calls]


__all__ = [
    "Anthropic",
    "Chat",
    "Fallback",
    "Key",
    "ModelCapabilities",
    "ModelProvider",
    "ModelRequest",
    "Offline",
    "OpenAI",
    "Provider",
    "Recorder",
    "Replayer",
]
