"""What a host costs: per turn, per delta, per stored task, and with a hundred tasks at once.

host-speed compares a host with a server of its own kind, in one run of `oarlock-bench`, which must lie beside the binary.
host-tasks copies one real task in the store of a stopped host until there are 10,000. host-100 begins a turn in each of a
hundred tasks at once, each with a runtime of its own, and asks for something else meanwhile.
"""

import json
import os
import sqlite3
import statistics
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from hosts import HostProcess, Postgres, PostgresServer, Sqlite
from load import Clock, percentile
from report import Counter, Json, Outcome, Run, Skipped, megabytes
from server import PING, Silence, Socket

# Milliseconds that a turn may take longer through a host, by store; deltas from provider to client, per second.
PER_TURN = {"sqlite": 5.0, "postgres": 10.0}
DELTAS_PER_SECOND = 100_000
LIST_MS, AT_REST, PER_TASK = 5.0, 15_000_000, 1_000
ANSWER_SECONDS = 0.25
# A debug build is several times as slow and large, and a quick run is short, on a busy machine: they show that nothing
# waits and nothing is kept.
SLOWER, QUICK = 10.0, 50.0
TASKS, COPIED_TABLES = 10_000, ("records", "inbox")


def slower(run: Run) -> float:
    is_debug = run.binary.stat().st_size > 60 << 20
    return QUICK if run.quick else SLOWER if is_debug else 1.0


# ---- per turn and per delta ----


def measure(run: Run) -> Outcome:
    bench = run.binary.with_name("oarlock-bench")
    if not bench.is_file():
        raise Skipped("there is no oarlock-bench beside the binary; `cargo build -p oarlock-bench` makes one")
    with ExitStack() as stack:
        stores = {"sqlite": ""}
        try:
            server = PostgresServer()
        except Skipped:
            pass
        else:
            stack.callback(server.end)
            words = Postgres(server, "speed").arguments("bench")
            stores["postgres"] = " ".join(words)
        report = run.folder / "bench.json"
        # `app-server`, which is added to each command, becomes the name of the shell's script.
        hosts = [f"--server={store}=sh -c 'exec {run.binary} host --listen stdio:// {more}'"
                 for store, more in stores.items()]
        done = subprocess.run(
            [bench, "--only", "turn", "stream", "--reps", str(run.pick(5, 1)), "--scale", str(run.pick(1, 20)),
             "--work", run.folder, "--json", report, f"--server=direct={run.binary}", *hosts],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )
        if done.returncode:
            raise OSError(f"oarlock-bench: {done.stderr[-500:]}")
    return judged(run, json.loads(report.read_text()), list(stores))


def judged(run: Run, report: Json, stores: list[str]) -> Outcome:
    medians = {metric["key"]: {name: found["median"] for name, found in metric["servers"].items()}
               for metric in report["metrics"]}
    turns, rates = medians["turn_ms"], medians["stream_deltas_per_s"]
    failures, shown = [], []
    for store in stores:
        more, deltas = turns[store] - turns["direct"], rates[store]
        if more > PER_TURN[store] * slower(run):
            failures.append(f"{store}: a turn takes {more:.1f} ms longer")
        if deltas < DELTAS_PER_SECOND / slower(run):
            failures.append(f"{store}: {deltas:.0f} deltas a second")
        shown.append(f"{store} {more:+.1f} ms a turn, {deltas:,.0f} deltas/s")
    if "postgres" not in stores:
        shown.append("no Postgres on this machine")
    return Outcome("; ".join(shown), failures, {"medians": medians})


# ---- per stored task ----


def copy_tasks(store: Path, source: str, count: int) -> None:
    """Copies of a task, with its records, under ids that end in their number."""
    database = sqlite3.connect(store)
    with database:
        columns = {table: [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
                   for table in ("tasks", *COPIED_TABLES)}
        database.execute("CREATE TEMP TABLE copies (number INTEGER PRIMARY KEY, id TEXT)")
        rows = ((number, f"{source[:-8]}{number:08x}") for number in range(count))
        database.executemany("INSERT INTO copies VALUES (?, ?)", rows)
        for table, names in columns.items():
            keys = {"id", "root_id"} if table == "tasks" else {"thread_id"}
            values = ["copies.id" if name in keys else f"original.{name}" for name in names]
            where = "id" if table == "tasks" else "thread_id"
            database.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
                f"FROM {table} AS original, copies WHERE original.{where} = ?", (source,))
    database.close()


def memory(host: HostProcess) -> int:
    text = Path(f"/proc/{host.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmRSS:"))


def connect(host: HostProcess, folder: Path, clock: Clock | None = None) -> Socket:
    client = Socket(host.socket, folder, clock.hear if clock else None)
    info = {"name": "figures", "title": None, "version": "0"}
    capabilities = {"experimentalApi": True, "host": {"versions": [1]}}
    client.result("initialize", {"clientInfo": info, "capabilities": capabilities})
    client.write('{"method":"initialized"}')
    return client


def at_rest(host: HostProcess) -> int:
    """Memory once it no longer changes."""
    before = 0
    for _ in range(50):
        now = memory(host)
        if now == before:
            return now
        before = now
        time.sleep(0.2)
    raise Silence("the host's memory does not come to rest")


def list_ms(client: Socket, repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        began = time.perf_counter()
        page = client.result("thread/list", {"limit": 50})["data"]
        times.append((time.perf_counter() - began) * 1_000)
        if len(page) != 50:
            raise Silence(f"a page of 50 has {len(page)}")
    return statistics.median(times)


def tasks(run: Run) -> Outcome:
    count, store = run.pick(TASKS, TASKS // 10), Sqlite(run.folder)
    host = HostProcess(run.binary, run.folder, store, "a", more=["--idle-after", "1"])
    with connect(host, run.folder) as client:
        few = at_rest(host)
        thread = client.start_thread(dynamicTools=[])
        said = {"threadId": thread, "input": [{"type": "text", "text": "say hello"}]}
        client.result("turn/start", said)
        client.notification("turn/completed", threadId=thread)
        client.result("task/suspend", {"threadId": thread})
    host.end()
    copy_tasks(store.path, thread, count)
    host = HostProcess(run.binary, run.folder, store, "a")
    with connect(host, run.folder) as client:
        many = at_rest(host)
        took = list_ms(client, run.pick(100, 20))
    host.end()
    each = max(0, many - few) / count
    failures = []
    if took > LIST_MS * slower(run):
        failures.append(f"50 of {count} tasks are listed in {took:.1f} ms")
    if few > AT_REST * slower(run):
        failures.append(f"a host at rest takes {megabytes(few)}")
    if each > PER_TASK * slower(run):
        failures.append(f"a suspended task takes {each:.0f} bytes")
    measured = f"{count} tasks: 50 listed in {took:.1f} ms; {each:.0f} bytes each; at rest {megabytes(few)}"
    return Outcome(measured, failures, {"list_ms": took, "at_rest": few, "with_tasks": many})


# ---- a hundred at once ----


def together(run: Run) -> Outcome:
    count, clock, over = run.pick(100, 10), Clock(), threading.Event()
    host = HostProcess(run.binary, run.folder, Sqlite(run.folder), "a", more=["--idle-after", "2"])
    try:
        with connect(host, run.folder, clock) as client:
            asking = threading.Thread(target=ask_on, args=(client, clock, over), daemon=True)
            asking.start()
            began = time.monotonic()
            starts = [client.send("thread/start", {"cwd": str(run.folder)}) for _ in range(count)]
            counter = Counter("tasks", count)
            for number in starts:
                answer = client.answer(number, 300)
                if "error" in answer:
                    raise Silence(f"thread/start: {answer['error']}")
                said = [{"type": "text", "text": "say hello"}]
                client.send("turn/start", {"threadId": answer["result"]["thread"]["id"], "input": said})
                counter.step()
            client.wait(lambda: clock.ended >= count, "the end of all turns", 300)
            took = time.monotonic() - began
            over.set()
            asking.join()
    finally:
        over.set()
        host.end()
    slow = percentile(clock.seconds, 0.99)
    failures = []
    if clock.ended != count:
        failures.append(f"{clock.ended} of {count} turns completed")
    if slow > ANSWER_SECONDS * slower(run):
        failures.append(f"one of a hundred requests waits {slow * 1_000:.0f} ms or more")
    measured = (f"{clock.ended} of {count} turns in {took:.1f} s on {os.cpu_count()} cores; "
                f"p99 {slow * 1_000:.0f} ms of {len(clock.seconds)}")
    return Outcome(measured, failures, {"seconds": took})


def ask_on(client: Socket, clock: Clock, over: threading.Event) -> None:
    while not over.wait(0.02):
        at = time.monotonic()
        clock.sent(client.send(PING), at)
