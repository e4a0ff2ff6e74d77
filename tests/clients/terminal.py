#!/usr/bin/env python3
"""Drives a terminal client, in a terminal, against the websocket of a server: what is typed, shown, asked and done.

    tests/clients/terminal.py --server target/debug/oarlock --client path/to/codex

The client is a released binary of the reference, 0.117.0 or newer, that knows `--remote ws://…`. It is a download of
more than 200 MB for each release, so this is not a part of `tests/clients/run` nor of what CI does by default. Nothing
but loopback can be reached while it runs. Needs tmux. One line per check; the exit code is 1 when one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True

from scripted_model import Request, ScriptedModel, State, Step, texts  # noqa: E402
from tmux_screen import Screen  # noqa: E402
from wire_log import WireLog  # noqa: E402

CLIENTS = Path(__file__).resolve().parent
# The runner of the other clients is a program without an ending that could be imported by name.
_loader = SourceFileLoader("run", str(CLIENTS / "run"))
_spec = spec_from_loader(_loader.name, _loader)
assert _spec is not None
runner = module_from_spec(_spec)
_loader.exec_module(runner)

START_SECONDS = 20
STOP_SECONDS = 10
TITLE = "A made-up title"
Check = Callable[["World"], None]
CHECKS: list[tuple[str, Check]] = []


def check(name: str) -> Callable[[Check], Check]:
    def listed(function: Check) -> Check:
        CHECKS.append((name, function))
        return function

    return listed


class Model(ScriptedModel):
    """Newer clients also have titles made for their threads, at a time of their choosing; these are no steps."""

    def _take(self, request: Request) -> tuple[State, Step]:
        if request.body.get("text", {}).get("format"):
            with self._changed:
                return self._state, {"text": json.dumps({"title": TITLE})}
        return super()._take(request)


class World:
    """A server with a model, a workspace, and one client at a time."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self._options = options
        self.root = Path(tempfile.mkdtemp(prefix="terminal-", dir=work))
        self.cwd = self._folder("workspace")
        self.model = Model()
        config = (CLIENTS / "config.toml").read_text().replace("{base_url}", self.model.base_url)
        # Here everything that writes must ask.
        config = config.replace('"never"', '"on-request"').replace('"danger-full-access"', '"read-only"')
        for home in ("server-home", "client-home"):
            (self._folder(home) / "config.toml").write_text(config)
        trust = f'\n[projects."{self.cwd}"]\ntrust_level = "trusted"\n'
        with (self.root / "client-home" / "config.toml").open("a") as client_config:
            client_config.write(trust)
        self._port = free_port()
        self.wire = WireLog(self._port, self.root / "wire.jsonl")
        self._server: subprocess.Popen[bytes] | None = None
        self.screen: Screen | None = None
        self.start_server()

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir()
        return folder

    def _env(self, home: str) -> dict[str, str]:
        path = str(self.root / home)
        return {**runner.clean_environment(), "HOME": str(self.root), "CODEX_HOME": path, "OARLOCK_HOME": path}

    def start_server(self) -> None:
        command = [str(self._options.server), self._options.through, "--listen", f"ws://127.0.0.1:{self._port}"]
        with (self.root / "server.log").open("a") as log:
            self._server = subprocess.Popen(
                command, cwd=self.cwd, env=self._env("server-home"), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_SECONDS
        while not answers(self._port):
            assert self._server.poll() is None, f"the server ended with {self._server.returncode}"
            assert time.monotonic() < deadline, f"no server at its port within {START_SECONDS} s"
            time.sleep(0.02)

    def stop_server(self) -> None:
        if self._server is None:
            return
        self._server.terminate()
        try:
            self._server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
            raise AssertionError(f"the server did not stop within {STOP_SECONDS} s") from None
        finally:
            self._server = None

    def launch(self, *arguments: str) -> Screen:
        """Starts the client."""
        self.close_client()
        command = [str(self._options.client), *arguments, "--remote", f"ws://127.0.0.1:{self.wire.port}"]
        self.screen = Screen(command, self.cwd, self._env("client-home"))
        return self.screen

    def open(self, *arguments: str) -> Screen:
        """Starts the client and waits until it takes a prompt."""
        screen = self.launch(*arguments)
        self.wait_for_prompt()
        return screen

    def wait_for_prompt(self) -> None:
        screen = self.screen
        assert screen is not None

        def ready() -> bool:
            assert not screen.ended(), f"the client ended: {last_words(screen.text())}"
            text = screen.text()
            found = re.search(r"^› .*\n(.*\n)*? +mock-model .*·", text, re.MULTILINE)
            return found is not None and "esc to interrupt" not in text

        screen.wait(ready, "a prompt", START_SECONDS)

    def quit(self) -> None:
        """Leaves the client as its users do."""
        assert self.screen is not None
        self.screen.type("/quit")
        self.screen.wait(self.screen.ended, "the client's end")

    def close_client(self) -> None:
        if self.screen is not None:
            (self.root / "screen.txt").write_text(self.screen.everything())
            self.screen.close()
            self.screen = None

    def stop(self) -> list[str]:
        """What was not as it should be at the end."""
        problems = []
        self.close_client()
        report = self.model.report()
        self.model.close()
        try:
            self.stop_server()
        except AssertionError as error:
            problems.append(str(error))
        self.wire.close()
        if report["unexpected"]:
            problems.append(f"unexpected model requests: {report['unexpected']}")
        if report["unused"]:
            problems.append(f"{report['unused']} steps of the model's script were not asked for")
        return problems


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def last_words(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("Pane is dead")]
    return " ".join(" ".join(lines[-4:]).split())


def command(line: str) -> Step:
    """A call that has to be asked about."""
    reason = {"sandbox_permissions": "require_escalated", "justification": "May it be touched?"}
    return {"call": "exec_command", "arguments": {"cmd": line, **reason}}


def edit(path: str, line: str) -> Step:
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch"
    return {"run": f"apply_patch <<'EOF'\n{patch}\nEOF"}


@check("answer: shown while it streams, and whole at its end")
def answer(world: World) -> None:
    world.model.play({"text": "The first line.\n\nThe last words.", "hold": True})
    screen = world.open()
    screen.type("Say two lines.")
    screen.wait_for("The first line.")
    world.model.release()
    screen.wait_for("The first line.", "The last words.")
    world.wait_for_prompt()
    assert "Say two lines." in texts(world.model.requests[0].body)


@check("command: the dialog shows it, and accepted it runs")
def command_accepted(world: World) -> None:
    world.model.play(command("touch made.txt"), {"text": "It is made."})
    screen = world.open()
    screen.type("Make it.")
    screen.wait_for("touch made.txt", "May it be touched?", "Yes, proceed")
    assert not (world.cwd / "made.txt").exists(), "it ran before it was allowed"
    screen.press("y")
    screen.wait_for("It is made.")
    assert (world.cwd / "made.txt").exists(), "it did not run"


@check("command: declined it does not run, and the thread lives on")
def command_declined(world: World) -> None:
    world.model.play(command("touch made.txt"), {"text": "Something else then."})
    screen = world.open()
    screen.type("Make it.")
    screen.wait_for("touch made.txt", "Yes, proceed")
    screen.press("Escape")
    screen.wait_for("interrupted")
    world.wait_for_prompt()
    screen.type("Do something else.")
    screen.wait_for("Something else then.")
    assert not (world.cwd / "made.txt").exists(), "it ran"


@check("edit: the dialog shows the file, and accepted it is written")
def edit_accepted(world: World) -> None:
    world.model.play(edit("notes.txt", "a new line"), {"text": "It is written."})
    screen = world.open()
    screen.type("Write it.")
    screen.wait_for("notes.txt", "a new line", "Yes, proceed")
    assert not (world.cwd / "notes.txt").exists(), "it was written before it was allowed"
    screen.press("y")
    screen.wait_for("It is written.")
    assert (world.cwd / "notes.txt").read_text() == "a new line\n"


@check("edit: declined it is not written, and the thread lives on")
def edit_declined(world: World) -> None:
    world.model.play(edit("notes.txt", "a new line"), {"text": "Something else then."})
    screen = world.open()
    screen.type("Write it.")
    screen.wait_for("notes.txt", "a new line", "Yes, proceed")
    screen.press("Escape")
    screen.wait_for("interrupted")
    world.wait_for_prompt()
    screen.type("Do something else.")
    screen.wait_for("Something else then.")
    assert not (world.cwd / "notes.txt").exists(), "it was written"


@check("shell: a command of the user's own runs and shows its output")
def own_command(world: World) -> None:
    screen = world.open()
    screen.type("!echo $((40 + 2)) > made.txt; cat made.txt; echo the end")
    screen.wait_for("You ran", "42", "the end")
    assert (world.cwd / "made.txt").read_text() == "42\n"


@check("compact: the thread is summed up and lives on")
def compact(world: World) -> None:
    world.model.play({"text": "The first answer."}, {"text": "A summary of it."}, {"text": "The next answer."})
    screen = world.open()
    screen.type("A first question.")
    screen.wait_for("The first answer.")
    world.wait_for_prompt()
    screen.type("/compact")
    screen.wait_for("Context compacted")
    world.wait_for_prompt()
    screen.type("A next question.")
    screen.wait_for("The next answer.")
    said = texts(world.model.requests[-1].body)
    assert any("A summary of it." in text for text in said) and "The first answer." not in said, said


@check("interrupt: Esc ends an answer, lets go of the model, and the thread lives on")
def interrupt_answer(world: World) -> None:
    world.model.play({"text": "Words without an end", "hold": True}, {"text": "Fresh words."})
    screen = world.open()
    screen.type("Talk.")
    # 0.117 shows a line once it is whole, and takes Esc only while its own "Working" stands there instead.
    screen.wait(lambda: world.model.requests, "a request to the model")
    screen.wait(lambda: "esc to interrupt" in screen.text() or "Words without" in screen.text(), "a turn under way")
    screen.press("Escape")
    screen.wait_for("interrupted")
    assert world.model.wait_until_abandoned(0, 10), "the model's connection is still open"
    world.wait_for_prompt()
    screen.type("Go on.")
    screen.wait_for("Fresh words.")


@check("interrupt: Esc does not wait for a running command")
def interrupt_command(world: World) -> None:
    world.model.play({"run": "sleep 600"}, {"text": "Fresh words."})
    screen = world.open()
    screen.type("Run it.")
    screen.wait_for("1 background terminal running", "esc to interrupt")
    screen.press("Escape")
    screen.wait_for("interrupted")
    world.wait_for_prompt()
    screen.type("Go on.")
    screen.wait_for("Fresh words.")


def spoken(world: World) -> str:
    """Has one exchange, leaves the client, and gives the thread's id."""
    world.model.play({"text": "An answer to remember."}, {"text": "An answer to more."})
    screen = world.open()
    screen.type("A question to remember.")
    screen.wait_for("An answer to remember.")
    world.wait_for_prompt()
    world.quit()
    found = re.search(r"resume ([0-9a-f-]{36})", screen.everything())
    assert found, f"no way to resume is shown: {last_words(screen.text())}"
    return found[1]


def goes_on(world: World, screen: Screen) -> None:
    screen.wait_for("A question to remember.", "An answer to remember.", seconds=START_SECONDS)
    world.wait_for_prompt()
    screen.type("More of it.")
    screen.wait_for("An answer to more.")
    said = texts(world.model.requests[-1].body)
    assert [text for text in said if "to remember." in text] == ["A question to remember.", "An answer to remember."]


@check("resume: by id, from a server that was started anew, with what was said")
def resume_by_id(world: World) -> None:
    thread = spoken(world)
    world.stop_server()
    world.start_server()
    goes_on(world, world.launch("resume", thread))


@check("resume: the last thread, and one picked from the list")
def resume_last_and_picked(world: World) -> None:
    spoken(world)
    screen = world.launch("resume", "--last")
    screen.wait_for("A question to remember.", "An answer to remember.", seconds=START_SECONDS)
    screen = world.launch("resume")
    screen.wait_for("Resume a previous session", seconds=START_SECONDS)
    screen.wait(lambda: "A question to remember." in screen.text() or TITLE in screen.text(), "the thread in the list")
    screen.press("Enter")
    goes_on(world, screen)


def run_check(name: str, function: Check, options: argparse.Namespace, work: Path) -> bool:
    started = time.monotonic()
    world = World(options, work)
    problems = []
    try:
        function(world)
    except AssertionError as error:
        problems.append(" ".join(str(error).split())[:500])
    finally:
        problems += world.stop()
    seconds = time.monotonic() - started
    if not problems:
        print(f"ok    {name} ({seconds:.1f} s)", flush=True)
        if options.keep:
            print(f"      files: {world.root}", flush=True)
        else:
            shutil.rmtree(world.root, ignore_errors=True)
        return True
    print(f"FAIL  {name} ({seconds:.1f} s): {'; '.join(problems)}", flush=True)
    print(f"      files: {world.root}", flush=True)
    for refusal in dict.fromkeys(world.wire.refused):
        print(f"      refused: {refusal[:200]}", flush=True)
    screen = world.root / "screen.txt"
    for line in screen.read_text().splitlines() if screen.exists() else []:
        if line.strip():
            print(f"      | {line}", flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="a binary with `app-server --listen ws://…`")
    parser.add_argument("--through", choices=["app-server", "host"], default="app-server", help="what serves the client")
    parser.add_argument("--client", type=Path, required=True, help="a released binary of the terminal client")
    parser.add_argument("--check", default="", metavar="PART", help="only checks whose name contains this")
    parser.add_argument("--keep", action="store_true", help="keep screens, messages and logs of passed checks too")
    options = parser.parse_args()
    for name in ("server", "client"):
        path = getattr(options, name).resolve()
        if not os.access(path, os.X_OK) or path.is_dir():
            parser.error(f"--{name} {path} is not a program")
        setattr(options, name, path)
    if shutil.which("tmux") is None:
        parser.error("tmux is not installed")
    runner.only_loopback()
    runner.TARGET.mkdir(parents=True, exist_ok=True)
    # Not in the system's temporary folder, where some servers refuse to keep their home.
    work = Path(tempfile.mkdtemp(prefix="work-", dir=runner.TARGET))
    checks = [(name, function) for name, function in CHECKS if options.check in name]
    passed = [run_check(name, function, options, work) for name, function in checks]
    print(f"{sum(passed)} ok, {len(passed) - sum(passed)} failed", flush=True)
    if passed and all(passed) and not options.keep:
        shutil.rmtree(work, ignore_errors=True)
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
