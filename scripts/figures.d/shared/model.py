"""A Responses endpoint on the loopback. It keeps no state: each user message says, as JSON, how to answer it."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from report import Json

TOOL = "look"
GATE_SECONDS = 120


@dataclass(frozen=True)
class Plan:
    """A turn: what the user says, and so what the model does."""

    name: str
    # First a call of the client's tool, then the answer.
    tool: bool = False
    # Bytes of the answer, about.
    size: int = 20
    # Streams this many bytes of events instead of one answer.
    flood: int = 0
    # Stops after the first delta until the gate is opened.
    gate: bool = False
    # Shell commands, each called for when the one before has an output.
    commands: tuple[str, ...] = ()
    # The tool they are called with.
    shell: str = "exec_command"
    # All of them in one response instead.
    together: bool = False
    # Arguments of each call besides the command.
    options: Json = field(default_factory=dict)
    # Patches to apply before the commands.
    patches: tuple[str, ...] = ()
    # Where the stream of the first, second … request breaks: "refuse", "head", "created", "item", or "" for nowhere.
    breaks: tuple[str, ...] = ()
    # Sends every call twice under one id.
    twice: bool = False

    def text(self) -> str:
        return json.dumps({"plan": asdict(self)}, separators=(",", ":"))

    def answer(self) -> str:
        words = f"answer of {self.name} "
        return words + '\u00fc\u2713 "x\\ ' * ((self.size - len(words)) // 7)

    def call_id(self, index: int) -> str:
        return f"call-{self.name}-{index}"

    def calls(self) -> list[Json]:
        """What the model calls for, in order."""
        calls: list[Json] = []
        for patch in self.patches:
            calls.append({"type": "custom_tool_call", "name": "apply_patch", "input": patch})
        for command in self.commands:
            key = "cmd" if self.shell == "exec_command" else "command"
            arguments = json.dumps({key: command, **self.options})
            calls.append({"type": "function_call", "name": self.shell, "arguments": arguments})
        return [{**call, "call_id": self.call_id(index)} for index, call in enumerate(calls)]

    def seen(self) -> str:
        """What the client's tool says."""
        return f"seen by {self.name}"


# How a flood is cut into messages, and the text of each of its deltas.
FLOOD_DELTAS = 4_000
FLOOD_PIECE = "%08d of many; "


def flood_messages(size: int) -> int:
    """How many messages make a stream of about so many bytes."""
    return max(1, size // (FLOOD_DELTAS * len(_delta("flood-000", FLOOD_PIECE % 0, 0))))


def flood_text(message: int) -> str:
    first = message * FLOOD_DELTAS
    return "".join(FLOOD_PIECE % number for number in range(first, first + FLOOD_DELTAS))


class Model:
    """Serves until closed. `bodies` holds the last request of each turn, by the name of its plan."""

    def __init__(self, keep: bool = False) -> None:
        self.bodies: dict[str, Json] = {}
        self.asked: Counter[str] = Counter()
        # Head and body of every request, if they are to be kept.
        self.received: list[str] | None = [] if keep else None
        self.gate = threading.Event()
        self.streamed = 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            # Else each answer waits 40 ms for the head of it to be acknowledged.
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.answer("application/json", iter([b'{"object":"list","data":[],"models":[]}']))

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["content-length"]))
                if model.received is not None:
                    model.received.append(f"{self.path}\n{self.headers}{text.decode()}")
                body = json.loads(text)
                plan, outputs = _read(body["input"])
                if model.next_break(plan) == "refuse":
                    model.asked[plan.name] += 1
                    self.send_error(500)
                else:
                    self.answer("text/event-stream", model.stream(body, plan, outputs))

            def answer(self, kind: str, pieces: Iterator[bytes]) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.end_headers()
                try:
                    for piece in pieces:
                        self.wfile.write(piece)
                        model.streamed += len(piece)
                except (OSError, Broken):
                    pass  # Either side may be gone: the server under test is often killed here.

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def next_break(self, plan: Plan) -> str:
        """Where the stream that is asked for next will break."""
        return plan.breaks[self.asked[plan.name]] if self.asked[plan.name] < len(plan.breaks) else ""

    def stream(self, body: Json, plan: Plan, outputs: set[str]) -> Iterator[bytes]:
        where = self.next_break(plan)
        self.asked[plan.name] += 1
        self.bodies[plan.name] = body
        _break_if(where == "head")
        yield stream_event({"type": "response.created", "response": {"id": f"resp-{plan.name}"}})
        _break_if(where == "created")
        if plan.gate and not plan.tool:
            self.gate.wait(GATE_SECONDS)
        if plan.flood:
            yield from _flood(plan.flood)
        elif plan.tool and not outputs:
            yield from self._call(plan)
        elif left := [call for call in plan.calls() if call["call_id"] not in outputs]:
            for call in left if plan.together else left[:1]:
                yield from [stream_event({"type": "response.output_item.done", "item": call})] * (1 + plan.twice)
        else:
            yield from message_events(f"msg-{plan.name}", plan.answer())
        _break_if(where == "item")
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        yield stream_event({"type": "response.completed", "response": {"id": f"resp-{plan.name}", "usage": usage}})

    def _call(self, plan: Plan) -> Iterator[bytes]:
        if plan.gate:
            yield from message_events(f"before-{plan.name}", f"before the call of {plan.name}")
            self.gate.wait(GATE_SECONDS)
        call = {"type": "function_call", "id": f"fc-{plan.name}", "call_id": f"call-{plan.name}"}
        yield stream_event({"type": "response.output_item.done", "item": {**call, "name": TOOL, "arguments": "{}"}})

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


class Broken(Exception):
    """The stream ends here, as asked."""


def _break_if(is_asked: bool) -> None:
    if is_asked:
        raise Broken


def stream_event(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()


def _delta(item: str, text: str, number: int) -> bytes:
    return stream_event(
        {
            "type": "response.output_text.delta",
            "sequence_number": number,
            "item_id": item,
            "output_index": 0,
            "content_index": 0,
            "delta": text,
            "logprobs": [],
        }
    )


def message_events(item: str, text: str) -> Iterator[bytes]:
    head = {"type": "message", "role": "assistant", "id": item}
    yield stream_event({"type": "response.output_item.added", "item": {**head, "content": []}})
    third = len(text) // 3 + 1
    for start in range(0, len(text), third):
        yield _delta(item, text[start : start + third], start)
    content = [{"type": "output_text", "text": text}]
    yield stream_event({"type": "response.output_item.done", "item": {**head, "content": content}})


def _flood(size: int) -> Iterator[bytes]:
    for message in range(flood_messages(size)):
        item = f"flood-{message:03d}"
        head = {"type": "message", "role": "assistant", "id": item}
        yield stream_event({"type": "response.output_item.added", "item": {**head, "content": []}})
        first = message * FLOOD_DELTAS
        # The numbers are put into a ready-made event: writing JSON anew each time would slow the stream down.
        form = _delta(item, FLOOD_PIECE, 0).replace(b'"sequence_number":0', b'"sequence_number":%d')
        for start in range(first, first + FLOOD_DELTAS, 100):
            yield b"".join(form % (number, number) for number in range(start, start + 100))
        content = [{"type": "output_text", "text": flood_text(message)}]
        yield stream_event({"type": "response.output_item.done", "item": {**head, "content": content}})


def _read(items: list[Json]) -> tuple[Plan, set[str]]:
    """The newest plan in the input, and which of its calls have an output already."""
    outputs: set[str] = set()
    for item in reversed(items):
        if item.get("type") in ("function_call_output", "custom_tool_call_output"):
            outputs.add(item["call_id"])
        if item.get("role") != "user":
            continue
        for part in item["content"]:
            if part.get("text", "").startswith('{"plan":'):
                return Plan(**json.loads(part["text"])["plan"]), outputs
    return Plan("unknown"), outputs
