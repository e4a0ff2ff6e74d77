"""G8: when the disk refuses, the turn fails and says so; when it accepts again, work goes on in the same process.

Every call of the journal that can fail is made to fail by a test of its crate. Here a whole server meets real faults.
"""

import os
import re
import resource
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cargo import run_test
from kills import check
from ledger import Ledger
from model import Model, Plan
from report import Counter, Json, Outcome, Run, progress
from server import Refused, Server, make_home, until

TEST = "no_fault_at_any_call_loses_what_was_acknowledged"
WORDS = re.compile(r"no space|too large|read-only|permission denied|too many open files|storage|disk", re.IGNORECASE)
DISK = "size=6m"


@dataclass
class Fault:
    """What makes the disk refuse, and what ends that."""

    name: str
    begin: Callable[[Server, Path], None]
    end: Callable[[Server, Path], None]
    # Whether a turn of 20 KB cannot be recorded under it.
    stops_turns: bool = True
    # Begins between a model's message and its tool call, not before the turn.
    mid_turn: bool = False
    # Whether the call itself cannot be recorded, and so must not be made.
    stops_calls: bool = False


def full_disk(mid_turn: bool) -> Fault:
    def begin(server: Server, home: Path) -> None:
        with (home / "ballast").open("wb", buffering=0) as ballast:
            try:
                while True:
                    ballast.write(bytes(4096))
            except OSError:
                pass

    when = "mid turn" if mid_turn else "before a turn"
    return Fault(f"disk full {when}", begin, lambda _, home: (home / "ballast").unlink(), mid_turn=mid_turn)


def file_too_large(room: int, mid_turn: bool) -> Fault:
    """The journal may grow by so many bytes more; no other rights are needed to arrange that."""

    def begin(server: Server, home: Path) -> None:
        limit(server, resource.RLIMIT_FSIZE, journal(home).stat().st_size + room)

    def end(server: Server, home: Path) -> None:
        limit(server, resource.RLIMIT_FSIZE, resource.RLIM_INFINITY)

    when = "mid turn" if mid_turn else "before a turn"
    return Fault(f"file limit {when}, {room} bytes left", begin, end, mid_turn=mid_turn, stops_calls=room < 100)


def no_more_files() -> Fault:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)[0]

    def begin(server: Server, home: Path) -> None:
        limit(server, resource.RLIMIT_NOFILE, first_beyond(server.pid))

    return Fault(
        "no more files", begin, lambda server, _: limit(server, resource.RLIMIT_NOFILE, before), stops_turns=False
    )


def first_beyond(pid: int) -> int:
    """The first number that no open file has. Where one may not look, no number at all is left."""
    try:
        return max(int(name) for name in os.listdir(f"/proc/{pid}/fd")) + 1
    except PermissionError:
        return 3


def limit(server: Server, kind: int, value: int) -> None:
    resource.prlimit(server.pid, kind, (value, resource.getrlimit(kind)[1]))


def journal(home: Path) -> Path:
    return next(path for path in home.rglob("*.jsonl") if "threads" in path.parts or "sessions" in path.parts)


def suffer(run: Run, home: Path, fault: Fault) -> tuple[list[str], Json]:
    """One server meets one fault, gets over it, is killed, and must have kept its word."""
    model = Model()
    make_home(home, model)
    plans = {name: Plan(name, tool=True, size=20_000, gate=fault.mid_turn and name == "b") for name in "abcd"}
    problems: list[str] = []
    with Server(run.binary, home) as server:
        server.initialize()
        thread = server.start_thread()
        server.turn(thread, plans["a"])
        turns = [under_fault(server, model, home, thread, fault, plans["b"])]
        turns.append(attempt(server, thread, plans["c"]))
        server.ask("thread/name/set", {"threadId": thread, "name": "during"})
        fault.end(server, home)
        problems += judge(turns, fault)
        after = attempt(server, thread, plans["d"])
        if after != ("completed", ""):
            problems.append(f"after the fault a turn is {after}")
        server.kill()
        problems += unstarted(server.heard)
        ledger = Ledger(thread, plans, ["during"])
        ledger.hear(server.heard, server.sent)
    with Server(run.binary, home) as server:
        problems += check(server.initialize(), model, ledger, "e")
        server.stop()
    model.close()
    return [f"{fault.name}: {problem}" for problem in problems], {"turns": turns}


def under_fault(server: Server, model: Model, home: Path, thread: str, fault: Fault, plan: Plan) -> tuple[str, str]:
    """A turn that meets the fault: how it ended, and what was said about it."""
    if not fault.mid_turn:
        fault.begin(server, home)
        return attempt(server, thread, plan)
    since = len(server.heard)
    turn = server.answer(server.send_turn(thread, plan))["result"]["turn"]["id"]
    server.notification("item/completed", since, turnId=turn, item__type="agentMessage")
    fault.begin(server, home)
    model.gate.set()
    ended = server.notification("turn/completed", since, turn__id=turn)["params"]["turn"]
    is_called = any(message.get("method") == "item/tool/call" for message in server.heard[since:])
    status = "called" if is_called and fault.stops_calls else ended["status"]
    return status, (ended["error"] or {}).get("message", "")


def unstarted(heard: list[Json]) -> list[str]:
    """Items that are told to be over and were never told to begin."""
    wrong, started = [], set()
    for message in heard:
        if message.get("method") == "item/started":
            started.add(message["params"]["item"]["id"])
        elif message.get("method") == "item/completed" and message["params"]["item"]["id"] not in started:
            item = message["params"]["item"]
            wrong.append(f"item/completed without item/started: {item['type']} {item['id']} {item.get('status')}")
    return wrong


def attempt(server: Server, thread: str, plan: Plan) -> tuple[str, str]:
    try:
        turn = server.turn(thread, plan)
    except Refused as refused:
        return "refused", str(refused)
    return turn["status"], (turn["error"] or {}).get("message", "")


def judge(turns: list[tuple[str, str]], fault: Fault) -> list[str]:
    """Under the fault a turn fails or is refused, for a reason that a person understands."""
    wrong = []
    for status, said in turns:
        if fault.stops_turns and status not in ("failed", "refused"):
            wrong.append(f"a turn is {status!r} although the disk refused")
        elif status in ("failed", "refused") and fault.stops_turns and not WORDS.search(said):
            wrong.append(f"the reason names no storage: {said!r}"[:300])
    return wrong


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A mounted folder of a few megabytes, or nothing where that is not allowed."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", DISK, "none", str(folder)], capture_output=True)
    if done.returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def read_only(run: Run, home: Path, mounted: bool) -> list[str]:
    """A server on a folder it cannot write: reading works or it leaves with a reason, and no turn pretends."""
    model = Model()
    make_home(home, model)
    with Server(run.binary, home) as server:
        thread = server.initialize().start_thread()
        server.turn(thread, Plan("a"))
        server.stop()
    ledger = Ledger(thread, {name: Plan(name) for name in ("a", "b", "c")})
    ledger.hear(server.heard, server.sent)
    protect(home, mounted, True)
    server = Server(run.binary, home)
    said = server.errors.stat().st_size
    try:
        problems = try_to_write(server, thread, ledger, said)
    finally:
        protect(home, mounted, False)
    if server.is_alive():
        resumed = server.ask("thread/resume", {"threadId": thread})
        after = attempt(server, thread, Plan("c"))
        if "error" in resumed or after != ("completed", ""):
            problems.append(f"writable again, yet a turn is {after}; resume: {resumed.get('error')}")
        server.kill()
        ledger.hear(server.heard, server.sent)
    with Server(run.binary, home) as server:
        problems += check(server.initialize(), model, ledger, "d")
        server.stop()
    model.close()
    return [f"read-only folder: {problem}" for problem in problems]


def try_to_write(server: Server, thread: str, ledger: Ledger, said: int) -> list[str]:
    if until(lambda: not server.is_alive(), 1):
        told = server.errors.read_bytes()[said:]
        server.drain()
        good = server.process.returncode != 0 and WORDS.search(told.decode(errors="replace"))
        return [] if good else [f"left with {server.process.returncode}: {told!r}"[:300]]
    server.initialize()
    problems = ledger.problems(server.read(thread))
    resumed = server.ask("thread/resume", {"threadId": thread})
    if "error" in resumed:
        reason = resumed["error"]["message"]
        return problems if WORDS.search(reason) else [*problems, f"the reason names no storage: {reason}"]
    return problems + judge([attempt(server, thread, Plan("b"))], Fault("read-only", lambda *_: None, lambda *_: None))


def protect(home: Path, mounted: bool, is_on: bool) -> None:
    if mounted:
        subprocess.run(["mount", "-o", f"remount,{'ro' if is_on else 'rw'}", str(home)], check=True)
        return
    for path in [home, *home.rglob("*")]:
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222 if is_on else mode | stat.S_IWUSR)


def on_small_disks(run: Run) -> tuple[list[str], int, str]:
    """The faults that need a disk of their own: problems, how many faults, and what was left out."""
    problems: list[str] = []
    met = 0
    for number, fault in enumerate([full_disk(mid_turn=False), full_disk(mid_turn=True)]):
        with small_disk(run.folder / f"full-{number}") as disk:
            if disk:
                problems += suffer(run, disk, fault)[0]
                met += 1
    with small_disk(run.folder / "read-only") as disk:
        if disk or os.geteuid() != 0:
            problems += read_only(run, disk or run.folder / "read-only", bool(disk))
            met += 1
    return problems, met, "" if met == 3 else "; full disk not tried: mounting is not allowed here"


def measure(run: Run) -> Outcome:
    rooms = [int(index * 30_000 / run.pick(60, 3)) for index in range(run.pick(60, 3))]
    faults = [file_too_large(room, mid_turn=False) for room in rooms]
    faults += [file_too_large(room, mid_turn=True) for room in (0, 1_000, 3_000)] + [no_more_files()]
    counter = Counter("storage faults", len(faults))
    failures: list[str] = []
    seen: Json = {}
    for number, fault in enumerate(faults):
        problems, seen[fault.name] = suffer(run, run.folder / f"fault-{number}", fault)
        failures += problems
        counter.step()
    problems, met, left_out = on_small_disks(run)
    failures += problems
    measured = f"{len(faults) + met} faults met, {len(failures)} problems{left_out}"
    progress(f"  {'not with --quick' if run.quick else 'running'}: cargo test -p oarlock-journal {TEST}")
    if run.quick:
        return Outcome(measured, failures, {"turns": seen, "test": TEST})
    passed, said = run_test("oarlock-journal", TEST)
    points = re.search(r"(\d+) fault points", said)
    if passed is False or (passed and not points):
        failures.append(f"the journal's own test fails: {said[-500:]}")
    count = f"{points[1]} fault points in the journal" if points else "the journal's test not run: no cargo"
    return Outcome(f"{measured}; {count}", failures, {"turns": seen, "test": TEST, "points": points and int(points[1])})
