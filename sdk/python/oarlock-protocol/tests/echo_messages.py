"""Reads payloads as JSON lines, validates each with its type and writes it back, for round trips with other languages.

A line in: `{"direction": ..., "method": ..., "payload": ...}`. The directions are those of the package, and
`clientResponse` and `serverResponse` for the answers to client and server requests. A line out has the same shape, or
`error` instead of `payload`.
"""

import json
import sys
from typing import Any, cast

from pydantic import ValidationError

from oarlock_protocol import METHODS, Direction, RequestMethod, read, write

_REQUEST_OF: dict[str, Direction] = {"clientResponse": "clientRequest", "serverResponse": "serverRequest"}


def payload_type(direction: str, method: str) -> Any:
    """The type of a payload; `None` where a method has none."""
    row = METHODS[_REQUEST_OF.get(direction, cast(Direction, direction))][method]
    return row.response if direction in _REQUEST_OF and isinstance(row, RequestMethod) else row.params


def echo(line: dict[str, Any]) -> dict[str, Any]:
    direction, method, payload = line["direction"], line["method"], line.get("payload")
    answer = {"direction": direction, "method": method}
    try:
        form = payload_type(direction, method)
    except KeyError as error:
        return {**answer, "error": f"unknown: {error}"}
    try:
        return {**answer, "payload": payload if form is None else write(read(form, payload))}
    except ValidationError as error:
        return {**answer, "error": str(error)}


def main() -> None:
    for text in sys.stdin:
        if text.strip():
            print(json.dumps(echo(json.loads(text)), ensure_ascii=False, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
