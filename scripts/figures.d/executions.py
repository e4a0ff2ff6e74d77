"""G6: whatever breaks between model, server and client, a command the model called for once runs once."""

import random
import threading
import time

from effects import Effects, at_once, output_of, too_often, was_accepted
from model import Model, Plan
from report import Counter, Outcome, Run
from server import Server, Silence, Socket, make_home

BREAKS = ("refuse", "head", "created", "item")
# At most as many as a turn gets over.
RETRIES = 4


class Scene:
    """A folder with a server's home in it and a file that commands write to."""

    def __init__(self, run: Run, name: str, model: Model) -> None:
        self.binary, self.model, self.folder = run.binary, model, run.folder / name
        self.home = make_home(self.folder / "home", model, retries=RETRIES)
        self.effects = Effects(self.folder / "effects")

    def plan(self, name: str, chance: random.Random, breaks: tuple[str, ...] = ()) -> tuple[Plan, list[str]]:
        """Two commands, and the marks they leave."""
        marks = [f"{name}-first", f"{name}-second"]
        commands = tuple(self.effects.command(mark, f"sleep 0.0{chance.randrange(4)}") for mark in marks)
        together, twice = chance.random() < 0.3, chance.random() < 0.2
        return Plan(name, commands=commands, breaks=breaks, together=together, twice=twice), marks


def dropped_streams(scene: Scene, chance: random.Random, rounds: int, counter: Counter) -> list[str]:
    """The model's stream breaks at random places of a turn, and is asked for again."""
    kinds = [tuple(chance.choice(BREAKS + ("",)) for _ in range(chance.randrange(1, RETRIES))) for _ in range(rounds)]
    # The breaks that matter most, every time.
    kinds[:3] = [("item",), ("item", "item"), ("", "item", "item")]
    plans = [scene.plan(f"drop-{number}", chance, breaks) for number, breaks in enumerate(kinds)]
    with Server(scene.binary, scene.home) as server:
        server.initialize()

        def one(case: tuple[Plan, list[str]]) -> list[str]:
            plan, marks = case
            ended = server.turn(server.start_thread(), plan)
            counter.step()
            if ended["status"] != "completed":
                return [f"{plan.name} {plan.breaks}: the turn is {ended['status']}: {ended['error']}"[:300]]
            counts = scene.effects.counts()
            problems = [f"{plan.name} {plan.breaks}: {mark} never ran" for mark in marks if not counts[mark]]
            for call in plan.calls():
                if output_of(scene.model.bodies[plan.name], call["call_id"]) is None:
                    problems.append(f"{plan.name} {plan.breaks}: the model is not told how {call['call_id']} ended")
            return problems + too_often(counts, plan, marks)

        problems = at_once(one, plans)
        server.stop()
    return problems


def reconnections(scene: Scene, chance: random.Random, rounds: int, counter: Counter) -> list[str]:
    """The client goes away in the middle of a turn; another takes its place and sees the turn to its end."""
    path = scene.folder / "socket"
    problems = []
    with Server(scene.binary, scene.home, listen=path):
        for number in range(rounds):
            plan, marks = scene.plan(f"reconnect-{number}", chance)
            with Socket(path, scene.folder) as first:
                thread = first.initialize().start_thread()
                first.begin(thread, plan)
                time.sleep(chance.uniform(0, 0.15))
            with Socket(path, scene.folder) as second:
                problems += follow(second, thread, plan)
            counts = scene.effects.counts()
            problems += [f"{plan.name}: {mark} never ran" for mark in marks if not counts[mark]]
            problems += too_often(counts, plan, marks)
            counter.step()
    return problems


def follow(client: Socket, thread: str, plan: Plan) -> list[str]:
    """Resumes the thread and waits until its turn is over."""
    client.initialize()
    turns = client.result("thread/resume", {"threadId": thread})["thread"]["turns"]
    if turns and turns[-1]["status"] == "inProgress":
        ended = client.end_of(thread, turns[-1]["id"])
        return [] if ended["status"] == "completed" else [f"{plan.name}: the turn is {ended['status']}"]
    return []


def kills(scene: Scene, chance: random.Random, rounds: int, counter: Counter) -> list[str]:
    """The server dies in the middle; its successor takes the thread up and goes on, but runs nothing again."""
    problems = []
    for number in range(rounds):
        plan, marks = scene.plan(f"kill-{number}", chance)
        thread = ""
        with Server(scene.binary, scene.home) as server:
            try:
                thread = server.initialize().start_thread()
                shot = threading.Timer(chance.uniform(0, 0.3), server.process.kill)
                shot.start()
                server.turn(thread, plan)
            except (Silence, OSError):
                pass  # Dead, as intended.
            shot.cancel()
            server.kill()
        if was_accepted(server):
            problems += go_on(scene, thread, plan)
        problems += too_often(scene.effects.counts(), plan, marks)
        counter.step()
    return problems


def go_on(scene: Scene, thread: str, plan: Plan) -> list[str]:
    """The next server on the folder takes the thread up."""
    with Server(scene.binary, scene.home) as server:
        server.initialize().result("thread/resume", {"threadId": thread})
        after = server.turn(thread, Plan(f"{plan.name}-after"))
        server.stop()
    return [] if after["status"] == "completed" else [f"{plan.name}: the next turn is {after['status']}"]


def measure(run: Run) -> Outcome:
    chance = random.Random(run.seed)
    model = Model()
    rounds = {dropped_streams: run.pick(350, 12), reconnections: run.pick(100, 4), kills: run.pick(50, 3)}
    counter = Counter("turns", sum(rounds.values()))
    failures: list[str] = []
    for work, count in rounds.items():
        failures += work(Scene(run, work.__name__, model), chance, count, counter)
    model.close()
    measured = f"{sum(rounds.values())} turns, {len(failures)} problems"
    return Outcome(measured, failures, {work.__name__: count for work, count in rounds.items()})
