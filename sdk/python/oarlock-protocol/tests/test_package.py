"""The package as a whole: how fast it loads, what it exports, which version it is."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import binary
import oarlock_protocol
from oarlock_protocol import methods, types

ROOT = Path(__file__).parent.parent


def worked() -> float:
    """Processor time of the programs that this one ran."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_to_run(code: str) -> float:
    """What else runs on the machine does not count."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    before = worked()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return worked() - before


def test_importing_takes_less_than_half_a_second() -> None:
    assert min(seconds_to_run("import oarlock_protocol") for _ in range(5)) < 0.5


def test_every_exported_name_exists() -> None:
    for module in (oarlock_protocol, types, methods):
        assert len(set(module.__all__)) == len(module.__all__)
        for name in module.__all__:
            assert getattr(module, name) is not None
    assert set(types.__all__) | set(methods.__all__) < set(oarlock_protocol.__all__)
    assert set(dir(oarlock_protocol)) == set(oarlock_protocol.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="NoSuchType"):
        getattr(oarlock_protocol, "NoSuchType")  # noqa: B009 - a type checker would refuse the plain spelling.


def test_no_generated_name_had_to_give_way_to_another() -> None:
    assert [name for name in types.__all__ if name.endswith("_")] == []


def test_the_version_is_the_one_of_the_distribution() -> None:
    assert f'\nversion = "{oarlock_protocol.__version__}"\n' in (ROOT / "pyproject.toml").read_text()


def test_the_version_is_the_one_of_the_binary() -> None:
    assert binary.run("--version").split() == ["oarlock", oarlock_protocol.__version__]
