"""A Messages endpoint on the loopback: calls one tool, and ends the turn once that has a result."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from report import Json


class MessagesModel:
    """Serves until closed. `results` holds the texts of the tool's results that it was shown."""

    def __init__(self, tool: str, arguments: Json) -> None:
        self.results: list[str] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.send_response(200)
                self.end_headers()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in model.events(body, tool, arguments):
                    self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def events(self, body: Json, tool: str, arguments: Json) -> Iterator[Json]:
        contents = [message["content"] for message in body.get("messages", ()) if isinstance(message["content"], list)]
        results = [part for content in contents for part in content if part.get("type") == "tool_result"]
        self.results += [json.dumps(part.get("content")) for part in results[-1:]]
        calls = bool(body.get("tools")) and not results
        block = (
            {"type": "tool_use", "id": "toolu_1", "name": tool, "input": {}} if calls else {"type": "text", "text": ""}
        )
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
            if calls
            else {"type": "text_delta", "text": "done"}
        )
        usage = {"input_tokens": 5, "output_tokens": 1}
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body.get("model", "model")}
        yield {
            "type": "message_start",
            "message": {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage},
        }
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": 3}}
        yield {"type": "message_stop"}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
