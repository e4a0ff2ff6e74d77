"""G20: a thousand threads are cheap, two hundred turns at once all end, and meanwhile requests are answered."""

import multiprocessing
import os
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from model import Model, Plan
from report import Counter, Json, Outcome, Run, megabytes, progress
from server import PING, Refused, Server, make_home

# Of each loaded thread: files that are open, and memory.
FILES = 3
MEMORY = 400_000
# Within which ninety-nine of a hundred requests are answered; a quick run only sees to it that none is left waiting.
ANSWER_SECONDS = 0.25
QUICK_SECONDS = 5.0
# How often one is sent, and how much each turn streams beside it.
PAUSE = 0.02
STREAM = 200_000


class FarModel:
    """The model in a process of its own: its many streams would hold up the clock of this one."""

    def __init__(self) -> None:
        ours, theirs = multiprocessing.Pipe()
        self._line = ours
        self._process = multiprocessing.get_context("fork").Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        self.port: int = ours.recv()

    def close(self) -> None:
        self._line.send(None)
        self._process.join()


def _serve(line: Connection) -> None:
    model = Model()
    line.send(model.port)
    line.recv()


class Clock:
    """How long each request took to be answered."""

    def __init__(self) -> None:
        self._asked: dict[int, float] = {}
        self.seconds: list[float] = []
        self.ended = 0

    def sent(self, number: int, at: float) -> None:
        self._asked[number] = at

    def hear(self, message: Json) -> None:
        if message.get("method") == "turn/completed":
            self.ended += message["params"]["turn"]["status"] == "completed"
        asked = self._asked.get(message.get("id", 0)) if "method" not in message else None
        if asked is not None:
            self.seconds.append(time.monotonic() - asked)


def measure(run: Run) -> Outcome:
    threads, turns = run.pick(1_000, 100), run.pick(200, 40)
    model, clock = FarModel(), Clock()
    failures: list[str] = []
    with Server(run.binary, make_home(run.folder / "home", model), clock.hear) as server:
        server.initialize()
        ids, grown, files = load(server, threads)
        if grown > threads * MEMORY:
            failures.append(f"{threads} threads take {megabytes(grown)}")
        progress(f"  {turns} turns at once; {megabytes(grown)} for {threads} threads")
        run_together(server, clock, ids[:turns])
        peak, files = server.memory("VmHWM"), max(files, open_files(server.pid))
    model.close()
    if files > threads * FILES:
        failures.append(f"{threads} threads hold {files} files open")
    if clock.ended != turns:
        failures.append(f"{clock.ended} of {turns} turns completed")
    slow = percentile(clock.seconds, 0.99)
    if slow > (QUICK_SECONDS if run.quick else ANSWER_SECONDS):
        failures.append(f"one of a hundred requests waits {slow * 1000:.0f} ms or more")
    measured = (
        f"{threads} threads: {megabytes(grown)}, {files} files; {clock.ended} of {turns} turns; "
        f"p99 {slow * 1000:.0f} ms of {len(clock.seconds)}"
    )
    details = {"memory": grown, "files": files, "peak": peak, "turns": clock.ended, "milliseconds": spread(clock)}
    return Outcome(measured, failures, details)


def load(server: Server, count: int) -> tuple[list[str], int, int]:
    """Starts threads; what they take of memory and of files."""
    server.ping()
    memory, files = server.memory("VmRSS"), open_files(server.pid)
    counter, ids = Counter("threads", count), []
    for _ in range(count):
        ids.append(server.start_thread())
        counter.step()
    return ids, server.memory("VmRSS") - memory, open_files(server.pid) - files


def run_together(server: Server, clock: Clock, ids: list[str]) -> None:
    """A turn in each thread, all at the same time, and requests beside them until the last has ended."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(PAUSE):
            at = time.monotonic()
            clock.sent(server.send(PING), at)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    for number in [server.send_turn(thread, Plan(f"load-{thread}", flood=STREAM)) for thread in ids]:
        answer = server.answer(number, 60)
        if "error" in answer:
            raise Refused(f"turn/start: {answer['error']}")
    server.wait(lambda: clock.ended >= len(ids), "the end of all turns", 300)
    over.set()
    asking.join()
    server.ping()


def open_files(pid: int) -> int:
    return len(os.listdir(Path(f"/proc/{pid}/fd")))


def percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else float("inf")


def spread(clock: Clock) -> Json:
    parts = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "most": 1.0}
    return {name: round(percentile(clock.seconds, part) * 1000, 1) for name, part in parts.items()}
