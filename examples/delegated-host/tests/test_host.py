"""Stops the host while it waits for a decision, and lets another one go on from its record."""

import http.server
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

HOST = Path(__file__).resolve().parent.parent / "host.py"
PROMPT = "run echo x >> runs, then say fine"
QUESTION = "nstead COMMAND: "


@contextmanager
def started(folder: Path, *prompt: str) -> "Iterator[subprocess.Popen[str]]":
    binary = os.environ.get("OARLOCK_BIN")
    if not binary:
        pytest.skip("OARLOCK_BIN is not set")
    command = [sys.executable, str(HOST), "--runtime", binary, "--record", "task.jsonl"]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OARLOCK_HOME": str(folder / "home")}
    with subprocess.Popen(
        [*command, "--sandbox", "danger-full-access", *prompt],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as host:
        try:
            yield host
        finally:
            if host.poll() is None:
                host.kill()


def read_until(host: "subprocess.Popen[str]", end: str) -> str:
    """A question has no newline at its end, so it is read letter by letter."""
    assert host.stdout
    # Whoever waits for what never comes would wait for ever.
    late = threading.Timer(20, host.kill)
    late.start()
    text = ""
    while not text.endswith(end):
        letter = host.stdout.read(1)
        assert letter, text
        text += letter
    late.cancel()
    return text


def record(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "task.jsonl").read_text().splitlines()]


def states(folder: Path) -> Counter[str]:
    return Counter(item["state"] for item in record(folder) if item["kind"] == "operation")


def test_a_decision_waits_for_the_next_host(tmp_path: Path) -> None:
    with started(tmp_path, PROMPT) as host:
        assert "echo x >> runs" in read_until(host, QUESTION)
        host.send_signal(signal.SIGINT)
        assert "start again" in host.communicate(timeout=20)[0]
    assert states(tmp_path) == {"proposed": 1}
    assert not (tmp_path / "runs").exists()

    with started(tmp_path) as host:
        said, _ = host.communicate("y\n", timeout=20)
    assert "pending since before: exec_command, proposed" in said
    assert "2. fine" in said and "[completed]" in said
    assert host.returncode == 0
    assert (tmp_path / "runs").read_text() == "x\n"
    assert states(tmp_path) == {"proposed": 1, "decided": 1, "started": 1, "finished": 1}
    assert [item["ordinal"] for item in record(tmp_path)] == list(range(len(record(tmp_path))))


def test_another_command_runs_instead(tmp_path: Path) -> None:
    with started(tmp_path, PROMPT) as host:
        said, _ = host.communicate("what?\ni touch other\n", timeout=20)
    assert "y, n, or i and a command" in said
    assert (tmp_path / "other").exists() and not (tmp_path / "runs").exists()


def test_the_older_of_two_hosts_is_fenced(tmp_path: Path) -> None:
    with started(tmp_path, PROMPT) as older:
        read_until(older, QUESTION)
        with started(tmp_path) as newer:
            read_until(newer, QUESTION)
            said, _ = older.communicate("y\n", timeout=20)
            assert "[failed]" in said and "fenced" in said
            assert not (tmp_path / "runs").exists()
            newer.communicate("y\n", timeout=20)
    assert (tmp_path / "runs").read_text() == "x\n"
    assert states(tmp_path) == {"proposed": 1, "decided": 1, "started": 1, "finished": 1}


def test_a_torn_line_was_never_acknowledged(tmp_path: Path) -> None:
    with started(tmp_path, "say one") as host:
        host.communicate(timeout=20)
    whole = (tmp_path / "task.jsonl").read_bytes()
    (tmp_path / "task.jsonl").write_bytes(whole + b'{"ordinal":')
    with started(tmp_path, "say two") as host:
        assert "[completed]" in host.communicate(timeout=20)[0]
    assert (tmp_path / "task.jsonl").read_bytes().startswith(whole)
    assert [item["ordinal"] for item in record(tmp_path)] == list(range(len(record(tmp_path))))


class Provider(http.server.BaseHTTPRequestHandler):
    """Says the first half of its answer, and the rest when it is let go."""

    asked = 0
    half_said = threading.Event()
    let_go = threading.Event()

    def do_POST(self) -> None:
        Provider.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        content = [{"type": "output_text", "text": "paid for once"}]
        said = {"type": "message", "role": "assistant", "id": "m", "content": content}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        self.say({"type": "response.created", "response": {"id": "r"}})
        Provider.half_said.set()
        Provider.let_go.wait(20)
        self.say({"type": "response.output_item.done", "item": said})
        self.say({"type": "response.completed", "response": {"id": "r", "usage": usage}})

    def say(self, event: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_an_answer_outlives_the_runtime_that_asked_for_it(tmp_path: Path) -> None:
    provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{provider.server_port}"
    runtime = tmp_path / "runtime"
    runtime.write_text(f'#!/bin/sh\necho $$ > {tmp_path}/pid\nexec {os.environ.get("OARLOCK_BIN")} "$@"\n')
    runtime.chmod(0o755)
    try:
        with started(tmp_path, "--runtime", str(runtime), "--upstream", upstream, "say it") as host:
            assert Provider.half_said.wait(20)
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
            Provider.let_go.set()
            host.communicate(timeout=20)
        assert host.returncode != 0
        assert "paid for once" not in (tmp_path / "task.jsonl").read_text()
        with started(tmp_path, "--upstream", upstream) as host:
            said, _ = host.communicate(timeout=20)
    finally:
        provider.shutdown()
    assert "answered from the record" in said and "[completed]" in said
    assert "paid for once" in (tmp_path / "task.jsonl").read_text()
    assert Provider.asked == 1
