"""Messages as the wire has them. Loads nothing: the first ones are written before the rest of the package is there."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

_VERSION = "0.1.0"

INITIALIZE: Mapping[str, Any] = {
    "clientInfo": {"name": "oarlock_python", "title": None, "version": _VERSION},
    "capabilities": {"experimentalApi": True, "host": {"versions": [1], "allTasks": True}},
}
"""Params of the request that opens a connection."""


def encoded(message: Mapping[str, Any]) -> bytes:
    """One message."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False, default=_plain).encode()


def greeting() -> bytes:
    """The first lines of a connection. The answer to the request is read when there is somebody to read it."""
    request = {"id": 1, "method": "initialize", "params": INITIALIZE}
    return encoded(request) + b"\n" + encoded({"method": "initialized"}) + b"\n"


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "to_wire"):
        return value.to_wire()
    raise TypeError(f"{type(value).__name__} is not JSON: {value!r}")
