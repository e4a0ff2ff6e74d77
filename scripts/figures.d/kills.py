"""G5: after SIGKILL at any point, everything the client was told is still there, whole, and the thread goes on.

Each server is started on the state folder its predecessor was killed on: it is first asked about that one's thread.
"""

import os
import random
import signal
import threading
from collections.abc import Callable

from ledger import Ledger
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import SECONDS, Server, Silence, make_home


def completed(kind: str) -> Callable[[Json], bool]:
    def is_it(message: Json) -> bool:
        return message.get("method") == "item/completed" and message["params"]["item"]["type"] == kind

    return is_it


class Victim:
    """A server that is killed from the very place its words are heard, so that no time passes in between."""

    def __init__(self, run: Run, home: str) -> None:
        self.is_deadly: Callable[[Json], bool] = lambda message: False
        self.server = Server(run.binary, run.folder / home, self._hear).initialize()
        self.since = 0

    def _hear(self, message: Json) -> None:
        if self.is_deadly(message):
            self.shoot()

    def shoot(self) -> None:
        try:
            os.kill(self.server.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def ledger(self, thread: str, plans: list[Plan], names: list[str]) -> Ledger:
        """What there is to hold the successor to, once this one is dead."""
        self.server.drain()
        ledger = Ledger(thread, {plan.name: plan for plan in plans}, names)
        ledger.hear(self.server.heard[self.since :], self.server.sent)
        return ledger


def answers(method: str, victim: Victim) -> Callable[[Json], bool]:
    def is_it(message: Json) -> bool:
        return "result" in message and victim.server.sent.get(message.get("id", 0), ("",))[0] == method

    return is_it


# The points at which a client has been told something it may rely on.
POINTS: dict[str, Callable[[Victim], Callable[[Json], bool]]] = {
    "turn/start answer": lambda victim: answers("turn/start", victim),
    "user message": lambda victim: completed("userMessage"),
    "agent message": lambda victim: completed("agentMessage"),
    "dynamic tool call": lambda victim: completed("dynamicToolCall"),
    "turn/completed": lambda victim: lambda message: message.get("method") == "turn/completed",
    "thread/name/set answer": lambda victim: answers("thread/name/set", victim),
    "thread/archive answer": lambda victim: answers("thread/archive", victim),
}


def live(victim: Victim, label: str, chance: random.Random) -> Ledger | None:
    """A short life with all that is acknowledged in it, until the victim dies of it. Nothing, if it had no thread."""
    server = victim.server
    victim.since = len(server.heard)
    thread = ""
    plans = [
        Plan(f"{label}-first", tool=True, size=chance.choice([20, 500, 20_000])),
        Plan(f"{label}-second", size=chance.choice([20, 70_000])),
    ]
    name = f"name of {label}"
    try:
        thread = server.start_thread()
        server.turn(thread, plans[0])
        server.result("thread/name/set", {"threadId": thread, "name": name})
        server.turn(thread, plans[1])
        server.result("thread/archive", {"threadId": thread})
    except (Silence, OSError):
        pass  # Dead, as intended; a server that only went quiet is found out below.
    victim.shoot()
    ledger = victim.ledger(thread, plans, [name])
    return ledger if thread else None


def check(server: Server, model: Model, ledger: Ledger, label: str) -> list[str]:
    """Asks a successor what is left, and goes on with the thread."""
    listed = thread_ids(server, archived=False), thread_ids(server, archived=True)
    is_archived = ledger.thread in listed[1]
    problems = []
    if ledger.is_archived and not is_archived:
        problems.append("the archiving is lost")
    if not ledger.turns and ledger.thread not in [*listed[0], *listed[1]]:
        return problems  # Nobody was told of anything but an empty thread.
    problems += ledger.problems(server.read(ledger.thread))
    if is_archived:
        server.result("thread/unarchive", {"threadId": ledger.thread})
    resumed = server.result("thread/resume", {"threadId": ledger.thread})["thread"]
    problems += [f"resumed: {problem}" for problem in ledger.problems(resumed)]
    plan = Plan(f"{label}-after")
    turn = server.turn(ledger.thread, plan)
    if turn["status"] != "completed":
        problems.append(f"the turn after the restart is {turn['status']}: {turn.get('error')}")
        return problems
    return problems + unsaid_to_model(model.bodies[plan.name]["input"], ledger)


def thread_ids(server: Server, archived: bool) -> list[str]:
    return [row["id"] for row in server.result("thread/list", {"limit": 20, "archived": archived})["data"]]


def unsaid_to_model(items: list[Json], ledger: Ledger) -> list[str]:
    """What was told to the client and is not in the model's history, and calls that have no output there."""
    texts = [part.get("text") for item in items for part in item.get("content") or []]
    problems = []
    for told in ledger.turns.values():
        said = [told.text, *(item[1] for item in told.items if item[0] == "agentMessage")]
        problems += [f"the model is not told {text}"[:200] for text in said if text not in texts]
    calls = sorted(item["call_id"] for item in items if item.get("type") == "function_call")
    outputs = sorted(item["call_id"] for item in items if item.get("type") == "function_call_output")
    if calls != outputs:
        problems.append(f"calls {calls} and outputs {outputs} in the model's history")
    return problems


def recovery(
    run: Run, model: Model, home: str, ledger: Ledger | None, label: str, twice: bool
) -> tuple[Victim, list[str]]:
    """The next server on this folder, after it was asked about the one before it."""
    if ledger and twice:
        # Killed while it recovers: the same must hold as for one kill.
        first = Victim(run, home)
        first.server.send("thread/resume", {"threadId": ledger.thread})
        first.shoot()
        first.server.drain()
    victim = Victim(run, home)
    return victim, check(victim.server, model, ledger, label) if ledger else []


def at_points(run: Run, model: Model, chance: random.Random) -> tuple[int, dict[str, list[str]]]:
    """Kills at each acknowledgement; what went wrong by point."""
    rounds = run.pick(50, 3)
    counter = Counter("kills at an acknowledgement", rounds * len(POINTS))
    wrong: dict[str, list[str]] = {point: [] for point in POINTS}
    for index, (point, arm) in enumerate(POINTS.items()):
        home = f"point-{index}"
        make_home(run.folder / home, model)
        ledger = None
        for number in range(rounds + 1):
            victim, problems = recovery(run, model, home, ledger, f"p{index}-{number}", twice=False)
            wrong[point] += [f"{point}, kill {number}: {problem}" for problem in problems]
            if number == rounds:
                victim.server.stop()
                break
            victim.is_deadly = arm(victim)
            ledger = live(victim, f"p{index}-{number + 1}", chance)
            counter.step()
    return rounds * len(POINTS), wrong


def at_random(run: Run, model: Model, chance: random.Random) -> tuple[int, list[str]]:
    """Kills after a random number of messages, or a random time."""
    rounds = run.pick(1_000, 20)
    counter = Counter("kills at random", rounds)
    wrong: list[str] = []
    ledger: Ledger | None = None
    home = ""
    for number in range(rounds):
        if number % 100 == 0:
            # A fresh folder now and then, so that the list of threads stays short.
            ledger, home = None, f"random-{number}"
            make_home(run.folder / home, model)
        victim, problems = recovery(run, model, home, ledger, f"r{number}", twice=chance.random() < 0.1)
        wrong += [f"random kill {number}: {problem}" for problem in problems]
        ledger = live_until_shot(victim, f"r{number + 1}", chance)
        counter.step()
    victim, problems = recovery(run, model, home, ledger, "last", twice=False)
    victim.server.stop()
    return rounds, wrong + [f"random kill {rounds}: {problem}" for problem in problems]


def live_until_shot(victim: Victim, label: str, chance: random.Random) -> Ledger | None:
    if chance.random() < 0.5:
        left = chance.randrange(1, 60)

        def is_deadly(message: Json) -> bool:
            nonlocal left
            left -= 1
            return left == 0

        victim.is_deadly = is_deadly
        return live(victim, label, chance)
    timer = threading.Timer(chance.uniform(0.001, 0.15), victim.shoot)
    timer.start()
    try:
        return live(victim, label, chance)
    finally:
        timer.cancel()
        timer.join(SECONDS)


def measure(run: Run) -> Outcome:
    model, chance = Model(), random.Random(run.seed)
    pointed, by_point = at_points(run, model, chance)
    shot, failures = at_random(run, model, chance)
    failures = [problem for problems in by_point.values() for problem in problems] + failures
    model.close()
    details = {"points": {point: len(problems) for point, problems in by_point.items()}, "seed": run.seed}
    return Outcome(f"{pointed} + {shot} kills, {len(failures)} problems", failures, details)
