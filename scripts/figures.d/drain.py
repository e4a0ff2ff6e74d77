"""drain: a server that is asked to stop lets turns end that run, suspends those that wait, and ends with 0.

Each round has three threads: one whose command runs for a moment, one that waits for an approval, one at rest. SIGTERM
comes at a random moment. Afterwards a new server takes up the turn that waited: it is asked about again, and its command
runs once.
"""

import random
import signal
import statistics
import time
from contextlib import suppress
from pathlib import Path

from model import Model, Plan
from report import Counter, Outcome, Run
from server import Server, Silence, Socket, make_home, until

APPROVAL = "item/commandExecution/requestApproval"
# How long the command of the turn that runs takes at most, and what a stop may take beyond it.
LONGEST = 0.6
BEYOND = 5.0


def question(client: Socket, thread: str) -> int:
    """The number of the question about the thread, once it was asked."""

    def asked() -> bool:
        return any(m.get("method") == APPROVAL and m["params"]["threadId"] == thread for m in client.heard)

    if not until(asked, 30):
        raise Silence(f"nobody was asked about {thread}")
    return next(m["id"] for m in client.heard if m.get("method") == APPROVAL and m["params"]["threadId"] == thread)


def ended(client: Socket, thread: str) -> bool:
    """Whether the thread's turn was told to be over."""
    return any(m.get("method") == "turn/completed" and m["params"]["threadId"] == thread for m in client.heard)


def measure(run: Run) -> Outcome:
    model, chance = Model(), random.Random(run.seed)
    home = make_home(run.folder / "home", model, approval="untrusted")
    work = run.folder / "work"
    work.mkdir()
    rounds, failures, took = run.pick(100, 8), [], []
    counter = Counter("stops", rounds)
    for number in range(rounds):
        failures += [f"round {number}: {problem}" for problem in stop_once(run, home, number, chance, took)]
        with suppress(FileNotFoundError):
            (run.folder / "listen").unlink()
        counter.step()
    model.close()
    median = statistics.median(took) if took else 0.0
    measured = f"{rounds} stops, {len(failures)} problems, median {median:.2f} s, longest {max(took, default=0):.2f} s"
    return Outcome(measured, failures, {"seed": run.seed, "seconds": took})


def stop_once(run: Run, home: Path, number: int, chance: random.Random, took: list[float]) -> list[str]:
    problems = []
    listen, work = run.folder / "listen", run.folder / "work"
    ran, waited = work / f"ran-{number}", work / f"waited-{number}"
    with Server(run.binary, home, listen=listen) as server:
        client = Socket(listen, work).initialize()
        client.start_thread(cwd=str(work))
        running = client.start_thread(cwd=str(work), approvalPolicy="never")
        waiting = client.start_thread(cwd=str(work))
        seconds = chance.uniform(0, LONGEST)
        client.begin(running, Plan(f"run-{number}", commands=(f"sleep {seconds:.2f}; echo x >> {ran}",)))
        client.begin(waiting, Plan(f"wait-{number}", commands=(f"echo x >> {waited}",)))
        question(client, waiting)
        time.sleep(chance.uniform(0, LONGEST))
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(60)
        took.append(time.monotonic() - began)
        client.close()
        if code != 0:
            problems.append(f"it ended with {code}")
        if took[-1] > LONGEST + BEYOND:
            problems.append(f"it took {took[-1]:.1f} s")
        if not ran.exists():
            problems.append("the command of the turn that ran did not end")
        if waited.exists():
            problems.append("a command ran that nobody had approved")
    with Server(run.binary, home, listen=listen):
        client = Socket(listen, work).initialize()
        client.result("thread/resume", {"threadId": waiting, "resumeTurn": True})
        client.write(f'{{"id": {question(client, waiting)}, "result": {{"decision": "accept"}}}}')
        # A file is there before its first line is.
        if not until(lambda: ended(client, waiting), 30):
            problems.append("the turn that waited was not taken up")
        elif (runs := waited.read_text() if waited.exists() else "") != "x\n":
            problems.append(f"the command that waited ran {runs.count('x')} times")
        client.close()
    return problems
