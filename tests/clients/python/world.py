"""One check: its own home, workspace, model and client processes; and the list of checks."""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openai_codex import AsyncCodex, Codex, CodexConfig
from openai_codex.client import CodexClient
from openai_codex.models import Notification

from scripted_model import Request, ScriptedModel, texts

CLIENTS = Path(__file__).resolve().parent.parent
CHECK_SECONDS = 40
CLOSE_SECONDS = 10
Check = Callable[["World"], None]
CHECKS: list[tuple[str, Check]] = []


def check(name: str) -> Callable[[Check], Check]:
    def listed(function: Check) -> Check:
        CHECKS.append((name, function))
        return function

    return listed


class World:
    def __init__(self, binary: Path, work: Path) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="python-", dir=work))
        self.home, self.cwd = self.root / "home", self.root / "workspace"
        self.home.mkdir()
        self.cwd.mkdir()
        self.model = ScriptedModel()
        config = (CLIENTS / "config.toml").read_text().replace("{base_url}", self.model.base_url)
        (self.home / "config.toml").write_text(config)
        self._binary = binary
        self._clients: list[CodexClient] = []

    def config(self, **more: Any) -> CodexConfig:
        """How a user points the client at another binary."""
        home = str(self.home)
        env = {"CODEX_HOME": home, "OARLOCK_HOME": home, "HOME": str(self.root)}
        return CodexConfig(codex_bin=str(self._binary), cwd=str(self.cwd), env=env, **more)

    @contextmanager
    def codex(self, **more: Any) -> Iterator[Codex]:
        codex = Codex(self.config(**more))
        self._clients.append(codex._client)
        with codex:
            yield codex

    def async_codex(self) -> AsyncCodex:
        codex = AsyncCodex(self.config())
        self._clients.append(codex._client._sync)
        return codex

    @contextmanager
    def low_level(self, approval_handler: Callable[[str, Any], Any] | None = None) -> Iterator[CodexClient]:
        client = CodexClient(self.config(), approval_handler)
        self._clients.append(client)
        with client:
            client.initialize()
            yield client

    @property
    def asked(self) -> list[Request]:
        return self.model.requests

    def stderr(self) -> str:
        return "\n".join(line for client in self._clients for line in list(client._stderr_lines)[-5:])

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self.model.close()

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def conversation(request: Request) -> list[str]:
    """The words of the user and the model in a request, without the context that the server adds."""
    said = []
    for item in request.body["input"]:
        if item.get("type") == "message" and item["role"] in ("user", "assistant"):
            said += [text for text in texts({"input": [item]}) if not text.lstrip().startswith(("<", "# AGENTS"))]
    return said


def item_types(items: Any) -> list[str]:
    return [item.root.type for item in items]


def until_delta(stream: Iterator[Notification]) -> list[Notification]:
    """Reads up to the first piece of the model's text, when the turn is surely under way."""
    seen = []
    for event in stream:
        seen.append(event)
        if event.method == "item/agentMessage/delta":
            return seen
    raise AssertionError(f"the turn ended before any text: {[event.method for event in seen]}")


def eventually(condition: Callable[[], Any], what: str, seconds: float = 10) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return value


def run_check(name: str, function: Check, binary: Path, work: Path) -> bool:
    """Prints one line: `ok` or `FAIL`, the name, and what is wrong."""
    world, started = World(binary, work), time.monotonic()
    problem = _problem(world, function)
    seconds = time.monotonic() - started
    if problem is None:
        print(f"ok    python: {name} ({seconds:.1f} s)", flush=True)
        world.remove()
        return True
    print(f"FAIL  python: {name} ({seconds:.1f} s): {problem}", flush=True)
    print(f"      files: {world.root}", flush=True)
    for line in world.stderr().splitlines():
        print(f"      stderr: {line[:300]}", flush=True)
    return False


def _problem(world: World, function: Check) -> str | None:
    problems: list[str] = []

    def work() -> None:
        try:
            function(world)
        except BaseException as error:  # noqa: BLE001
            problems.append(_described(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(CHECK_SECONDS)
    if thread.is_alive():
        problems.append(f"no end after {CHECK_SECONDS} s, at {_place(thread)}")
    report = world.model.report()
    world.stop()
    thread.join(CLOSE_SECONDS)
    if report["unexpected"]:
        problems.append(f"unexpected model requests: {report['unexpected']}")
    if report["unused"]:
        problems.append(f"{report['unused']} steps of the model's script were not asked for")
    return "; ".join(problems) or None


def _described(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if str(CLIENTS) in frame.filename]
    place = f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name}: {frames[-1].line})" if frames else ""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{place}"


def _place(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    frames = [f for f in traceback.extract_stack(frame) if str(CLIENTS) in f.filename] if frame else []
    return f"line {frames[-1].lineno} of {Path(frames[-1].filename).name}: {frames[-1].line}" if frames else "?"
