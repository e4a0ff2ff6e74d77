"""Files and folders that nobody keeps, without `tempfile`, which brings much that no host needs."""

from __future__ import annotations

import os
from typing import BinaryIO, cast

_OWN = 0o700


def scratch_folder(prefix: str) -> str:
    """A new folder for this user alone."""
    path = os.path.join(_root(), prefix + os.urandom(8).hex())
    try:
        os.mkdir(path, _OWN)
    except OSError:
        from tempfile import mkdtemp

        return mkdtemp(prefix=prefix)
    return path


def scratch_log() -> BinaryIO:
    """A file without a name, to which several processes append."""
    try:
        # Of Linux, and not of every file system.
        descriptor = os.open(_root(), os.O_TMPFILE | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except (AttributeError, OSError):
        from fcntl import F_GETFL, F_SETFL, fcntl
        from tempfile import TemporaryFile

        file = cast(BinaryIO, TemporaryFile("ab+"))  # noqa: SIM115
        # Of a file that is open already, the mode sets no flag.
        fcntl(file.fileno(), F_SETFL, fcntl(file.fileno(), F_GETFL) | os.O_APPEND)
        return file
    return open(descriptor, "ab+")


def remove_folder(path: str) -> None:
    from shutil import rmtree

    rmtree(path, ignore_errors=True)


def _root() -> str:
    return os.environ.get("TMPDIR") or "/tmp"
