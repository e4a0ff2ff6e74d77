"""Fixtures for pytest, which finds them by itself where the package is installed. Loads nothing until one is used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ._host import Host
    from .testing import ScriptedModel


@pytest.fixture
def scripted_model() -> Iterator[ScriptedModel]:
    """A model without a script; `scripted_model.add(…)` gives it one. After the test, all of it must have been used."""
    from .testing import ScriptedModel

    model = ScriptedModel()
    yield model
    model.assert_done()


@pytest.fixture
async def offline_host(scripted_model: ScriptedModel) -> AsyncIterator[Host]:
    """A host whose model is `scripted_model`; its store is gone afterwards. For tests with `pytest.mark.anyio`."""
    from ._host import Host

    async with Host(provider=scripted_model) as host:
        yield host
