"""host-kills: after SIGKILL of host, runtime, client, or two of them, at every named point, the next host goes on.

Each round has a host of its own on a store of its own, and a turn with two commands that need a person's yes. Whoever is
to die is killed from the very place where the client hears of the point. The next host is asked to finish: what waits is
approved, what is unknown is answered, and nothing is run again by itself. Effects are counted by the commands, in a file.
"""

import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from effects import Effects
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import SECONDS, Refused, Silence, Socket, make_home, until

APPROVAL = "item/commandExecution/requestApproval"
CAPABILITIES = {"experimentalApi": True, "host": {"versions": [1], "allTasks": True}}


def is_answer(method: str) -> Callable[[Json, "Attempt"], bool]:
    def is_it(message: Json, attempt: "Attempt") -> bool:
        return "result" in message and attempt.asked(message) == method

    return is_it


def is_told(method: str, state: str = "") -> Callable[[Json, "Attempt"], bool]:
    def is_it(message: Json, attempt: "Attempt") -> bool:
        if message.get("method") != method:
            return False
        return not state or message["params"].get("operation", message["params"].get("item", {})).get("state") == state

    return is_it


# Points of a turn, as its client hears of them, in the order in which they come.
POINTS: dict[str, Callable[[Json, "Attempt"], bool]] = {
    "thread/start answered": is_answer("thread/start"),
    "turn/start answered": is_answer("turn/start"),
    "turn/started": is_told("turn/started"),
    "operation proposed": is_told("operation/updated", "proposed"),
    "approval asked": is_told(APPROVAL),
    "operation decided": is_told("operation/updated", "decided"),
    "question resolved": is_told("serverRequest/resolved"),
    "operation started": is_told("operation/updated", "started"),
    "operation finished": is_told("operation/updated", "finished"),
    "item/completed": is_told("item/completed"),
    "turn/completed": is_told("turn/completed"),
}
# Who dies there. Two words: the second dies as soon as the next host is asked.
VICTIMS = ("host", "runtime", "client", "host+runtime")
PAIRS = (
    ("turn/start answered", "host", "approval asked", "runtime"),
    ("approval asked", "host", "approval asked", "host"),
    ("approval asked", "runtime", "operation decided", "host"),
    ("operation decided", "host", "operation started", "host"),
    ("operation decided", "runtime", "operation started", "runtime"),
    ("operation started", "host", "operation finished", "runtime"),
    ("operation started", "runtime", "approval asked", "host"),
    ("operation finished", "host", "item/completed", "host"),
    ("question resolved", "host+runtime", "operation started", "host"),
    ("item/completed", "client", "operation decided", "host"),
)


class Site:
    """Where the tasks of a round run: here, in runtimes that are children of their host."""

    def __init__(self) -> None:
        # Of `oarlock host`, of `thread/start`, and more of `config.toml`.
        self.arguments: tuple[str, ...] = ()
        self.params: Json = {}
        self.config = ""

    def runtimes(self, host: int) -> list[int]:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
                line = (stat.parent / "cmdline").read_bytes()
            except (OSError, IndexError):
                continue
            if parent == host and b"app-server" in line:
                found.append(int(stat.parent.name))
        return found

    def lose(self) -> None:
        """Ends the place, or the connection to it."""
        raise NotImplementedError

    def clear(self) -> None:
        """After a round."""


class Host:
    """One process, and the runtimes it has started."""

    def __init__(self, run: Run, folder: Path, site: Site) -> None:
        self.site = site
        self.socket = folder / "tasks.sqlite.sock"
        home = folder / "home"
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "LANG": "C.UTF-8"}
        environment |= {"CODEX_HOME": str(home), "OARLOCK_HOME": str(home)}
        store = folder / "tasks.sqlite"
        with (folder / "stderr").open("ab") as errors:
            self.process = subprocess.Popen(
                [str(run.binary), "host", "--store", f"sqlite:{store}", "--suspend-after", "600", *site.arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                cwd=folder,
            )

    def kill(self, who: str) -> None:
        if "place" in who:
            self.site.lose()
        if "runtime" in who:
            for runtime in self.site.runtimes(self.process.pid):
                _kill(runtime)
        if "host" in who:
            _kill(self.process.pid)

    def end(self) -> None:
        _kill(self.process.pid)
        self.process.wait(SECONDS)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Attempt:
    """A client that works on the task until it is over, or until somebody dies at the point."""

    def __init__(self, run: Run, folder: Path, at: tuple[str, str], site: Site) -> None:
        point, victim = at
        self.host = Host(run, folder, site)
        self.folder, self.point, self.victim = folder, point, victim
        self.is_dead = False
        self.client = Socket(self.host.socket, folder, self._hear)
        info = {"name": "figures", "title": None, "version": "0"}
        self.client.result("initialize", {"clientInfo": info, "capabilities": CAPABILITIES})
        self.client.write('{"method":"initialized"}')

    def asked(self, message: Json) -> str:
        return self.client.sent.get(message.get("id", 0), ("", {}))[0]

    def _hear(self, message: Json) -> None:
        if self.point and not self.is_dead and POINTS[self.point](message, self):
            self.is_dead = True
            self.host.kill(self.victim)
            if "client" in self.victim:
                self.client._socket.close()
                return
        # A question outlives the runtime that asked it, and its host: whoever is left answers it.
        if message.get("method") == APPROVAL:
            try:
                self.client.write(json.dumps({"id": message["id"], "result": {"decision": "accept"}}))
            except OSError:
                pass  # The host is gone, and asks again.

    def close(self) -> None:
        self.host.end()
        self.client.close()


def begin(attempt: Attempt, plan: Plan, said: list[str]) -> None:
    """As far as it comes. `said` gets the thread, and the input once that is acknowledged."""
    thread = attempt.client.start_thread(dynamicTools=[], **attempt.host.site.params)
    said.append(thread)
    params = {"threadId": thread, "input": [{"type": "text", "text": plan.text()}], "inputId": "i1"}
    attempt.client.result("turn/start", params)
    said.append("i1")
    attempt.client.notification("turn/completed", threadId=thread)


def is_over(client: Socket, thread: str) -> bool:
    """Answers what is unknown, as a person would who has looked."""
    waiting = client.result("operation/list", {"threadId": thread, "state": "unknown"})["data"]
    for operation in waiting:
        decision = {"type": "respond", "contentItems": [{"type": "inputText", "text": "looked"}], "success": True}
        names = {name: operation[name] for name in ("operationId", "argumentsDigest")}
        client.ask("operation/decide", {**names, "decision": decision})
    turns = client.result("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    return bool(turns) and turns[-1]["status"] == "completed"


def finish(run: Run, folder: Path, thread: str, second: tuple[str, str], site: Site) -> list[str]:
    """Hosts after the first one, until the turn is over. One of them may die too."""
    for at in (second, ("", "")):
        if not at[0] and second[0] and is_done(folder, thread):
            return []
        attempt = Attempt(run, folder, at, site)
        try:
            attempt.client.result("thread/resume", {"threadId": thread})
            if until(lambda: is_over(attempt.client, thread), SECONDS):
                return []
        except (Refused, Silence, OSError) as problem:
            if not attempt.is_dead:
                return [f"the next host does not go on: {problem}"]
        finally:
            attempt.close()
    return ["the turn did not end"]


def is_done(folder: Path, thread: str) -> bool:
    return any('"turnEnded"' in payload for _, payload in records(folder, thread))


def records(folder: Path, thread: str) -> list[tuple[int, str]]:
    store = sqlite3.connect(folder / "tasks.sqlite")
    try:
        rows = store.execute("SELECT ordinal, payload FROM records WHERE thread_id = ? ORDER BY ordinal", (thread,))
        return list(rows)
    finally:
        store.close()


@dataclass(frozen=True)
class Round:
    """Who dies where, and who dies after that."""

    name: str
    first: tuple[str, str]
    second: tuple[str, str] = ("", "")
    site: Site = field(default_factory=Site)


def one(run: Run, folder: Path, model: Model, kills: Round) -> list[str]:
    name, site = kills.name, kills.site
    folder.mkdir(parents=True)
    make_home(folder / "home", model, approval="untrusted", more=site.config)
    effects = Effects(folder / "effects")
    plan = Plan(name, commands=(effects.command("a"), effects.command("b")))
    said: list[str] = []
    attempt = Attempt(run, folder, kills.first, site)
    try:
        begin(attempt, plan, said)
    except (Refused, Silence, OSError):
        pass  # Whatever was not answered was not promised.
    finally:
        attempt.close()
    if not attempt.is_dead:
        return [f"nobody died at {kills.first[0]}"]
    problems = []
    if len(said) == 2:
        problems += finish(run, folder, said[0], kills.second, site)
        found = records(folder, said[0])
        if [ordinal for ordinal, _ in found] != list(range(len(found))):
            problems.append("the ordinals have gaps")
        if sum('"userMessage"' in payload for _, payload in found) != 1:
            problems.append("the input is not in the record exactly once")
    problems += [f"{mark} ran {times} times" for mark, times in effects.counts().items() if times > 1]
    return problems


def rounds(run: Run) -> Iterable[tuple[str, tuple[str, str], tuple[str, str]]]:
    """The quick form has one victim at each point, another one from point to point, and two of the pairs."""
    for number in range(run.pick(3, 1)):
        for at, point in enumerate(POINTS):
            for victim in VICTIMS if not run.quick else (VICTIMS[at % len(VICTIMS)],):
                yield f"{point}, {victim} ({number})", (point, victim), ("", "")
        for first, died, second, also in PAIRS if not run.quick else PAIRS[::5]:
            yield f"{first}, {died}, then {second}, {also} ({number})", (first, died), (second, also)


def measure(run: Run) -> Outcome:
    model, failures = Model(), []
    chosen = list(rounds(run))
    counter = Counter("kills", len(chosen))
    for number, (name, first, second) in enumerate(chosen):
        problems = one(run, run.folder / f"round-{number}", model, Round(f"round-{number}", first, second))
        failures += [f"{name}: {problem}" for problem in problems]
        counter.step()
    model.close()
    return Outcome(f"{len(chosen)} kills, {len(failures)} problems", failures, {"rounds": len(chosen)})
