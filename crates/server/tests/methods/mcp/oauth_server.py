"""An MCP server over HTTP with its own authorization server, for tests. Arguments: the file for its port, its mode.

GET /log answers what it was asked for, one line each.
"""
import base64
import hashlib
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

PORT_FILE, MODE = sys.argv[1], sys.argv[2]
TOOL = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
LOG, CODES, CLIENTS = [], {}, {}
STATE = {"access": None, "refresh": None, "count": 0}


def issue():
    STATE["count"] += 1
    STATE["access"], STATE["refresh"] = f"access-{STATE['count']}", f"refresh-{STATE['count']}"
    seconds = 5 if MODE == "short" and STATE["count"] == 1 else 3600
    return {"access_token": STATE["access"], "refresh_token": STATE["refresh"], "token_type": "Bearer",
            "expires_in": seconds, "scope": "tools"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def metadata(self):
        at = self.origin
        found = {"issuer": at, "authorization_endpoint": f"{at}/authorize", "token_endpoint": f"{at}/token",
                 "registration_endpoint": f"{at}/register", "code_challenge_methods_supported": ["S256"],
                 "authorization_response_iss_parameter_supported": True}
        found.update({
            "other-issuer": {"issuer": "https://other.example"},
            "no-pkce": {"code_challenge_methods_supported": ["plain"]},
            "script-page": {"authorization_endpoint": "javascript:alert(1)"},
            "plain-token": {"token_endpoint": "http://192.0.2.1/token"},
            "cloud-token": {"token_endpoint": "https://169.254.169.254/latest"},
            "disguised": {"authorization_endpoint": "https://known.example@192.0.2.1/authorize"},
            "no-registration": {"registration_endpoint": None},
        }.get(MODE, {}))
        return found

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/log":
            return self.reply(200, "\n".join(LOG).encode())
        LOG.append(f"GET {url.path}")
        if url.path == "/.well-known/oauth-protected-resource/mcp" and MODE != "older":
            if MODE == "redirect":
                return self.reply(302, Location="http://169.254.169.254/")
            if MODE == "huge":
                return self.reply(200, b"x" * 10_000_000)
            issuer = "http://192.0.2.1" if MODE == "plain-issuer" else self.origin
            resource = "https://other.example/mcp" if MODE == "other-resource" else f"{self.origin}/mcp"
            return self.reply(200, {"resource": resource, "authorization_servers": [issuer],
                                    "scopes_supported": ["tools"]})
        if url.path == "/.well-known/oauth-authorization-server":
            return self.reply(200, self.metadata())
        if url.path == "/authorize":
            back = {"state": query["state"], "iss": self.origin}
            if MODE == "refuses":
                back.update(error="access_denied", error_description="<b>no</b>\r\n<script>alert(1)</script>")
            elif MODE == "mixed-up":
                back.update(code="x", iss="https://other.example")
            else:
                code = f"code-{len(CODES)}"
                CODES[code] = query
                back["code"] = code
            assert query["redirect_uri"] in CLIENTS[query["client_id"]]
            return self.reply(302, Location=query["redirect_uri"] + "?" + urlencode(back))
        self.reply(405)

    def do_DELETE(self):
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/register":
            LOG.append("POST /register")
            if MODE == "broken-registration":
                return self.reply(500, b"<html>no</html>")
            client = f"client-{len(CLIENTS)}"
            CLIENTS[client] = json.loads(body)["redirect_uris"]
            return self.reply(201, {"client_id": client})
        if self.path == "/token":
            return self.token({key: values[0] for key, values in parse_qs(body.decode()).items()})
        message = json.loads(body)
        method, rid = message.get("method"), message.get("id")
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not STATE["access"] or token != STATE["access"]:
            LOG.append(f"401 {method}")
            where = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
            if MODE == "elsewhere":
                where = "https://192.0.2.1/metadata"
            told = "Bearer" if MODE == "older" else f'Bearer resource_metadata="{where}"'
            return self.reply(401, WWW_Authenticate=told)
        if rid is None:
            return self.reply(202)
        if MODE == "revokes" and method == "tools/call" and STATE["count"] == 1:
            STATE["access"] = None
            LOG.append("401 tools/call")
            return self.reply(401, WWW_Authenticate='Bearer error="invalid_token"')
        if MODE == "wants-more" and method == "tools/call":
            return self.reply(403, WWW_Authenticate='Bearer error="insufficient_scope", scope="tools admin"')
        LOG.append(f"200 {method} {token}")
        result = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                 "serverInfo": {"name": "o", "version": "1"}},
                  "tools/list": {"tools": [TOOL]},
                  "tools/call": {"content": [{"type": "text", "text": "in"}]}}[method]
        self.reply(200, {"jsonrpc": "2.0", "id": rid, "result": result})

    def token(self, form):
        LOG.append(f"POST /token {form['grant_type']}")
        if form.get("resource") != f"{self.origin}/mcp":
            return self.reply(400, {"error": "invalid_target"})
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != STATE["refresh"] or MODE == "ended":
                return self.reply(400, {"error": "invalid_grant"})
            return self.reply(200, issue())
        asked = CODES.pop(form["code"], None)
        proof = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if not asked or asked["code_challenge"] != proof or asked["redirect_uri"] != form["redirect_uri"]:
            return self.reply(400, {"error": "invalid_grant", "error_description": "wrong proof"})
        self.reply(200, issue())


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
