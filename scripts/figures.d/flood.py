"""G3: however many requests come at once, each is answered exactly once, whether or not the client reads meanwhile."""

import json
import threading
import time
from collections import Counter

from model import Model
from report import Outcome, Run, megabytes, progress
from server import PING, Server, make_home

COUNT = 20_000
# Results, refusals of the router and refusals of a payload: all of them are answers.
KINDS = [(PING, {}), ("thread/list", {"limit": 1}), ("no/such/method", {}), ("thread/read", {"threadId": 5})]


def burst(server: Server, first: int, stopped: float) -> tuple[Counter[int], int]:
    """How often each id was answered, and the growth in memory. The client reads only after `stopped` seconds."""
    lines = [
        json.dumps({"id": number, "method": KINDS[number % 4][0], "params": KINDS[number % 4][1]})
        for number in range(first, first + COUNT)
    ]
    since, before = len(server.heard), server.forget_peak()
    if stopped:
        server.reading.clear()
    writer = threading.Thread(target=server.write_raw, args=("\n".join([*lines, ""]).encode(),), daemon=True)
    writer.start()
    time.sleep(stopped)
    server.reading.set()
    server.wait(lambda: len(server.heard) >= since + COUNT, f"{COUNT} answers", 300)
    writer.join()
    server.ping()
    answered = Counter(message["id"] for message in server.heard[since:] if message.get("id", 0) >= first)
    return answered, server.memory("VmHWM") - before


def measure(run: Run) -> Outcome:
    model = Model()
    failures, parts, details = [], [], {}
    with Server(run.binary, make_home(run.folder / "home", model)) as server:
        server.initialize()
        for first, stopped in ((1_000_000, 0.0), (2_000_000, float(run.pick(8, 2)))):
            how = f"read after {stopped:g} s" if stopped else "read at once"
            progress(f"  {COUNT} requests, {how}")
            answered, grown = burst(server, first, stopped)
            missing = sum(number not in answered for number in range(first, first + COUNT))
            repeated = sum(count > 1 for count in answered.values())
            if missing or repeated:
                failures.append(f"{how}: {missing} without an answer, {repeated} answered more than once")
            parts.append(f"{COUNT - missing} {how}, RSS +{megabytes(grown)}")
            details[how] = {"answered": COUNT - missing, "repeated": repeated, "grown": grown}
    model.close()
    return Outcome("; ".join(parts), failures, details)
