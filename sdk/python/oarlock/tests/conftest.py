"""What the tests share: both event loops, a home of their own, and real hosts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import engines
from oarlock import Host, Offline

# What takes longest comes first, so that no worker has it alone at the end.
_LONG = ("test_placements.py", "test_package.py", "test_faults.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is not None and (engine := callspec.params.get("engine")) is not None:
            # One worker starts an engine, and not each of them.
            item.add_marker(pytest.mark.xdist_group(engine))
    items.sort(key=lambda item: item.path.name not in _LONG and item.get_closest_marker("xdist_group") is None)


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
    # A login shell of a command looks for its start files here, and complains of a folder that is hidden from it.
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("user")))
    monkeypatch.delenv("OARLOCK_HOST", raising=False)
    yield folder


@pytest.fixture
async def needs_provides(home: Path) -> None:
    """For tests of tools that are asked about, which older hosts cannot do."""
    async with Host(provider=Offline()) as host:
        if "provides" not in host._opened().features:
            pytest.skip("this host has no `provides`")


class _Started(dict[str, engines.Engine]):
    """Engines by name, each started when the first test needs it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack

    def __missing__(self, name: str) -> engines.Engine:
        engines.need(name)
        place = self._folder / name
        place.mkdir()
        start = engines.docker if name == "docker" else engines.podman
        self[name] = self._stack.enter_context(start(place))
        return self[name]


@pytest.fixture(scope="session")
def engine_folder() -> Iterator[Path]:
    # Sockets have short paths.
    made = Path(tempfile.mkdtemp(prefix="oar", dir="/tmp"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def engines_started(engine_folder: Path) -> Iterator[dict[str, engines.Engine]]:
    with ExitStack() as stack:
        yield _Started(engine_folder, stack)


@pytest.fixture
def engine(
    request: Any, engines_started: dict[str, engines.Engine], home: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    engine = engines_started[request.param]
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    engines.small_runtime(home)
    return engine
