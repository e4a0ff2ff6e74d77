"""G7: whatever a killed server had begun is in its record, and what nobody knows the end of is called unknown."""

import random
import re
import threading

from effects import Effects, operations, output_of, was_accepted
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import Server, Silence, make_home

UNKNOWN = re.compile(r"\bunknown\b|\bnot known\b", re.IGNORECASE)
# Long enough for a kill to find it running, most of the time.
STEP = "sleep 0.04"


class Life:
    """One server that is killed during a turn of two commands, and the next one on its folder."""

    def __init__(self, run: Run, model: Model, number: int) -> None:
        self.binary, self.model = run.binary, model
        folder = run.folder / f"life-{number}"
        self.home = make_home(folder / "home", model)
        self.effects = Effects(folder / "effects")
        self.marks = ["first", "second"]
        commands = tuple(self.effects.command(mark, f"{STEP}; echo over-{mark}") for mark in self.marks)
        self.plan = Plan(f"life-{number}", commands=commands)
        self.states: dict[str, list[str]] = {}
        # Calls that were killed between the record of their end for clients and the one for the model: they did end.
        self.half_known: set[str] = set()

    def run(self, seconds: float) -> list[str]:
        with Server(self.binary, self.home) as server:
            thread = server.initialize().start_thread()
            shot = threading.Timer(seconds, server.process.kill)
            shot.start()
            try:
                server.turn(thread, self.plan)
            except (Silence, OSError):
                pass  # Dead, as intended.
            shot.cancel()
            server.kill()
        self.states = operations(self.home)
        problems = self.effects_without_intent()
        if not was_accepted(server):
            return problems
        with Server(self.binary, self.home) as server:
            known = server.initialize().result("thread/resume", {"threadId": thread})["thread"]
            server.turn(thread, Plan(f"{self.plan.name}-after"))
            server.stop()
        # What the killed server's command still did has shown by now.
        problems += self.effects_without_intent()
        return problems + self.unlabelled(known) + self.untold()

    def effects_without_intent(self) -> list[str]:
        counts = self.effects.counts()
        marks = enumerate(self.marks)
        return [
            f"{self.plan.name}: {mark} has an effect and no intent"
            for index, mark in marks
            if counts[mark] and "started" not in self.states.get(self.plan.call_id(index), [])
        ]

    def unknown(self) -> list[str]:
        """The calls that were begun and never seen to end."""
        return [call for call, states in self.states.items() if states[-1] == "started"]

    def unlabelled(self, thread: Json) -> list[str]:
        """Calls of unknown outcome that clients could take for successful, or whose record says nothing."""
        problems = []
        after = operations(self.home)
        shown = {item["id"]: item for turn in thread["turns"] for item in turn["items"]}
        for call in self.unknown():
            item = shown.get(call, {})
            if item.get("status") == "completed" and item.get("exitCode") == 0:
                self.half_known.add(call)
            elif item.get("status") in ("completed", "inProgress"):
                problems.append(f"{self.plan.name}: {call} is shown as {item['status']}")
            expected = "finished" if call in self.half_known else "unknown"
            if expected not in after[call]:
                problems.append(f"{self.plan.name}: {call} is not recorded as {expected}: {after[call]}")
        return problems

    def untold(self) -> list[str]:
        """Calls whose output for the model is missing, or does not say what is known."""
        body = self.model.bodies[f"{self.plan.name}-after"]
        called = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
        problems = [f"{self.plan.name}: {call} is not in the history" for call in self.unknown() if call not in called]
        for call in called:
            output = output_of(body, call)
            states = self.states.get(call, [])
            if output is None:
                problems.append(f"{self.plan.name}: {call} has no output")
            elif states and (states[-1] == "finished" or call in self.half_known):
                if "exited with code 0" not in output:
                    problems.append(f"{self.plan.name}: {call} ended and is told as {output[:80]!r}")
            elif states and states[-1] == "started" and not UNKNOWN.search(output):
                problems.append(f"{self.plan.name}: {call} of unknown outcome is told as {output[:80]!r}")
        return problems


def measure(run: Run) -> Outcome:
    chance, model = random.Random(run.seed), Model()
    rounds = run.pick(300, 12)
    counter = Counter("kills", rounds)
    failures: list[str] = []
    unknown = half_known = 0
    for number in range(rounds):
        life = Life(run, model, number)
        failures += life.run(chance.uniform(0.005, 0.4))
        unknown += len(life.unknown()) - len(life.half_known)
        half_known += len(life.half_known)
        counter.step()
    model.close()
    measured = f"{rounds} kills, {unknown} outcomes unknown, {len(failures)} problems"
    return Outcome(measured, failures, {"unknown": unknown, "halfKnown": half_known, "seed": run.seed})
