"""Errors have types, and know what they are about."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from oarlock import (
    Agent,
    Chat,
    Host,
    LimitExceeded,
    ModelCapabilities,
    ModelProvider,
    ModelRequest,
    Offline,
    ProviderError,
    ProviderFailed,
    RpcError,
    StoreError,
    TaskNotFound,
    TransportClosed,
    TurnFailed,
)
from oarlock._errors import refused, store_error, turn_failed
from oarlock.testing import Call, Fail, ScriptedModel, offline_host

HELLO = Agent(name="hello", tool_set="replace")


@pytest.mark.anyio
async def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    broken = tmp_path / "runs.db"
    broken.write_text("not a database " * 1_000)
    with pytest.raises(StoreError, match="file is not a database"):
        async with Host(store=broken, provider=Offline()):
            pass


@pytest.mark.anyio
async def test_a_task_that_is_not_there() -> None:
    async with offline_host() as host:
        for opened in (host.open("A-18"), host.open("A-18", HELLO)):
            with pytest.raises(TaskNotFound, match="there is no task A-18") as raised:
                await opened
            assert raised.value.task_id == "A-18"


@pytest.mark.anyio
async def test_a_provider_that_fails() -> None:
    async with offline_host(ScriptedModel(Fail("the cable is out"))) as host:
        task = await host.start(HELLO, task_id="A-17")
        result = await task.run("go", timeout=60)
        assert result.status == "failed"
        with pytest.raises(ProviderFailed, match=r"^the cable is out$") as raised:
            result.unwrap()
        assert isinstance(raised.value, TurnFailed) and isinstance(raised.value, ProviderError)
        assert raised.value.task_id == "A-17"
    async with Host(provider=Chat(base_url="http://127.0.0.1:9/v1")) as host:
        with pytest.raises(ProviderError, match="cannot reach the model provider") as unreachable:
            (await host.run(HELLO, "go", timeout=60)).unwrap()
        assert unreachable.value.retryable


class Asked:
    """A provider that keeps what it is asked."""

    id = "asked"

    def __init__(self, model: ModelProvider) -> None:
        self._model = model
        self.requests: list[ModelRequest] = []
        self.models: list[str] = []

    def capabilities(self, model: str) -> ModelCapabilities:
        self.models.append(model)
        return ModelCapabilities(context_window=70_000 if model == "large" else 50_000, images_in=False)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Mapping[str, Any]]:
        self.requests.append(request)
        async for event in self._model.stream(request):
            yield event

    async def aclose(self) -> None: ...


@pytest.mark.anyio
async def test_a_provider_knows_what_a_request_is_of() -> None:
    provider = Asked(ScriptedModel(Call("nothing"), "done", "again"))
    async with Host(provider=provider) as host:
        assert provider.models == ["asked"]
        task = await host.start(HELLO, task_id="A-17")
        windows: list[Any] = []
        task._follower.on_notification = lambda method, params: windows.append(
            params.get("tokenUsage", {}).get("modelContextWindow")
        )
        first = await task.run("go", timeout=60)
        second = await task.run("go", timeout=60)
        thread = task._follower.thread_id
        assert [(asked.thread_id, asked.turn_id, asked.attempt) for asked in provider.requests] == [
            (thread, first.turn_id, 1),
            (thread, first.turn_id, 1),
            (thread, second.turn_id, 1),
        ]
        ids = [asked.segment_id for asked in provider.requests]
        assert ids == [f"{first.turn_id}:0", f"{first.turn_id}:1", f"{second.turn_id}:0"]
        assert {window for window in windows if window is not None} == {int(50_000 * 0.95)}
        # A model that the agent chose is asked about as well.
        await host.start(Agent(name="large", model="large", tool_set="replace"))
        assert provider.models == ["asked", "large"]


def test_refusals_of_the_host_by_their_code() -> None:
    error = refused({"message": "gone", "code": -32000, "data": {"code": "runtimeGone"}}, "A-17", "a:b:c")
    assert isinstance(error, RpcError)
    assert (error.task_id, error.operation_id, error.retryable) == ("A-17", "a:b:c", True)
    assert refused({"message": "busy", "code": -32001}).retryable
    assert not refused({"message": "no", "code": -32600}).retryable
    assert isinstance(refused({"message": "disk", "data": {"code": "storeFailed"}}), StoreError)


def test_the_last_words_of_a_host() -> None:
    lost = store_error("a warning\noarlock: the database cannot be reached: connection refused")
    assert lost is not None and lost.retryable and str(lost).startswith("the database cannot be reached")
    assert store_error("oarlock: /tmp/runs.db is used by another process") is None
    assert TransportClosed("ended", stderr_tail="boom").stderr_tail == "boom"


def test_how_a_failed_turn_is_raised() -> None:
    def kind(info: Any) -> type[TurnFailed]:
        return type(turn_failed({"message": "no", "codexErrorInfo": info}, None))

    assert kind("sessionBudgetExceeded") is LimitExceeded
    assert kind("serverOverloaded") is kind({"httpConnectionFailed": {"httpStatusCode": 500}}) is ProviderFailed
    assert kind("other") is kind(None) is TurnFailed
