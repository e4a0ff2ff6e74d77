"""An MCP server over streamable HTTP for tests. Arguments: the file for its port, the token it wants."""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT_FILE, TOKEN = sys.argv[1], sys.argv[2]
TOOL = {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"readOnlyHint": True}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != "Bearer " + TOKEN:
            return self.reply(401)
        if self.headers.get("X-Extra") != "yes":
            return self.reply(400, b"the header is missing")
        method, rid = message.get("method"), message.get("id")
        if method != "initialize" and self.headers.get("Mcp-Session-Id") != "s1":
            return self.reply(404, b"no such session")
        if method != "initialize" and self.headers.get("MCP-Protocol-Version") != "2025-06-18":
            return self.reply(400, b"no revision")
        if rid is None:
            return self.reply(202)
        answer = lambda result: json.dumps({"jsonrpc": "2.0", "id": rid, "result": result}).encode()
        if method == "initialize":
            hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                     "serverInfo": {"name": "http", "version": "1"}}
            return self.reply(200, answer(hello), Mcp_Session_Id="s1")
        if method == "tools/list":
            return self.reply(200, answer({"tools": [TOOL]}))
        text = message["params"]["arguments"]["text"]
        if text == "break":
            return self.reply(500, b"out of order")
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {
            "progressToken": message["params"]["_meta"]["progressToken"], "progress": 1}}
        result = answer({"content": [{"type": "text", "text": "http: " + text}]})
        body = b": hello\n\ndata: " + json.dumps(progress).encode() + b"\n\nevent: message\ndata: " + result + b"\n\n"
        self.reply(200, body, "text/event-stream")


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as file:
    file.write(str(server.server_port))
import os
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
