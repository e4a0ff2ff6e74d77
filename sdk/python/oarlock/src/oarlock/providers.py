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
    """Answers from a file of `Recorder`, in its order. A request beyond it is refused."""

    def __init__(self, path: str | Path, *, id: str = "replay") -> None:
        self._answers = [json.loads(line)["events"] for line in Path(path).read_text().splitlines()]
        self._next = 0
        self.id = id

    def capabilities(self, model: str) -> ModelCapabilities:
        return ModelCapabilities()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, JSON]]:
        if self._next >= len(self._answers):
            raise ProviderError(f"the record has {len(self._answers)} answers and all are used")
        self._next += 1
        for event in self._answers[self._next - 1]:
            yield event

    async def aclose(self) -> None:
        return None


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
