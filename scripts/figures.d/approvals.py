"""G11: a command that needs a yes runs after exactly that yes, and after nothing else that looks like one."""

import json
import random
import time
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from effects import Effects, at_once
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import Server, Socket, make_home

ASKS = "item/commandExecution/requestApproval"


class Asked:
    """A turn whose command waits for an approval, and those who may and may not give it."""

    def __init__(self, scene: "Scene", name: str, chance: random.Random) -> None:
        self.scene, self.name, self.chance = scene, name, chance
        self.client = scene.connect().initialize()
        self.thread = self.client.start_thread()
        self.plan = Plan(name, commands=(scene.effects.command(name),))
        self.turn = self.client.begin(self.thread, self.plan)
        self.question = self.wait_for_question()

    def wait_for_question(self, since: int = 0) -> Json:
        return self.client.notification(ASKS, since, threadId=self.thread)

    @property
    def id(self) -> Any:
        return self.question["id"]

    def pause(self) -> None:
        """Whatever comes next may come at once or a little later."""
        time.sleep(self.chance.choice([0, 0, self.chance.uniform(0, 0.03)]))

    def say(self, number: Any, client: Socket | None = None, **answer: Any) -> None:
        self.pause()
        (client or self.client).write(json.dumps({"id": number, **answer}))

    def decide(self, decision: Any, number: Any = None, client: Socket | None = None) -> None:
        self.say(self.id if number is None else number, client, result={"decision": decision})

    def end(self) -> Json:
        return self.client.end_of(self.thread, self.turn)

    def close(self) -> None:
        self.client.close()


def accept(asked: Asked) -> None:
    asked.decide("accept")
    asked.end()


def accept_twice(asked: Asked) -> None:
    asked.decide("accept")
    asked.decide("accept")
    asked.end()


def decline(asked: Asked) -> None:
    asked.decide("decline")
    asked.end()


def cancel(asked: Asked) -> None:
    asked.decide("cancel")
    asked.end()


def error(asked: Asked) -> None:
    asked.say(asked.id, error={"code": -32000, "message": "no"})
    asked.end()


def unknown_decision(asked: Asked) -> None:
    asked.decide(asked.chance.choice(["yes", "ACCEPT", "accepted", "", None, True, 1, ["accept"], {"accept": {}}]))
    asked.end()


def no_decision(asked: Asked) -> None:
    asked.say(asked.id, result=asked.chance.choice([{}, None, "accept", {"Decision": "accept"}, []]))
    asked.end()


def wrong_id(asked: Asked) -> None:
    """The same number as a text, its neighbours, and none at all."""
    for number in (str(asked.id), asked.id + 1, asked.id - 1, asked.id + 0.5, None, asked.id + 2**32):
        asked.decide("accept", number) if number is not None else asked.say(None, result={"decision": "accept"})
    asked.client.ping()
    asked.decide("decline")
    asked.end()


def decline_then_accept(asked: Asked) -> None:
    asked.decide("decline")
    asked.decide("accept")
    asked.end()


def late_accept(asked: Asked) -> None:
    """The turn is interrupted first."""
    asked.pause()
    asked.client.result("turn/interrupt", {"threadId": asked.thread, "turnId": asked.turn})
    asked.decide("accept")
    asked.end()
    asked.decide("accept")
    asked.client.ping()


def other_connection(asked: Asked) -> None:
    """Somebody says yes who was never asked."""
    with asked.scene.connect() as stranger:
        stranger.initialize()
        asked.decide("accept", client=stranger)
        stranger.ping()
    asked.decide("decline")
    asked.end()


def disconnect(asked: Asked) -> None:
    """Who was asked goes away; who comes back is asked the same again, and says no."""
    asked.pause()
    asked.client.close()
    asked.client = asked.scene.connect().initialize()
    asked.client.result("thread/resume", {"threadId": asked.thread})
    again = asked.wait_for_question()
    assert again["params"]["itemId"] == asked.question["params"]["itemId"], "another question is asked"
    asked.question = again
    asked.decide("decline")
    asked.end()


def another_answer(asked: Asked) -> None:
    """A yes for one command is no yes for the next one."""
    asked.decide("accept")
    asked.end()
    since = len(asked.client.heard)
    asked.plan = Plan(f"{asked.name}-next", commands=(asked.scene.effects.command(f"{asked.name}-next"),))
    asked.turn = asked.client.begin(asked.thread, asked.plan)
    old, asked.question = asked.id, asked.wait_for_question(since)
    asked.decide("accept", old)
    asked.decide("decline")
    asked.end()


def session_elsewhere(asked: Asked) -> None:
    """A yes for the session holds for this command in this folder: elsewhere it is asked again."""
    asked.decide("acceptForSession")
    asked.end()
    elsewhere = asked.scene.folder / "elsewhere"
    command = asked.plan.commands[0]
    since = len(asked.client.heard)
    asked.plan = Plan(f"{asked.name}-elsewhere", commands=(command,), options={"workdir": str(elsewhere)})
    asked.turn = asked.client.begin(asked.thread, asked.plan)
    asked.question = asked.wait_for_question(since)
    asked.decide("decline")
    asked.end()


# What is done, and how often the command may have run after it.
CASES: list[tuple[Callable[[Asked], None], int]] = [
    (accept, 1),
    (accept_twice, 1),
    (decline, 0),
    (cancel, 0),
    (error, 0),
    (unknown_decision, 0),
    (no_decision, 0),
    (wrong_id, 0),
    (decline_then_accept, 0),
    (late_accept, 0),
    (other_connection, 0),
    (disconnect, 0),
    (another_answer, 1),
    (session_elsewhere, 1),
]


@dataclass
class Scene:
    folder: Path
    socket: Path
    effects: Effects

    def connect(self) -> Socket:
        return Socket(self.socket, self.folder)

    def play(self, case: Callable[[Asked], None], number: int, seed: int) -> list[str]:
        name = f"{case.__name__}-{number}"
        asked = None
        try:
            asked = Asked(self, name, random.Random(f"{seed} {name}"))
            case(asked)
            return []
        except Exception as error:  # noqa: BLE001
            return [f"{name}: {type(error).__name__}: {error}"[:300]]
        finally:
            if asked:
                asked.close()


def wrong_counts(counts: Tally[str], rounds: int) -> list[str]:
    wrong = []
    for case, expected in CASES:
        for name in (f"{case.__name__}-{number}" for number in range(rounds)):
            if counts[name] != expected:
                wrong.append(f"{name} ran {counts[name]} times, not {expected}")
            if counts[f"{name}-next"]:
                wrong.append(f"{name}-next ran on the answer for another command")
    return wrong


def measure(run: Run) -> Outcome:
    model = Model()
    rounds = run.pick(100, 5)
    home = make_home(run.folder / "home", model, approval="untrusted")
    (run.folder / "elsewhere").mkdir()
    scene = Scene(run.folder, run.folder / "socket", Effects(run.folder / "effects"))
    counter = Counter("answers", rounds * len(CASES))

    def one(case: tuple[Callable[[Asked], None], int]) -> list[str]:
        problems = scene.play(*case, run.seed)
        counter.step()
        return problems

    with Server(run.binary, home, listen=scene.socket):
        failures = at_once(one, [(case, number) for case, _ in CASES for number in range(rounds)])
    model.close()
    unapproved = wrong_counts(scene.effects.counts(), rounds)
    failures += unapproved
    measured = f"{len(CASES)} cases x {rounds}, {len(unapproved)} wrong executions, {len(failures)} problems"
    return Outcome(measured, failures, {"cases": [case.__name__ for case, _ in CASES], "seed": run.seed})
