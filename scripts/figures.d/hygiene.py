"""G18: nothing that a tool started is left a second after the tool, its turn or its server has ended.

A turn that is interrupted ends the command it waits for. A terminal is meant to outlive the call that opened it, so
there it is the thread's terminals being cleaned up that ends it.
"""

import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from model import Model, Plan
from report import Counter, Outcome, Run
from server import Server, make_home, until

TERMINALS = "exec_command"
SHELLS = [TERMINALS, "shell_command"]
MODES = ["danger-full-access", "workspace-write", "read-only"]
GRACE_SECONDS = 1.0
MOST_PROCESSES = 512
# Where no cgroup can be had, the kernel counts all threads of the user: those that end elsewhere make room for more.
ROOM_MADE_ELSEWHERE = 16
# Each a way for a process to get away. MARK is a time to sleep that no other process sleeps.
DAEMONS = {
    "in the background": "sleep MARK &",
    "in a session of its own": "setsid sleep MARK >/dev/null 2>&1 </dev/null &",
    "forked twice": "( ( setsid sleep MARK & ) & )",
    "deaf to hints": "( trap '' HUP INT TERM; sleep MARK; sleep MARK ) &",
    "in a group of its own": "set -m; sleep MARK & disown",
    "with its pipes held open": "sleep MARK & exec 3>&1",
    "nohup": "nohup sleep MARK >/dev/null 2>&1 &",
    "a python daemon": "python3 -c 'import os, time; os.fork() and os._exit(0); os.setsid(); "
    "os.fork() and os._exit(0); time.sleep(MARK)'",
}

# A shell would wait and try again when it cannot fork.
FORKS = """python3 - <<'END'
import os, time
for _ in range(COUNT):
    try:
        os.fork() or os.execvp("sleep", ["sleep", "MARK"])
    except OSError:
        break
time.sleep(0.3)
END"""


def sleepers(mark: str) -> list[int]:
    """The processes that have the mark in their command line, however they are nested in namespaces."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                words = Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(mark.encode() in word for word in words):
                found.append(int(entry))
    return found


class Scene:
    """One server in one sandbox mode, and ways to end what it runs."""

    def __init__(self, run: Run, mode: str, shell: str, model: Model, chance: random.Random) -> None:
        self.run, self.mode, self.shell, self.chance = run, f"{mode}, {shell}", shell, chance
        more = f"\n[features]\nunified_exec = {json.dumps(shell == TERMINALS)}\n"
        self.home = make_home(run.folder / f"{mode}-{shell}" / "home", model, sandbox=mode, more=more)
        self.serial = 0

    def mark(self) -> str:
        """As a number of seconds: it must read the same for sleep and for python."""
        self.serial += 1
        return f"{3_000 + self.serial}.{self.chance.randrange(10**9):09d}"

    def plan(self, mark: str, script: str) -> Plan:
        return Plan(f"{self.mode}-{mark}", commands=(script,), shell=self.shell)

    def left(self, what: str, mark: str) -> list[str]:
        began = time.monotonic()
        if until(lambda: not sleepers(mark), GRACE_SECONDS):
            return []
        left = sleepers(mark)
        problem = [f"{self.mode}, {what}: {len(left)} processes left after {time.monotonic() - began:.1f} s"]
        for pid in left:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass
        return problem

    def after_tool(self, what: str, daemon: str) -> list[str]:
        """The command ends by itself, its daemons do not."""
        mark = self.mark()
        with Server(self.run.binary, self.home) as server:
            thread = server.initialize().start_thread()
            turn = server.turn(thread, self.plan(mark, f"{daemon.replace('MARK', mark)}\ntrue"))
            problems = [] if turn["status"] == "completed" else [f"{self.mode}, {what}: {turn['status']}"]
            problems += self.left(f"{what}, tool ended", mark)
            server.stop()
        return problems

    def while_running(self, what: str, daemon: str, name: str, end: "End") -> list[str]:
        """The command and its daemons run, and something else ends them."""
        mark = self.mark()
        with Server(self.run.binary, self.home) as server:
            thread = server.initialize().start_thread()
            script = f"{daemon.replace('MARK', mark)}\nsleep {mark}"
            turn = server.begin(thread, self.plan(mark, script))
            if not until(lambda: len(sleepers(mark)) >= 2, 10):
                return [f"{self.mode}, {what}: nothing runs"]
            end(server, thread, turn)
            problems = self.left(f"{what}, {name}", mark)
            if server.is_alive():
                server.stop()
        return problems

    def too_many(self, count: int) -> list[str]:
        """A command that forks on and on: the number of processes it gets is limited, and all of them go."""
        mark = self.mark()
        most = 0
        is_over = threading.Event()

        def watch() -> None:
            nonlocal most
            while not is_over.wait(0.05):
                most = max(most, len(sleepers(mark)))

        watcher = threading.Thread(target=watch)
        watcher.start()
        with Server(self.run.binary, self.home) as server:
            thread = server.initialize().start_thread()
            server.turn(thread, self.plan(mark, FORKS.replace("COUNT", str(count)).replace("MARK", mark)), 60)
            is_over.set()
            watcher.join()
            problems = self.left(f"{count} processes", mark)
            server.ping()
            server.stop()
        if most > MOST_PROCESSES + (ROOM_MADE_ELSEWHERE if os.geteuid() else 0):
            problems.append(f"{self.mode}: {most} processes at once")
        return problems if most else [*problems, f"{self.mode}: of {count} processes none was seen"]


def interrupt(server: Server, thread: str, turn: str) -> None:
    server.result("turn/interrupt", {"threadId": thread, "turnId": turn})
    server.end_of(thread, turn)


def clean(server: Server, thread: str, turn: str) -> None:
    interrupt(server, thread, turn)
    server.result("thread/backgroundTerminals/clean", {"threadId": thread})


def kill(server: Server, thread: str, turn: str) -> None:
    server.kill()


def end_of_input(server: Server, thread: str, turn: str) -> None:
    server.stop()


def terminate(server: Server, thread: str, turn: str) -> None:
    server.process.terminate()
    server.drain()


End = Callable[[Server, str, str], None]
ENDS: dict[str, End] = {"server killed": kill, "input ended": end_of_input, "server terminated": terminate}


def ends(shell: str) -> dict[str, End]:
    return {**ENDS, "cleaned": clean} if shell == TERMINALS else {**ENDS, "interrupted": interrupt}


def measure(run: Run) -> Outcome:
    model, chance = Model(), random.Random(run.seed)
    daemons = list(DAEMONS.items())
    counter = Counter("ends", len(SHELLS) * len(MODES) * (run.pick(len(daemons), 1) * 5 + 1))
    failures: list[str] = []
    for number, (mode, shell) in enumerate((mode, shell) for mode in MODES for shell in SHELLS):
        scene = Scene(run, mode, shell, model, chance)
        # With few of them, each mode still gets others.
        for what, daemon in daemons if not run.quick else daemons[number : number + 1]:
            failures += scene.after_tool(what, daemon)
            counter.step()
            for name, end in ends(shell).items():
                failures += scene.while_running(what, daemon, name, end)
                counter.step()
        failures += scene.too_many(run.pick(2_000, 600))
        counter.step()
    model.close()
    return Outcome(f"{counter.total} ends in {len(MODES)} modes, {len(failures)} problems", failures)
