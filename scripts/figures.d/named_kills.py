"""named-kills: host, runtime and client die at points of their own code; the database dies; a host wakes up too late.

A build with debug assertions ends itself by SIGKILL, or by a panic, at the points that `OARLOCK_KILL_AT` names
(`kill_point!`). Each round has a store of its own and one turn: a command that needs a yes, and a call of each kind of
function tool. Whoever is left, or is started next, is asked for the same again and brings the turn to its end: what waits
is approved, what is unknown is answered. Effects are counted outside, by the command and by the client that runs the tools.
"""

import json
import mmap
import signal
import time
import uuid
from collections import Counter as Numbers
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hosts import LEASE, HostProcess, Postgres, PostgresServer, Sqlite, Store
from report import Counter, Json, Outcome, Run, Skipped, progress
from server import SECONDS, Refused, Silence, Socket, until

APPROVAL = "item/commandExecution/requestApproval"
CAPABILITIES = {"experimentalApi": True, "host": {"versions": [1], "allTasks": True}}
TEXT = "run sh job.sh then call pay {} then call note {} then call look {} then say done"
TOOLS = {"pay": "once", "note": "idempotent", "look": "readonly"}
# The shell of the runtime, whatever its tool is called.
JOB = "job"
PROVIDES = [{"name": name} for name in TOOLS]


@dataclass(frozen=True)
class Case:
    """Who dies, and where."""

    # Points of the first host and its runtimes.
    at: tuple[str, ...] = ()
    # Points of the second host and its runtimes.
    then: tuple[str, ...] = ()
    # The client goes before or after it runs this tool: `pay.before`.
    client: str = ""
    # When the client first hears of an operation in this state, the database dies, or the host is stopped for too long.
    database: str = ""
    stop: str = ""
    # Nothing is approved until the points have killed.
    holds: bool = False
    # The task has a place, which is kept in a snapshot at the end.
    place: bool = False
    more: tuple[str, ...] = ()
    stores: tuple[str, ...] = ("sqlite", "postgres")

    def name(self) -> str:
        words = [*self.at, *self.then, self.client, self.database and f"database at {self.database}"]
        return ", then ".join(word for word in [*words, self.stop and f"stopped at {self.stop}"] if word)


HOST = (
    "host.input.before host.input.after host.epoch.after host.launch.before host.launch.after host.runtime.noted "
    "host.runtime.opened host.turnStarted.before host.turnStarted.after host.stream.before host.stream.after "
    "host.proposed.before host.proposed.after host.decision.before host.decision.after host.decided.before "
    "host.decided.after host.started.before host.started.after host.finished.before host.finished.after "
    "host.attempt.before host.attempt.after host.result.before host.result.after "
    "host.turnEnded.before host.turnEnded.after"
).split()
RECORDS = "userInput operationProposed operationDecided operationStarted operationFinished turnEnded".split()
RUNTIME = [f"runtime.{record}.{when}" for record in RECORDS for when in ("before", "after")]
SUSPENDED = ("host.suspend.before", "host.suspend.after", "runtime.suspend.before", "runtime.suspend.after")
SINGLES = [
    *(Case(at=(point,)) for point in (*HOST, *RUNTIME)),
    *(Case(at=(point,), holds=True, more=("--suspend-after", "0")) for point in SUSPENDED),
    *(Case(at=(point,), holds=True, stores=("postgres",)) for point in ("host.lease.before", "host.lease.after")),
    *(Case(at=(f"host.snapshot.{when}",), place=True) for when in ("before", "taken", "after")),
    # `!` is an end by a panic, which aborts the process, instead of SIGKILL.
    *(Case(at=(point,)) for point in ("host.decision.after!", "runtime.operationStarted.after!")),
    *(Case(client=f"{tool}.{when}") for tool in TOOLS for when in ("before", "after")),
]
PAIRS = [
    Case(at=("host.input.after",), then=("host.turnStarted.after",)),
    Case(at=("host.decision.after",), then=("host.adopted",)),
    Case(at=("host.stream.after",), then=("runtime.operationProposed.after",)),
    Case(at=("host.attempt.after",), then=("host.runtime.opened",)),
    Case(at=("host.result.before",), then=("host.adopted",)),
    Case(at=("host.finished.after",), then=("host.runtime.noted",)),
    Case(at=("runtime.operationStarted.after", "host.epoch.after#2")),
    Case(at=("runtime.operationFinished.before", "host.launch.after#2")),
    Case(at=("runtime.operationProposed.after", "runtime.operationDecided.after")),
    Case(at=("host.decision.after#2",), client="pay.after"),
]
FAULTS = [
    *(Case(database=state, stores=("postgres",)) for state in ("proposed", "decided", "started", "finished")),
    *(Case(stop=state, stores=("postgres",)) for state in ("proposed", "started", "finished")),
]
QUICK = [
    ("sqlite", Case(at=("host.decision.after",))),
    ("sqlite", Case(at=("host.attempt.after",))),
    ("sqlite", Case(at=("runtime.operationStarted.after",))),
    ("sqlite", Case(at=("runtime.operationFinished.before",))),
    ("sqlite", Case(client="pay.after")),
    ("postgres", Case(at=("host.started.after",))),
]


class ToolClient(Socket):
    """A client that approves, runs the tools, and may go at a point of its own."""

    def __init__(self, round_: "Round", host: HostProcess) -> None:
        self.round = round_
        super().__init__(host.socket, round_.folder, self._take)
        info = {"name": "figures", "title": None, "version": "0"}
        self.result("initialize", {"clientInfo": info, "capabilities": CAPABILITIES})
        self.write('{"method":"initialized"}')

    def _take(self, message: Json) -> None:
        if message.get("method") == APPROVAL:
            self.round.is_asked(message["params"]["operationId"])
            self._say(message, {"decision": "defer" if self.round.holds() else "accept"})
        elif message.get("method") == "operation/updated":
            self.round.is_told(message["params"]["operation"])
            if self.round.is_silent():
                self.go()
        elif message.get("method") == "item/completed":
            self.round.ended_items.add(message["params"]["item"]["id"])

    def _use_tool(self, message: Json) -> None:
        tool = message["params"]["tool"]
        if self.round.leaves(f"{tool}.before"):
            return self.go()
        with self.round.effects.open("a") as effects:
            effects.write(f"{tool} {message['params']['operationId']}\n")
        if self.round.leaves(f"{tool}.after"):
            return self.go()
        content = [{"type": "inputText", "text": f"{tool} is done"}]
        self._say(message, {"contentItems": content, "success": True})

    def _say(self, message: Json, result: Json) -> None:
        try:
            self.write(json.dumps({"id": message["id"], "result": result}))
        except OSError:
            pass  # The host is gone, and asks again.

    def go(self) -> None:
        try:
            self._socket.shutdown(2)
        except OSError:
            pass  # The host was faster.


class Round:
    """One turn, whoever dies on the way, and what was promised to its clients."""

    def __init__(self, run: Run, folder: Path, store: Store, case: Case) -> None:
        folder.mkdir(parents=True)
        self.run, self.folder, self.store, self.case = run, folder, store, case
        self.marks, self.effects = folder / "marks", folder / "effects"
        self.marks.mkdir()
        self.effects.touch()
        (folder / "job.sh").write_text(f"echo '{JOB} -' >> '{self.effects}'\n")
        self.thread = str(uuid.uuid4())
        self.hosts: list[HostProcess] = []
        self.is_begun = self.is_said = False
        self.unknown: dict[str, str] = {}
        self.decided: set[tuple[str, int]] = set()
        self.attempts: dict[str, int] = {}
        self.ended_items: set[str] = set()
        self.problems: list[str] = []

    # ---- what clients hear ----

    def holds(self) -> bool:
        return self.case.holds and not self.has_killed(self.case.at)

    def has_killed(self, points: tuple[str, ...]) -> bool:
        return all((self.marks / point).exists() for point in points)

    def leaves(self, point: str) -> bool:
        if self.case.client != point or (self.marks / point).exists():
            return False
        (self.marks / point).touch()
        return True

    def is_silent(self) -> bool:
        """The only host there is does not answer any more."""
        return bool(self.case.stop) and len(self.hosts) == 1 and (self.marks / "fault").exists()

    def is_asked(self, operation: str) -> None:
        if (operation, self.attempts.get(operation, 0)) in self.decided:
            self.problems.append(f"asked again after a decision: {operation}")

    def is_told(self, operation: Json) -> None:
        self.attempts[operation["operationId"]] = operation["attempt"]
        if operation["state"] == "decided":
            self.decided.add((operation["operationId"], operation["attempt"]))
        if operation["state"] in (self.case.database, self.case.stop) and not (self.marks / "fault").exists():
            (self.marks / "fault").touch()
            if self.case.stop:
                self.hosts[-1].send(signal.SIGSTOP)
            elif isinstance(self.store, Postgres):
                self.store.server.kill()

    # ---- processes ----

    def next_host(self) -> HostProcess:
        points = [self.case.at, self.case.then][len(self.hosts)] if len(self.hosts) < 2 else ()
        kill_at = f"{self.marks}:{','.join(points)}" if points else ""
        name = "abcdefgh"[len(self.hosts)]
        host = HostProcess(self.run.binary, self.folder, self.store, name, kill_at, self.case.more)
        self.hosts.append(host)
        return host

    def play(self) -> list[str]:
        """From the first host to the end of the turn; what went wrong."""
        try:
            self._play()
            if not self.problems:
                self._check()
        finally:
            for host in self.hosts:
                host.end()
        points = (*self.case.at, *self.case.then, *filter(None, [self.case.client]))
        points += ("fault",) if self.case.database or self.case.stop else ()
        self.problems += [f"nobody died at {point}" for point in points if not self.has_killed((point,))]
        return self.problems

    def _play(self) -> None:
        host, last = self.next_host(), ""
        for _ in range(8):
            if not host.is_alive() or self.is_silent():
                host = self.next_host()
                if "host.adopted" in self.case.then and not until(lambda: not host.is_alive(), 3 * LEASE):
                    return self.problems.append("the next host adopts nothing")
                continue
            client = None
            try:
                client = ToolClient(self, host)
                return self._work(client)
            except (Silence, Refused, OSError) as problem:
                last = str(problem)
                # A connection ends a moment before its process does.
                time.sleep(0.2)
            finally:
                if client is not None:
                    client.close()
            if isinstance(self.store, Postgres):
                self.store.server.begin()
        self.problems.append(f"the turn did not come to its end: {last}")

    # ---- the turn ----

    def _work(self, client: ToolClient) -> None:
        if not self.is_begun:
            tools = [
                {"name": name, "description": "Does it.", "inputSchema": {"type": "object"}, "effects": effects}
                for name, effects in TOOLS.items()
            ]
            params: Json = {"threadId": self.thread, "cwd": str(self.folder), "approvalPolicy": "untrusted"}
            params |= {"sandbox": "danger-full-access", "toolSet": {"mode": "additive", "dynamic": tools}}
            if self.case.place:
                params["placement"] = {"backend": "local", "workspace": str(self.folder / "work")}
            client.result("thread/start", {**params, "provides": PROVIDES})
            self.is_begun = True
        else:
            self._again(client, "thread/resume", {"threadId": self.thread, "provides": PROVIDES, "excludeTurns": True})
        said = {"threadId": self.thread, "input": [{"type": "text", "text": TEXT}], "inputId": "i1"}
        self._again(client, "turn/start", said)
        self.is_said = True
        if not until(lambda: self._is_over(client), SECONDS):
            raise Silence("the end of the turn")
        if self.case.place:
            task = client.result("task/read", {"threadId": self.thread})["task"]
            client.result("placement/snapshot", {"placementId": task["placementId"]})

    def _again(self, client: ToolClient, method: str, params: Json) -> None:
        """The lease of a host that died holds for a while."""
        ends = time.monotonic() + 4 * LEASE
        while "error" in (answer := client.ask(method, params)):
            if time.monotonic() > ends:
                raise Refused(f"{method}: {answer['error']}")
            time.sleep(0.2)

    def _is_over(self, client: ToolClient) -> bool:
        """Answers what is unknown, as a person would who has looked, and approves what nobody was asked about again."""
        states = ["unknown"] if self.holds() or not self.case.holds else ["unknown", "proposed"]
        for state in states:
            listed = client.result("operation/list", {"threadId": self.thread, "state": state})["data"]
            for operation in listed:
                content = [{"type": "inputText", "text": "looked"}]
                decision: Json = {"type": "respond", "contentItems": content, "success": True}
                if state == "proposed":
                    decision = {"type": "approve"}
                else:
                    self.unknown[operation["operationId"]] = operation["tool"]
                names = {name: operation[name] for name in ("operationId", "argumentsDigest")}
                client.ask("operation/decide", {**names, "decision": decision})
        turns = client.read(self.thread)["turns"]
        return bool(turns) and turns[-1]["status"] == "completed"

    # ---- what must hold ----

    def _check(self) -> None:
        if self.case.stop:
            # The stopped host goes on, finds itself fenced, and does nothing more.
            self.hosts[0].send(signal.SIGCONT)
            time.sleep(LEASE / 2)
        self._check_effects()
        found = self.store.records(self.thread)
        if [ordinal for ordinal, _ in found] != list(range(len(found))):
            self.problems.append("the ordinals have gaps")
        if sum('"userMessage"' in payload for _, payload in found) != 1:
            self.problems.append("the input is not in the record exactly once")
        lost = [item for item in self.ended_items if not any(f'"{item}"' in payload for _, payload in found)]
        self.problems += [f"{item} was told to have ended, and is not in the record" for item in lost]

    def _check_effects(self) -> None:
        lines = [line.split() for line in self.effects.read_text().splitlines()]
        counts = Numbers(mark for mark, _ in lines)
        shells = {tool for tool in self.unknown.values() if tool not in TOOLS}
        for mark, is_named in ((JOB, bool(shells)), ("pay", "pay" in self.unknown.values())):
            if counts[mark] > 1:
                self.problems.append(f"{mark} ran {counts[mark]} times")
            if counts[mark] == 0 and not is_named:
                self.problems.append(f"{mark} did not run, and nobody was told")
        for tool in ("note", "look"):
            keys = {operation for mark, operation in lines if mark == tool}
            if len(keys) != 1:
                self.problems.append(f"{tool} ran under {len(keys)} ids")
            if tool in self.unknown.values():
                self.problems.append(f"{tool} may run twice, and a person was asked")


def has_points(binary: Path) -> bool:
    """A release has none: not even the name of the variable is in it."""
    with binary.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return text.find(b"OARLOCK_KILL_AT") >= 0


def chosen(run: Run) -> Iterator[tuple[str, Case]]:
    if run.quick:
        yield from QUICK
        return
    for case in (*SINGLES, *PAIRS, *FAULTS):
        yield from ((store, case) for store in case.stores)


def measure(run: Run) -> Outcome:
    if not has_points(run.binary):
        raise Skipped("this is a release build, and those have no points; take target/debug/oarlock")
    rounds = list(chosen(run))
    failures: list[str] = []
    try:
        server = PostgresServer()
    except Skipped:
        server = None
        rounds = [(store, case) for store, case in rounds if store == "sqlite"]
    counter = Counter("kills", len(rounds))
    try:
        for number, (kind, case) in enumerate(rounds):
            folder = run.folder / f"round-{number}"
            store = Postgres(server, f"round{number}") if server and kind == "postgres" else Sqlite(folder)
            problems = [f"{case.name()} ({kind}): {problem}" for problem in Round(run, folder, store, case).play()]
            for problem in problems:
                # The whole takes minutes: whoever waits need not until the end.
                progress(f"  {problem}")
            failures += problems
            counter.step()
    finally:
        if server:
            server.end()
    stores = "both stores" if server else "SQLite alone: there is no Postgres"
    return Outcome(f"{len(rounds)} rounds on {stores}, {len(failures)} problems", failures, {"rounds": len(rounds)})
