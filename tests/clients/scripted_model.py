"""A scripted Responses endpoint that can be held in the middle of an answer and remembers what it was asked.

`oarlock offline-model --script` plays fixed answers; these checks must also see what reached the model, and act while
an answer is under way without guessing at times. Standard library only.

A script is a list of steps, one per request:

    {"text": "hello"}                  an answer, streamed in pieces
    {"text": "hello", "hold": true}    the same, stopped before its end until `release`
    {"reasoning": "why", "text": ...}  a reasoning summary first
    {"run": "ls"}                      a call of whichever command tool the request offers
    {"call": "update_plan", "arguments": {...}}
    {"fail": 400, "message": "no"}     an HTTP error

A request that no step is left for is refused and counted. The same is offered over HTTP to clients in other languages:
`POST /control/script`, `POST /control/release`, `GET /control/report`.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import zlib
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = dict[str, Any]
Json = dict[str, Any]
HOLD_SECONDS = 60
POLL_SECONDS = 0.02
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 10},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 120,
}


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Json
    # The client closed the connection before the answer was whole.
    abandoned: bool = False
    done: bool = False


@dataclass
class State:
    steps: list[Step]
    requests: list[Request] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)


class ScriptedModel:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._state = State([])
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def play(self, *steps: Step) -> None:
        """Replaces the script and forgets the requests so far; answers still held are let go."""
        with self._changed:
            self._state.released.set()
            self._state = State(list(steps))

    def release(self) -> None:
        self._state.released.set()

    @property
    def requests(self) -> list[Request]:
        with self._changed:
            return list(self._state.requests)

    def report(self) -> Json:
        """What was asked, and in what the script was not played as written."""
        with self._changed:
            state = self._state
            return {
                "requests": [asdict(request) for request in state.requests],
                "unused": len(state.steps),
                "unexpected": list(state.unexpected),
            }

    def wait_until_abandoned(self, index: int, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._state.requests[index].abandoned, seconds)

    def close(self) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()

    def _take(self, request: Request) -> tuple[State, Step]:
        with self._changed:
            state = self._state
            state.requests.append(request)
            self._changed.notify_all()
            if state.steps:
                return state, state.steps.pop(0)
            state.unexpected.append(f"{request.path}: {last_text(request.body)[:120]!r}")
            return state, {"fail": 400, "message": "the script has no step left for this request"}

    def _end(self, request: Request, *, abandoned: bool) -> None:
        with self._changed:
            request.abandoned, request.done = abandoned, True
            self._changed.notify_all()


def texts(body: Json) -> list[str]:
    """Every piece of text in the input, oldest first."""
    found = []
    for item in body.get("input", []):
        content = item.get("content") or item.get("output") or []
        if isinstance(content, str):
            found.append(content)
        else:
            found += [part["text"] for part in content if "text" in part]
    return found


def last_text(body: Json) -> str:
    return next(reversed(texts(body)), "")


def tool_names(body: Json) -> list[str]:
    return [tool.get("name") or tool["type"] for tool in body.get("tools", [])]


def command_call(command: str, body: Json) -> tuple[str, Json]:
    offered = tool_names(body)
    if "exec_command" in offered:
        return "exec_command", {"cmd": command}
    if "shell_command" in offered:
        return "shell_command", {"command": command}
    return "shell", {"command": ["bash", "-c", command]}


def events_of(step: Step, body: Json, number: int) -> list[Json]:
    """The events of an answer; a held one is stopped before the last item of it is done."""
    rid = f"resp_{number}"
    events: list[Json] = [{"type": "response.created", "response": {"id": rid}}]
    if "reasoning" in step:
        summary = [{"type": "summary_text", "text": step["reasoning"]}]
        item = {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": "c2VhbGVk"}
        events.append({"type": "response.output_item.added", "item": {**item, "summary": []}})
        events.append({"type": "response.output_item.done", "item": item})
    if "run" in step or "call" in step:
        name, arguments = command_call(step["run"], body) if "run" in step else (step["call"], step["arguments"])
        call_id = f"call_{number}"
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": call_id, "name": name}
        events.append({"type": "response.output_item.done", "item": {**item, "arguments": json.dumps(arguments)}})
    if "text" in step:
        events += message_events(step["text"], f"msg_{number}")
    return [*events, {"type": "response.completed", "response": {"id": rid, "usage": USAGE}}]


def message_events(text: str, item_id: str) -> list[Json]:
    item = {"type": "message", "role": "assistant", "id": item_id}
    pieces = text.split(" ")
    deltas = [piece + " " for piece in pieces[:-1]] + pieces[-1:]
    whole = {**item, "content": [{"type": "output_text", "text": text}]}
    return [
        {"type": "response.output_item.added", "item": {**item, "content": []}},
        *[{"type": "response.output_text.delta", "item_id": item_id, "delta": delta} for delta in deltas],
        {"type": "response.output_item.done", "item": whole},
    ]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that goes away is part of what is checked."""


def _handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._json(200, model.report() if self.path == "/control/report" else {"data": [], "models": []})

        def do_POST(self) -> None:
            body = self._body()
            if self.path == "/control/script":
                model.play(*body)
                return self._json(200, {})
            if self.path == "/control/release":
                model.release()
                return self._json(200, {})
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, body)
            state, step = model._take(request)
            number = len(state.requests)
            if "fail" in step:
                model._end(request, abandoned=False)
                return self._json(step["fail"], {"error": {"message": step["message"], "type": "scripted"}})
            try:
                whole = self._stream(state, events_of(step, body, number), held=step.get("hold", False))
            except OSError:
                whole = False
            self.close_connection = self.close_connection or not whole
            model._end(request, abandoned=not whole)

        def _body(self) -> Any:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                data = zlib.decompress(data, 31)
            return json.loads(data) if data else {}

        def _json(self, status: int, value: Any) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, state: State, events: list[Json], *, held: bool) -> bool:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            stop = len(events) - 2 if held else len(events)
            for event in events[:stop]:
                self._send(event)
            if held and not self._wait(state.released):
                return False
            for event in events[stop:]:
                self._send(event)
            self.wfile.write(b"0\r\n\r\n")
            return True

        def _wait(self, released: threading.Event) -> bool:
            """Until released; no when the client has gone away meanwhile, or the hold is too long."""
            for _ in range(int(HOLD_SECONDS / POLL_SECONDS)):
                if released.wait(POLL_SECONDS):
                    return True
                readable, _, _ = select.select([self.connection], [], [], 0)
                if readable and not self.connection.recv(1, socket.MSG_PEEK):
                    return False
            return False

        def _send(self, event: Json) -> None:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    return Handler
