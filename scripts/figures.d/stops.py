"""G21: when a client hears that a stopped turn is over, nothing that the turn waited for writes any more.

Each command writes to a file of its own without a pause, from a child as well. The turn is interrupted at a random moment:
before the command is called for, while it starts, or while it runs.
"""

import random
import time
from pathlib import Path

from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import Server, make_home

# Long enough for a writer that lives to be noticed.
WATCH_SECONDS = 0.03
SHELLS: dict[str, Json] = {
    "exec_command": {"login": False, "yield_time_ms": 30_000},
    "shell_command": {"login": False, "timeout_ms": 60_000},
}


def sizes(folder: Path, name: str) -> list[int]:
    files = [folder / f"{name}.{writer}" for writer in ("own", "child")]
    return [file.stat().st_size if file.exists() else -1 for file in files]


class Watch:
    """Looks at the files from the very place where the end of the turn is heard."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, ""
        self.at_end: list[int] = []
        self.open: set[str] = set()
        self.open_at_end: set[str] = set()

    def hear(self, message: Json) -> None:
        method, params = message.get("method"), message.get("params") or {}
        item = params.get("item") or {}
        if item.get("type") == "commandExecution":
            (self.open.add if method == "item/started" else self.open.discard)(item["id"])
        if method == "turn/completed":
            self.at_end, self.open_at_end = sizes(self.folder, self.name), set(self.open)


def measure(run: Run) -> Outcome:
    model, chance = Model(), random.Random(run.seed)
    home = make_home(run.folder / "home", model, sandbox="workspace-write")
    work = run.folder / "work"
    work.mkdir()
    watch = Watch(work)
    rounds, failures, began = run.pick(1_000, 30), [], 0
    counter = Counter("interrupts", rounds)
    with Server(run.binary, home, watch.hear).initialize() as server:
        for number in range(rounds):
            watch.name, shell = f"w{number}", chance.choice(list(SHELLS))
            writers = [f"while :; do echo x >> {watch.name}.{writer}; done" for writer in ("child", "own")]
            plan = Plan(watch.name, commands=(f"({writers[0]}) & {writers[1]}",), shell=shell, options=SHELLS[shell])
            sandbox = chance.choice(["danger-full-access", "workspace-write"])
            thread = server.start_thread(cwd=str(work), sandbox=sandbox)
            since = len(server.heard)
            turn = server.begin(thread, plan)
            time.sleep(chance.choice([0, chance.uniform(0, 0.05), chance.uniform(0, 0.3)]))
            server.ask("turn/interrupt", {"threadId": thread, "turnId": turn})
            status = server.end_of(thread, turn, since)["status"]
            time.sleep(WATCH_SECONDS)
            now = sizes(work, watch.name)
            began += watch.at_end[1] >= 0 or watch.at_end[0] >= 0
            if now != watch.at_end:
                failures.append(f"{watch.name} ({shell}, {sandbox}): {watch.at_end} at the end, then {now}")
            if watch.open_at_end:
                failures.append(f"{watch.name} ({shell}): {watch.open_at_end} had not ended with the turn")
            if status != "interrupted":
                failures.append(f"{watch.name}: the turn is {status}")
            counter.step()
    model.close()
    measured = f"{rounds} interrupts, {began} of them of a command that wrote, {len(failures)} problems"
    return Outcome(measured, failures, {"seed": run.seed})

