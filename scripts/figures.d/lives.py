"""One thread through the lives of its hosts and runtimes, and what must hold at the end of them."""

import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from delegated import ANSWER, PROMPT, Host, Store
from effects import Effects, operations, output_of, parsed
from report import Json, Run
from server import SECONDS, until

UNKNOWN = "outcome of this call is not known"
STOPPED = "It may have done part of its work"


@dataclass(frozen=True)
class Death:
    """Who dies, and when: at a step, or after so many seconds. Nobody does without either."""

    victim: str = "nobody"
    step: str = ""
    after: float = 0.0

    def __str__(self) -> str:
        return f"{self.victim} at {self.step or f'{self.after:.3f} s'}"


@dataclass(frozen=True)
class Case:
    """One life after the other, each with its death; the last one after them must bring the turn to its end."""

    name: str
    owner: str
    deaths: tuple[Death, ...]
    # How many calls the model makes in one response.
    calls: int = 1
    # The step of the first life at which the turn is put away.
    suspends: str = ""

    def __str__(self) -> str:
        put_away = f", put away at {self.suspends}" if self.suspends else ""
        return f"{self.owner}, {self.calls} calls, {', then '.join(map(str, self.deaths))}{put_away}"


class Scene:
    """A thread with its record, its effects and the hosts it has."""

    def __init__(self, run: Run, case: Case) -> None:
        self.run, self.case = run, case
        self.folder = run.folder / case.name
        self.home = self.folder / "home"
        self.home.mkdir(parents=True)
        self.effects = Effects(self.folder / "effects")
        self.store = Store() if case.owner == "client" else None
        self.calls = [f"call-{number + 1}" for number in range(case.calls)]
        # Of each life so far.
        self.steps: list[list[str]] = []
        self.thread = ""

    def host(self) -> Host:
        commands = {call: self.effects.command(call, "sleep 0.1") for call in self.calls}
        return Host(self.run.binary, self.home, self.store, commands)

    def die(self, host: Host, victim: str) -> None:
        if victim != "runtime":
            host.is_gone = True
        if victim != "host":
            host.kill_runtime()
        else:
            host.leave()

    def life(self, death: Death, suspends: str = "") -> Host:
        """Up to the death, or to an end when none is planned."""
        host, steps = self.host(), list[str]()
        self.steps.append(steps)
        host.suspends = suspends

        def at(step: str) -> None:
            steps.append(step)
            if step == death.step:
                self.die(host, death.victim)
            elif step.endswith(" answered") and step.startswith("call-"):
                threading.Thread(target=watch, args=(step.split()[0],), daemon=True).start()

        def watch(call: str) -> None:
            seen = self.effects.counts()[call]
            if until(lambda: host.is_over() or self.effects.counts()[call] > seen, 5) and not host.is_over():
                at(f"in {call}")
                if host.suspends == f"in {call}":
                    host.suspend()

        host.at = at
        timer = threading.Timer(death.after, self.die, [host, death.victim])
        if death.after:
            timer.start()
        # Where no turn was accepted, there is no thread to go on with.
        if not self.turn():
            self.thread = ""
        host.live(self.thread)
        if death.after:
            timer.join()
        self.thread = self.thread or host.thread
        return host

    def states(self) -> dict[str, list[str]]:
        """What is recorded of the commands, by call."""
        return self.store.states() if self.store else operations(self.home)

    def turn(self) -> str:
        """What is recorded of the turn: nothing, that it started, or that it ended."""
        records = [item["kind"] for item in self.store.items] if self.store else kinds(self.home)
        return next((kind for kind in reversed(records) if kind in ("turnStarted", "turnEnded")), "")

    def problems(self) -> list[str]:
        problems: list[str] = []
        kept: list[Json] = []
        late: list[Host] = []
        for number, death in enumerate(self.case.deaths):
            host = self.life(death, self.case.suspends if number == 0 else "")
            # The turn may have come to its end, or been put away, before anybody died.
            if not host.is_gone:
                host.leave()
            # The runtime's own record is its own until it has ended; the host's is taken over at once.
            if self.store and death.victim == "host":
                late.append(host)
            else:
                problems += host.drain()
            problems += self.changed(kept)
            kept = list(self.store.items) if self.store else []
        before = self.states()
        problems += self.last_life(before)
        for host in late:
            problems += host.drain()
        problems += self.changed(kept)
        runs = self.effects.counts()
        problems += [f"{call} ran {runs[call]} times" for call in self.calls if runs[call] > 1]
        return [f"{self.case}: {problem} (recorded: {before})" for problem in problems]

    def changed(self, kept: list[Json]) -> list[str]:
        is_kept = not self.store or self.store.items[: len(kept)] == kept
        return [] if is_kept else ["what was acknowledged has changed"]

    def last_life(self, before: dict[str, list[str]]) -> list[str]:
        """The next host goes on, and everything the record promised must hold."""
        host, turn = self.host(), self.turn()
        try:
            opened = host.open(self.thread if turn else "")
            if turn == "turnEnded":
                return self.after_the_end(opened, before)
            if not turn:
                host.say()
            if not host.over.wait(SECONDS):
                return [f"the turn does not end within {SECONDS:g} s"]
            return list(self.kept_promises(host, opened, before))
        finally:
            host.leave()
            host.server.kill()

    def after_the_end(self, opened: Json, before: dict[str, list[str]]) -> list[str]:
        """A record that says that the turn is over says how, and leaves no command without an end."""
        turn = opened["thread"]["turns"][-1]
        said = json.dumps(turn["items"])
        wrong = [] if ANSWER in said else [f"a turn that was over is lost: {turn}"]
        wrong += [] if PROMPT in said else ["what the user said is lost"]
        unsettled = [call for call in self.calls if before.get(call, [""])[-1] not in ("finished", "unknown")]
        return wrong + [f"a turn that was over left {call} open" for call in unsettled]

    def kept_promises(self, host: Host, opened: Json, before: dict[str, list[str]]) -> Iterable[str]:
        if host.turn["status"] != "completed":
            yield f"the turn is {host.turn['status']}: {host.turn.get('error')}"
        body = host.bodies[-1] if host.bodies else {"input": []}
        if host.bodies and PROMPT not in json.dumps(body["input"]):
            yield "the model is not told what the user said"
        pending = {operation["itemId"]: operation["state"] for operation in opened.get("pendingOperations") or []}
        after = self.states()
        for call in self.calls:
            last = before.get(call, [""])[-1]
            asked = sum(message["params"]["itemId"] == call for message in host.asked)
            told = output_of(body, call) or ""
            for problem in self.kept(last, pending.get(call, ""), asked, told, self.effects.counts()[call]):
                yield f"{call}: {problem}"
            for state in ("proposed", "decided", "started", "finished"):
                if after.get(call, []).count(state) > 1:
                    yield f"{call}: {after[call].count(state)} records say {state}"

    def kept(self, last: str, pending: str, asked: int, told: str, runs: int) -> Iterable[str]:
        """What was recorded last of a call decides what becomes of it."""
        expected = {"proposed": "proposed", "decided": "decided", "started": "unknown"}.get(last, "")
        if pending != expected and last != "unknown":
            yield f"pending is {pending!r}"
        if asked != (last in ("", "proposed")):
            yield f"asked {asked} times for a decision"
        if last in ("started", "unknown"):
            if UNKNOWN not in told:
                yield "the model is not told that the outcome is unknown"
        elif UNKNOWN in told:
            yield "the model is told of an unknown outcome that is known"
        elif not runs and STOPPED not in told:
            yield "the command never ran, and nobody says so"


def kinds(home: Path) -> list[str]:
    """Of the records in the runtime's own journal."""
    lines = [line for path in home.glob("threads/**/*.jsonl") for line in path.read_bytes().splitlines()]
    return [parsed(line).get("type", "") for line in lines]
