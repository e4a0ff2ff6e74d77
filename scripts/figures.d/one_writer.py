"""G10: of two servers that want one thread, one gets it and the other is told who has it; death frees it at once."""

import json
import threading
import time
from pathlib import Path

from ledger import essence
from model import Model, Plan
from report import Counter, Json, Outcome, Run
from server import Server, make_home, until
from storage import attempt, journal

TAKEOVER_SECONDS = 2.0
# A fresh thread after so many races: each resume hands over all turns, and these measure no long threads.
RACES_PER_THREAD = 50


def race(servers: list[Server], thread: str) -> list[Json]:
    """Both ask at the same moment; their answers."""
    start = threading.Barrier(len(servers))
    answers: list[Json] = [{} for _ in servers]

    def ask(index: int) -> None:
        start.wait()
        answers[index] = servers[index].ask("thread/resume", {"threadId": thread})

    threads = [threading.Thread(target=ask, args=(index,)) for index in range(len(servers))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return answers


class Contest:
    """Two servers on one folder, raced again and again for the same thread."""

    def __init__(self, run: Run, home: Path) -> None:
        self.run, self.home = run, home
        self.servers = [self.start(), self.start()]
        self.thread = self.servers[0].start_thread()
        self.turns: list[Plan] = []
        self.failures: list[str] = []
        self.slowest = 0.0
        self.wins = [0, 0]
        self.write(0, "begin", "the first turn")
        self.replace(0)

    def start(self) -> Server:
        return Server(self.run.binary, self.home).initialize()

    def replace(self, index: int) -> None:
        self.servers[index].kill()
        self.servers[index] = self.start()

    def write(self, index: int, name: str, at: str) -> None:
        plan = Plan(name)
        if attempt(self.servers[index], self.thread, plan) == ("completed", ""):
            self.turns.append(plan)
        else:
            self.failures.append(f"{at}: who holds the thread cannot write")

    def round(self, number: int) -> None:
        answers = race(self.servers, self.thread)
        winners = [index for index, answer in enumerate(answers) if "result" in answer]
        if len(winners) != 1:
            self.failures.append(f"race {number}: {len(winners)} writers: {answers}"[:400])
            for index in (0, 1):
                self.replace(index)
            return
        [winner] = winners
        loser = 1 - winner
        self.wins[winner] += 1
        said = answers[loser]["error"]["message"]
        if str(self.servers[winner].pid) not in said:
            self.failures.append(f"race {number}: the holder is not named: {said}"[:300])
        self.write(winner, f"race-{number}", f"race {number}")
        if attempt(self.servers[loser], self.thread, Plan(f"intruder-{number}"))[0] != "refused":
            self.failures.append(f"race {number}: the loser started a turn")
        self.take_over(winner, loser, number)

    def take_over(self, winner: int, loser: int, number: int) -> None:
        """The holder dies; the other must have the thread in time. Then it dies, too, and both start afresh."""
        self.servers[winner].kill()
        began = time.monotonic()
        heir = self.servers[loser]
        taken = until(lambda: "result" in heir.ask("thread/resume", {"threadId": self.thread}), 10)
        seconds = time.monotonic() - began
        self.slowest = max(self.slowest, seconds)
        if not taken or seconds > TAKEOVER_SECONDS:
            self.failures.append(f"race {number}: takeover took {seconds:.2f} s")
        self.write(loser, f"heir-{number}", f"takeover {number}")
        self.servers[winner] = self.start()
        self.replace(loser)

    def settle(self) -> None:
        """What two writers would have left behind: turns that are gone or mixed, numbers twice or missing."""
        read = self.servers[0].read(self.thread)
        found = [[essence(item) for item in turn["items"]] for turn in read["turns"]]
        expected = [[("userMessage", plan.text()), ("agentMessage", plan.answer())] for plan in self.turns]
        if found != expected:
            self.failures.append(f"{len(found)} turns in the record, {len(expected)} completed, or not in their order")
        for server in self.servers:
            server.kill()
        numbers = [json.loads(line).get("seq") for line in journal(self.home).read_bytes().splitlines()]
        if numbers != list(range(1, len(numbers) + 1)):
            self.failures.append("the numbers of the records are not consecutive")


def measure(run: Run) -> Outcome:
    model = Model()
    rounds = run.pick(1_000, 5)
    counter = Counter("races", rounds)
    contests: list[Contest] = []
    for number in range(rounds):
        if number % RACES_PER_THREAD == 0:
            if contests:
                contests[-1].settle()
            contests.append(Contest(run, make_home(run.folder / f"home-{number}", model)))
        contests[-1].round(number)
        counter.step()
    contests[-1].settle()
    model.close()
    failures = [failure for contest in contests for failure in contest.failures]
    slowest = max(contest.slowest for contest in contests)
    wins = [sum(contest.wins[index] for contest in contests) for index in (0, 1)]
    measured = f"{rounds} races, {len(failures)} problems, takeover at most {slowest:.2f} s"
    return Outcome(measured, failures, {"wins": wins, "slowestTakeover": round(slowest, 3)})
