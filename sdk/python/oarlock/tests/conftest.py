"""What the tests share: both event loops, a home of their own, and real hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock import Host, Offline


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Configuration of the user must not matter."""
    if not os.environ.get("OARLOCK_BIN"):
        pytest.skip("OARLOCK_BIN is not set")
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("OARLOCK_HOME", str(folder))
    # Commands run in a login shell, which reads what is here.
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("OARLOCK_HOST", raising=False)
    yield folder


@pytest.fixture
async def needs_provides(home: Path) -> None:
    """For tests of tools that are asked about, which older hosts cannot do."""
    async with Host(provider=Offline()) as host:
        if "provides" not in host._opened().features:
            pytest.skip("this host has no `provides`")
