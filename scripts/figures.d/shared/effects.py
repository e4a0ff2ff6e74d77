"""Commands that leave a mark, and what the record says about them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from client import Client
from model import Plan
from report import Json

# Enough to overlap, few enough not to measure the machine.
AT_ONCE = 4


class Effects:
    """A file to which every execution adds a line of its own, in one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def command(self, mark: str, then: str = "true") -> str:
        return f"echo {mark} >> '{self.path}'; {then}"

    def counts(self) -> Counter[str]:
        return Counter(self.path.read_text().split())


def operations(home: Path) -> dict[str, list[str]]:
    """What is recorded of every operation, by the id of its call."""
    states: dict[str, list[str]] = {}
    for path in home.glob("threads/**/*.jsonl"):
        for line in path.read_bytes().splitlines():
            record = parsed(line)
            if record.get("type") == "operation":
                payload = record["payload"]
                states.setdefault(payload["operationId"].rsplit(":", 1)[-1], []).append(payload["state"])
    return states


def parsed(line: bytes) -> Json:
    """A torn line is no record."""
    try:
        record: Json = json.loads(line)
        return record
    except ValueError:
        return {}


def output_of(body: Json, call_id: str) -> str | None:
    """What the model was told about a call."""
    for item in body["input"]:
        if item.get("call_id") == call_id and item["type"].endswith("_output"):
            output = item["output"]
            return output if isinstance(output, str) else json.dumps(output)
    return None


def was_accepted(server: Client) -> bool:
    """Whether a turn was answered for: until then there may be no thread to take up again."""
    turns = [number for number, (method, _) in server.sent.items() if method == "turn/start"]
    return any("result" in answer for number in turns for answer in server.answers(number))


def too_often(counts: Counter[str], plan: Plan, marks: Iterable[str]) -> list[str]:
    return [f"{plan.name}: {mark} ran {counts[mark]} times" for mark in marks if counts[mark] > 1]


def at_once(work: Callable[[Any], list[str]], inputs: Iterable[Any]) -> list[str]:
    """Does all of it, a few at a time; the problems of all, in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [problem for problems in pool.map(work, inputs) for problem in problems]
