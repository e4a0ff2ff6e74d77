"""agent-jobs: a server that is killed in the middle of `spawn_agents_on_csv` goes on with the job, in its next process.

Each row's agent runs one command, which leaves a mark, and reports. The server is killed at a random moment of the job,
and again while the next process goes on with it. In the end every row is in the results once, no row's command has run
twice, and only rows that an agent was at work on when the server died may have failed.
"""

import csv
import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

from effects import Effects
from model import Model, Plan, message_events, stream_event
from report import Counter, Json, Outcome, Run
from server import Server, make_home, until

ROWS = 12
AT_ONCE = 3
SECONDS = 120.0
MORE = f"[features]\nenable_fanout = true\nmulti_agent = true\n[agents]\nmax_threads = {AT_ONCE}\n"
TASK = re.compile(r'job_id "([^"]+)", item_id "([^"]+)"')


class JobModel(Model):
    """Begins the job in the root thread; in an agent's, leaves a mark, reports, and is done."""

    def __init__(self, effects: Effects) -> None:
        super().__init__()
        self.effects = effects

    def stream(self, body: Json, plan: Plan, outputs: set[str]) -> Iterator[bytes]:
        task = TASK.search(json.dumps(body["input"]).replace('\\"', '"'))
        done = {item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"}
        name = task[2] if task else "root"
        yield stream_event({"type": "response.created", "response": {"id": f"resp-{name}"}})
        call = next((call for call in self.calls(task) if call["call_id"] not in done), None)
        if call:
            yield stream_event({"type": "response.output_item.done", "item": {"type": "function_call", **call}})
        else:
            yield from message_events(f"msg-{name}", "done")
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        yield stream_event({"type": "response.completed", "response": {"id": f"resp-{name}", "usage": usage}})

    def calls(self, task: re.Match[str] | None) -> list[Json]:
        if task is None:
            job = {"csv_path": "in.csv", "output_csv_path": "out.csv", "instruction": "look at {name}",
                   "id_column": "name", "max_concurrency": AT_ONCE}
            return [{"call_id": "job", "name": "spawn_agents_on_csv", "arguments": json.dumps(job)}]
        command = {"cmd": self.effects.command(task[2], "sleep 0.05")}
        report = {"job_id": task[1], "item_id": task[2], "result": {"saw": task[2]}}
        return [
            {"call_id": f"run-{task[2]}", "name": "exec_command", "arguments": json.dumps(command)},
            {"call_id": f"report-{task[2]}", "name": "report_agent_job_result", "arguments": json.dumps(report)},
        ]


def is_reached(effects: Effects, marks: int, pause: float) -> None:
    """Waits until so many rows have run, and then a moment."""
    until(lambda: sum(effects.counts().values()) >= marks, SECONDS)
    time.sleep(pause)


def one_job(run: Run, folder: Path, chance: random.Random) -> tuple[list[str], int]:
    """What is wrong in the end, and how many rows have failed."""
    folder.mkdir()
    effects = Effects(folder / "effects")
    model = JobModel(effects)
    home = make_home(folder / "home", model, more=MORE)
    names = [f"r{number}" for number in range(ROWS)]
    (folder / "in.csv").write_text("name\n" + "".join(f"{name}\n" for name in names))
    with Server(run.binary, home).initialize() as server:
        thread = server.start_thread()
        turn = server.begin(thread, Plan("job"))
        is_reached(effects, chance.randrange(1, ROWS // 2), chance.uniform(0, 0.1))
        server.kill()
    with Server(run.binary, home).initialize() as server:
        server.result("thread/resume", {"threadId": thread, "resumeTurn": True})
        is_reached(effects, chance.randrange(ROWS // 2, ROWS - AT_ONCE), chance.uniform(0, 0.1))
        server.kill()
    with Server(run.binary, home).initialize() as server:
        server.result("thread/resume", {"threadId": thread, "resumeTurn": True})
        ended = server.end_of(thread, turn, seconds=SECONDS)
        server.stop()
    model.close()
    problems = [] if ended["status"] == "completed" else [f"the turn is {ended['status']}: {ended['error']}"]
    problems += [f"the command of {name} ran {count} times" for name, count in effects.counts().items() if count > 1]
    if not (folder / "out.csv").exists():
        return [*problems, "there are no results"], 0
    with (folder / "out.csv").open(newline="") as results:
        rows = list(csv.DictReader(results))
    if [row["name"] for row in rows] != names:
        problems.append(f"the results have the rows {[row['name'] for row in rows]}")
    failed = [row for row in rows if row["status"] != "completed"]
    for row in rows:
        if row["status"] == "completed" and effects.counts()[row["name"]] != 1:
            problems.append(f"{row['name']} is completed and its command did not run")
    # Each death takes the rows with it that agents were at work on.
    if len(failed) > 2 * AT_ONCE:
        problems.append(f"{len(failed)} rows failed: {[(row['name'], row['last_error']) for row in failed]}")
    return problems, len(failed)


def measure(run: Run) -> Outcome:
    chance = random.Random(run.seed)
    jobs = run.pick(50, 2)
    counter, failures, lost = Counter("jobs", jobs), [], 0
    for number in range(jobs):
        problems, failed = one_job(run, run.folder / f"job-{number}", chance)
        failures += [f"job {number}: {problem}" for problem in problems]
        lost += failed
        counter.step()
    measured = f"{jobs} jobs of {ROWS} rows, killed twice each: 0 rows twice, 0 missing, {lost} told as failed"
    return Outcome(measured if not failures else f"{len(failures)} problems", failures)
