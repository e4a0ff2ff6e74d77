"""Whoever dies while a host is delegated to, nothing it acknowledged is lost, and no command is run twice for one yes.

The runtime, the host, or both die at every step that a whole life is seen to take, and at random moments; then a new
host takes the thread up with a new runtime. So with one call and with several in one response, with a turn that is put
away on purpose, and with a second death while the first is being recovered from; once with the host's record and once
with the runtime's own.
"""

import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from effects import AT_ONCE
from lives import Case, Death, Scene
from report import Counter, Outcome, Run, progress
from server import SECONDS, until

OWNERS = ("client", "server")
VICTIMS = ("runtime", "host", "both")
# Where a first death leaves something to recover from, by what is then recorded of the call.
WOUNDS = ("request 0 event 1", "call-1 asked", "call-1 answered", "in call-1", "request 1 accepted")
# Where a turn is put away: while it waits, and while a command runs.
REASONS_TO_WAIT = ("call-1 asked", "in call-1")


def steps_of(run: Run, case: Case) -> list[str]:
    """What the last life of a case goes through when nobody dies in it."""
    scene = Scene(run, case)
    for number, death in enumerate(case.deaths):
        host = scene.life(death, case.suspends if number == 0 else "")
        host.leave()
        host.drain()
    if len(case.deaths) == 1 and not case.suspends:
        counts = scene.effects.counts()
        if host.turn.get("status") != "completed" or any(counts[call] != 1 for call in scene.calls):
            raise RuntimeError(f"a turn in which nobody dies is {host.turn}")
    return scene.steps[-1]


def at_every_step(run: Run, whole: Case, before: tuple[Death, ...] = ()) -> Iterable[Case]:
    """The case, and a death in its last life at each step that it takes."""
    steps = list(dict.fromkeys(steps_of(run, whole)))
    for number, step in enumerate(steps):
        # In the short form, one of the three dies at each step, and with what is before it only at some.
        if run.quick and whole.name != f"whole-{whole.owner}-1" and number % 7 != len(whole.name) % 7:
            continue
        for victim in (VICTIMS[number % 3],) if run.quick else VICTIMS:
            deaths = (*before, Death(victim, step))
            yield Case(f"{whole.name}-{number}-{victim}", whole.owner, deaths, whole.calls, whole.suspends)


def cases(run: Run, chance: random.Random) -> Iterable[Case]:
    nobody = Death()
    for owner in OWNERS:
        for calls in (1, 3):
            yield from at_every_step(run, Case(f"whole-{owner}-{calls}", owner, (nobody,), calls))
        for number, step in enumerate(REASONS_TO_WAIT):
            yield from at_every_step(run, Case(f"suspended-{owner}-{number}", owner, (nobody,), 2, step))
        for number, step in enumerate(WOUNDS[:: run.pick(1, 2)]):
            first = (Death("both", step),)
            whole = Case(f"wounded-{owner}-{number}", owner, (*first, nobody), 2)
            yield from at_every_step(run, whole, first)
    for number in range(run.pick(1_000, 16)):
        owner, lives = OWNERS[number % 2], 1 + number % 3 // 2
        deaths = tuple(Death(chance.choice(VICTIMS), after=chance.uniform(0.03, 0.45)) for _ in range(lives))
        yield Case(f"random-{number}", owner, deaths, 1 + number % 2)


def fenced(run: Run, number: int) -> list[str]:
    """Two runtimes believe that the thread is theirs; the older one learns otherwise before it does anything."""
    scene = Scene(run, Case(f"fenced-{number}", "client", (Death(),)))
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
    if not newer.over.wait(SECONDS) or scene.effects.counts()["call-1"] != 1:
        problems.append(f"the newer runtime ran the command {scene.effects.counts()['call-1']} times")
    for host in (older, newer):
        host.leave()
        host.server.kill()
    return [f"two runtimes, round {number}: {problem}" for problem in problems]


def measure(run: Run) -> Outcome:
    chance = random.Random(run.seed)
    deaths = list(cases(run, chance))
    rounds = run.pick(20, 2)
    counter = Counter("cases", len(deaths))

    def one(case: Case) -> list[str]:
        counter.step()
        try:
            return Scene(run, case).problems()
        except Exception as error:  # noqa: BLE001
            return [f"{case}: {type(error).__name__}: {error}"[:300]]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = [problem for problems in pool.map(one, deaths) for problem in problems]
    progress(f"  {len(deaths)} cases, {rounds} contests")
    for number in range(rounds):
        failures += fenced(run, number)
    measured = f"{len(deaths)} cases + {rounds} contests, {len(failures)} problems"
    victims = [death.victim for case in deaths for death in case.deaths]
    by_victim = {victim: victims.count(victim) for victim in VICTIMS}
    return Outcome(measured, failures, {"deaths": by_victim, "seed": run.seed})
