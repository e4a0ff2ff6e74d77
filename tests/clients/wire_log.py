"""A relay between a client and a server's websocket that passes every byte on and writes down the messages.

What a client shows is the end of a long exchange; when it shows the wrong thing, the cause is on the wire. Standard
library only.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from pathlib import Path
from typing import Any

Json = dict[str, Any]
# Of one connection, by the id of the request.
Methods = dict[Any, str]
TEXT = 1
HEAD_END = b"\r\n\r\n"


class WireLog:
    """Listens at `port`. Each line of `file` is a message, with who sent it."""

    def __init__(self, server_port: int, file: Path) -> None:
        self._server_port = server_port
        self._file = file.open("w")
        self._lock = threading.Lock()
        self._refused: list[tuple[Methods, Json]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def refused(self) -> list[str]:
        """Requests that the server answered with an error, and the error."""
        with self._lock:
            return [f"{asked.get(reply['id'])}: {reply['error'].get('message')}" for asked, reply in self._refused]

    def close(self) -> None:
        # A thread that still waits at a closed listener would take clients from the next one with that number.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        with self._lock:
            self._file.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        asked: Methods = {}
        with client, server:
            answers = threading.Thread(target=self._pass_on, args=("server", server, client, asked), daemon=True)
            answers.start()
            self._pass_on("client", client, server, asked)
            answers.join()

    def _pass_on(self, sender: str, source: socket.socket, sink: socket.socket, asked: Methods) -> None:
        tap = _Tap(source, sink)
        try:
            tap.head()
            while True:
                self._write(sender, tap.message(), asked)
        except (EOFError, OSError):
            for end in (source, sink):
                # Wakes the thread of the other direction too.
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def _write(self, sender: str, data: bytes | None, asked: Methods) -> None:
        if data is None:
            return
        message: Json = json.loads(data)
        with self._lock:
            if not self._file.closed:
                self._file.write(json.dumps({"from": sender, **message}) + "\n")
                self._file.flush()
            if sender == "client" and "method" in message:
                asked[message.get("id")] = message["method"]
            if sender == "server" and "error" in message:
                # An answer may be read here before its request is.
                self._refused.append((asked, message))


class _Tap:
    """Hands on what comes from one end as it comes, and then reads it. Clients refuse an answer in tiny pieces."""

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self._source, self._sink = source, sink
        self._seen = bytearray()

    def head(self) -> None:
        """The request for a websocket, or the answer to it."""
        while (end := self._seen.find(HEAD_END)) < 0:
            self._more()
        self._take(end + len(HEAD_END))

    def message(self) -> bytes | None:
        """The next message, put together; none for a frame that carries no text."""
        whole, kind, final = b"", None, False
        while not final:
            first, second = self._take(2)
            kind = first & 0x0F if kind is None else kind
            final = bool(first & 0x80)
            whole += self._payload(second)
        return whole if kind == TEXT else None

    def _payload(self, second: int) -> bytes:
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self._take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self._take(8))
        if not second & 0x80:
            return self._take(length)
        mask = self._take(4)
        key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
        return (int.from_bytes(self._take(length), "big") ^ key).to_bytes(length, "big")

    def _take(self, count: int) -> bytes:
        while len(self._seen) < count:
            self._more()
        taken = bytes(self._seen[:count])
        del self._seen[:count]
        return taken

    def _more(self) -> None:
        piece = self._source.recv(65536)
        if not piece:
            raise EOFError
        self._sink.sendall(piece)
        self._seen += piece
