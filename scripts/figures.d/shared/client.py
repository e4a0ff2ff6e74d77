"""The client's end of one connection."""

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from model import TOOL, Plan
from report import Json

C = TypeVar("C", bound="Client")
SECONDS = 30.0
# The cheapest request there is: shows that the connection lives.
PING = "thread/loaded/list"


class Silence(Exception):
    """What was waited for did not come."""


class Refused(Exception):
    """The server answered with an error."""


class HasFileno(Protocol):
    """Asked for its number each time: a closed one has none, and its old number may be another's."""

    def fileno(self) -> int: ...


class Client:
    """Reads one end and writes another. Everything that is said is kept in `heard`, in order."""

    def __init__(
        self, source: HasFileno, sink: HasFileno, cwd: str, on_message: Callable[[Json], None] | None = None
    ) -> None:
        self._source, self._sink = source, sink
        # Where threads work unless told.
        self.cwd = cwd
        self.heard: list[Json] = []
        self.sent: dict[int, tuple[str, Json]] = {}
        self.reading = threading.Event()
        self.reading.set()
        self._on_message = on_message
        self._changed = threading.Condition()
        self._answers: dict[Any, list[Json]] = {}
        self._next_id = 1
        self._is_over = False
        self._writing = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        rest = b""
        while True:
            self.reading.wait()
            try:
                piece = os.read(self._source.fileno(), 1 << 18)
            except OSError:
                piece = b""
            if not piece:
                break
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._hear(json.loads(line), len(line))
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _hear(self, message: Json, length: int) -> None:
        if self._on_message:
            self._on_message(message)
        if message.get("method") == "item/tool/call":
            self._use_tool(message)
        message["#bytes"] = length
        with self._changed:
            self.heard.append(message)
            if "method" not in message:
                self._answers.setdefault(message.get("id"), []).append(message)
            self._changed.notify_all()

    def _use_tool(self, message: Json) -> None:
        name = message["params"]["callId"].removeprefix("call-")
        content = [{"type": "inputText", "text": Plan(name).seen()}]
        try:
            self.write(json.dumps({"id": message["id"], "result": {"contentItems": content, "success": True}}))
        except OSError:
            pass  # Killed between asking and being told.

    # ---- sending ----

    def write(self, line: str | bytes) -> None:
        """One line, its newline added."""
        self.write_raw((line.encode() if isinstance(line, str) else line) + b"\n")

    def write_raw(self, data: bytes) -> None:
        with self._writing:
            left = memoryview(data)
            while left:
                left = left[os.write(self._sink.fileno(), left) :]

    def send(self, method: str, params: Json | None = None) -> int:
        with self._changed:
            number, self._next_id = self._next_id, self._next_id + 1
        self.sent[number] = (method, params or {})
        self.write(json.dumps({"id": number, "method": method, "params": params or {}}))
        return number

    def ask(self, method: str, params: Json | None = None, seconds: float = SECONDS) -> Json:
        """The whole answer, whether a result or an error."""
        return self.answer(self.send(method, params), seconds)

    def result(self, method: str, params: Json | None = None, seconds: float = SECONDS) -> Json:
        answer = self.ask(method, params, seconds)
        if "error" in answer:
            raise Refused(f"{method}: {answer['error']}")
        result: Json = answer["result"]
        return result

    def initialize(self: C) -> C:
        client = {"name": "figures", "title": None, "version": "0"}
        self.result("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
        self.write('{"method":"initialized"}')
        return self

    def ping(self, seconds: float = SECONDS) -> None:
        self.result(PING, {}, seconds)

    # ---- waiting ----

    def answer(self, number: Any, seconds: float = SECONDS) -> Json:
        self.wait(lambda: number in self._answers, f"the answer to {number} {self.sent.get(number)}", seconds)
        return self._answers[number][-1]

    def answers(self, number: Any) -> list[Json]:
        with self._changed:
            return list(self._answers.get(number, []))

    def notification(self, method: str, since: int = 0, seconds: float = SECONDS, **params: Any) -> Json:
        """The first of this name from `since` on whose params have these values; `turn__id` is the id of the turn."""
        position = since

        def found() -> bool:
            nonlocal position
            while position < len(self.heard):
                message = self.heard[position]
                if message.get("method") == method and _fits(message.get("params") or {}, params):
                    return True
                position += 1
            return False

        self.wait(found, f"{method} {params}", seconds)
        return self.heard[position]

    def wait(self, condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._is_over, seconds)
            if not condition():
                why = "the server ended" if self._is_over else f"nothing in {seconds:g} s"
                raise Silence(f"{what}: {why}")

    # ---- threads and turns ----

    def start_thread(self, **params: Any) -> str:
        schema = {"type": "object", "properties": {}}
        tools = [{"name": TOOL, "description": "Look.", "inputSchema": schema}]
        thread: Json = self.result("thread/start", {"cwd": self.cwd, "dynamicTools": tools, **params})["thread"]
        return str(thread["id"])

    def send_turn(self, thread: str, plan: Plan) -> int:
        return self.send("turn/start", {"threadId": thread, "input": [{"type": "text", "text": plan.text()}]})

    def turn(self, thread: str, plan: Plan, seconds: float = SECONDS) -> Json:
        """Runs a turn to its end, whatever that is."""
        since = len(self.heard)
        return self.end_of(thread, self.begin(thread, plan, seconds), since, seconds)

    def begin(self, thread: str, plan: Plan, seconds: float = SECONDS) -> str:
        """The id of a turn that runs."""
        answer = self.answer(self.send_turn(thread, plan), seconds)
        if "error" in answer:
            raise Refused(f"turn/start: {answer['error']}")
        return str(answer["result"]["turn"]["id"])

    def end_of(self, thread: str, turn: str, since: int = 0, seconds: float = SECONDS) -> Json:
        ended = self.notification("turn/completed", since, seconds, threadId=thread, turn__id=turn)
        whole: Json = ended["params"]["turn"]
        return whole

    def read(self, thread: str) -> Json:
        """The thread with its turns, from the record."""
        read: Json = self.result("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
        return read


def _fits(params: Json, wanted: Json) -> bool:
    for name, value in wanted.items():
        found: Any = params
        for step in name.split("__"):
            found = found.get(step) if isinstance(found, dict) else None
        if found != value:
            return False
    return True


def until(condition: Callable[[], bool], seconds: float) -> bool:
    """Polls what the server does not announce."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
