"""Whoever dies while a host is delegated to, nothing it acknowledged is lost, and no command is run twice for one yes.

The runtime, the host, or both die at every step that a first, whole life is seen to take, and at random moments; then a
new host takes the thread up with a new runtime. Once with the host's record and once with the runtime's own.
"""

import json
import random
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from delegated import ANSWER, CALL, PROMPT, Host, Store
from effects import AT_ONCE, Effects, operations, parsed
from report import Counter, Json, Outcome, Run, progress
from server import SECONDS, until

OWNERS = ("client", "server")
VICTIMS = ("runtime", "host", "both")
UNKNOWN = "outcome of this call is not known"


@dataclass(frozen=True)
class Case:
    """Who dies, and when: at a step, or after so many seconds."""

    name: str
    owner: str
    victim: str
    step: str = ""
    after: float = 0.0


class Scene:
    """One thread from its start, over one death, to the end of its turn."""

    def __init__(self, run: Run, case: Case) -> None:
        self.run, self.case = run, case
        self.folder = run.folder / case.name
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.effects = Effects(self.folder / "effects")
        self.store = Store() if case.owner == "client" else None
        self.steps: list[str] = []

    def host(self) -> Host:
        command = self.effects.command("mark", "sleep 0.1")
        return Host(self.run.binary, self.home, self.store, command)

    def die(self, host: Host) -> None:
        if self.case.victim != "runtime":
            host.is_gone = True
        if self.case.victim != "host":
            host.kill_runtime()
        else:
            host.leave()

    def first(self) -> Host:
        """A life up to the death, or to its end when none is planned."""
        host = self.host()

        def at(step: str) -> None:
            self.steps.append(step)
            if step == self.case.step:
                self.die(host)
            elif step == "approval answered":
                threading.Thread(target=watch, daemon=True).start()

        def watch() -> None:
            if until(lambda: host.is_over() or bool(self.effects.counts()), 5) and not host.is_over():
                at("in the command")

        host.at = at
        timer = threading.Timer(self.case.after, self.die, [host])
        if self.case.after:
            timer.start()
        host.live()
        if self.case.after:
            timer.join()
        return host

    def states(self) -> list[str]:
        """What is recorded of the command."""
        return self.store.states() if self.store else operations(self.home).get(CALL, [])

    def turn(self) -> str:
        """What is recorded of the turn: nothing, that it started, or that it ended."""
        records = [item["kind"] for item in self.store.items] if self.store else kinds(self.home)
        return next((kind for kind in reversed(records) if kind in ("turnStarted", "turnEnded")), "")

    def problems(self) -> list[str]:
        first = self.first()
        early: list[str] = []
        # The runtime's own record is its own until it has ended; the host's is taken over at once.
        if not self.store or self.case.victim != "host":
            early += first.drain()
        before, kept = self.states(), list(self.store.items) if self.store else []
        problems = self.taken_up(first, before)
        if self.store and self.case.victim == "host":
            early += first.drain()
        if self.store and self.store.items[: len(kept)] != kept:
            problems.append("what was acknowledged has changed")
        runs = self.effects.counts()["mark"]
        if runs > 1:
            problems.append(f"the command ran {runs} times")
        told = f"{self.case.owner}, {self.case.victim} at {self.case.step or f'{self.case.after:.3f} s'}"
        return [f"{told}: {problem} (recorded: {before})" for problem in early + problems]

    def taken_up(self, first: Host, before: list[str]) -> list[str]:
        """The next host goes on, and everything the record promised must hold."""
        host, turn = self.host(), self.turn()
        try:
            opened = host.open(first.thread if turn else "")
            if turn == "turnEnded":
                return self.after_the_end(opened, before)
            if not turn:
                host.say()
            if not host.over.wait(SECONDS):
                return [f"the turn does not end within {SECONDS:g} s"]
            return self.kept_promises(host, opened, before)
        finally:
            host.leave()
            host.server.kill()

    def after_the_end(self, opened: Json, before: list[str]) -> list[str]:
        """A record that says that the turn is over says how, and leaves no command without an end."""
        turn = opened["thread"]["turns"][-1]
        said = json.dumps(turn["items"])
        # A runtime that keeps the record and loses its host ends the turn itself, and says so.
        may_be_cut = not self.store and self.case.victim == "host" and turn["status"] in ("failed", "interrupted")
        wrong = [] if ANSWER in said or may_be_cut else [f"a turn that was over is lost: {turn}"]
        wrong += [] if PROMPT in said else ["what the user said is lost"]
        is_settled = before[-1:] in ([], ["finished"], ["withdrawn"]) if may_be_cut else before[-1:] == ["finished"]
        return wrong + ([] if is_settled else ["a turn that was over left a command open"])

    def kept_promises(self, host: Host, opened: Json, before: list[str]) -> list[str]:
        problems = []
        if host.turn["status"] != "completed":
            problems.append(f"the turn is {host.turn['status']}: {host.turn.get('error')}")
        pending = [operation["state"] for operation in opened.get("pendingOperations") or []]
        expected = {"proposed": ["proposed"], "decided": ["decided"], "started": ["unknown"]}
        last = before[-1] if before else ""
        if pending != expected.get(last, []):
            problems.append(f"pending is {pending}")
        may_ask = last in ("", "proposed")
        if len(host.asked) != may_ask:
            problems.append(f"asked {len(host.asked)} times for a decision")
        told = json.dumps(host.bodies[-1]["input"]) if host.bodies else ""
        if last == "started":
            if UNKNOWN not in told:
                problems.append("the model is not told that the outcome is unknown")
        elif not self.effects.counts()["mark"]:
            problems.append("the command never ran, and nobody says so")
        elif UNKNOWN in told:
            problems.append("the model is told of an unknown outcome that is known")
        if told and PROMPT not in told:
            problems.append("the model is not told what the user said")
        after = self.states()
        for state in ("proposed", "decided", "started", "finished"):
            if after.count(state) > 1:
                problems.append(f"{after.count(state)} records say {state}")
        return problems


def kinds(home: Path) -> list[str]:
    """Of the records in the runtime's own journal."""
    lines = [line for path in home.glob("threads/**/*.jsonl") for line in path.read_bytes().splitlines()]
    return [parsed(line).get("type", "") for line in lines]


def steps_of(run: Run, owner: str) -> list[str]:
    """What a life without a death goes through."""
    scene = Scene(run, Case(f"whole-{owner}", owner, "nobody"))
    host = scene.first()
    host.leave()
    host.server.kill()
    if host.turn.get("status") != "completed" or scene.effects.counts()["mark"] != 1:
        raise RuntimeError(f"a turn in which nobody dies is {host.turn}")
    return scene.steps


def cases(run: Run, chance: random.Random) -> Iterable[Case]:
    for owner in OWNERS:
        for number, step in enumerate(steps_of(run, owner)):
            # In the short form, one of the three dies at each step.
            victims = (VICTIMS[number % 3],) if run.quick else VICTIMS
            for victim in victims:
                yield Case(f"{owner}-{number}-{victim}", owner, victim, step)
    for number in range(run.pick(1_000, 30)):
        owner, victim = OWNERS[number % 2], chance.choice(VICTIMS)
        yield Case(f"random-{number}", owner, victim, after=chance.uniform(0.03, 0.45))


def fenced(run: Run, number: int) -> list[str]:
    """Two runtimes believe that the thread is theirs; the older one learns otherwise before it does anything."""
    scene = Scene(run, Case(f"fenced-{number}", "client", "nobody"))
    assert scene.store is not None
    older = scene.host()
    older.decides = False
    older.open()
    older.say()
    problems = []
    if not until(lambda: bool(older.asked), SECONDS):
        problems.append("the older runtime never asks")
    newer = scene.host()
    newer.decides = False
    newer.open(older.thread)
    if not until(lambda: bool(newer.asked), SECONDS):
        problems.append("the newer runtime does not ask again")
    older.decide(older.asked[-1])
    if not older.over.wait(SECONDS) or "fenced" not in str(older.turn.get("error")):
        problems.append(f"the older runtime is not told that it is fenced: {older.turn}")
    if scene.effects.counts() or not scene.store.refusals:
        problems.append("the older runtime started the command")
    newer.decide(newer.asked[-1])
    if not newer.over.wait(SECONDS) or scene.effects.counts()["mark"] != 1:
        problems.append(f"the newer runtime ran the command {scene.effects.counts()['mark']} times")
    for host in (older, newer):
        host.leave()
        host.server.kill()
    return [f"two runtimes, round {number}: {problem}" for problem in problems]


def measure(run: Run) -> Outcome:
    chance = random.Random(run.seed)
    deaths = list(cases(run, chance))
    rounds = run.pick(20, 2)
    counter = Counter("deaths", len(deaths))

    def one(case: Case) -> list[str]:
        counter.step()
        try:
            return Scene(run, case).problems()
        except Exception as error:  # noqa: BLE001
            return [f"{case}: {type(error).__name__}: {error}"[:300]]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [problem for problems in pool.map(one, deaths) for problem in problems]
    progress(f"  {len(deaths)} deaths, {rounds} contests")
    for number in range(rounds):
        failures += fenced(run, number)
    measured = f"{len(deaths)} deaths + {rounds} contests, {len(failures)} problems"
    by_victim = {victim: sum(case.victim == victim for case in deaths) for victim in VICTIMS}
    return Outcome(measured, failures, {"deaths": by_victim, "seed": run.seed})
