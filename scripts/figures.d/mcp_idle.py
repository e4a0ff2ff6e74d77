"""mcp-idle: three MCP servers that nobody calls make a turn at most 1 ms longer.

Two servers take turns by turns, one with three MCP servers of ten tools each and one with none, so that whatever else the
machine does slows both. Compared are the fastest quarters: they are the cost, and the rest is noise. A quick run is of a
debug build on a busy machine: it holds the turn to a bound that only a wait or a request to each server would break.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from model import Model, Plan
from report import Counter, Outcome, Run
from server import Server, Silence, make_home, until

SERVERS = ("one", "two", "three")
MOST_MS = 1.0
QUICK_MOST_MS = 25.0
IDLE = """
import json, sys

schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
tools = [{"name": f"tool{n}", "description": "Does nothing. " * 8, "inputSchema": schema} for n in range(10)]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    version = (asked.get("params") or {}).get("protocolVersion")
    about = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "idle", "version": "1"}}
    result = {"initialize": about, "tools/list": {"tools": tools}}.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def settings(program: Path) -> str:
    one = "\n[mcp_servers.{name}]\ncommand = {command}\nargs = [{program}]\n"
    words = {"command": json.dumps(sys.executable), "program": json.dumps(str(program))}
    return "".join(one.format(name=name, **words) for name in SERVERS)


def turn_ms(server: Server, thread: str, name: str) -> float:
    since, began = len(server.heard), time.perf_counter()
    server.end_of(thread, server.begin(thread, Plan(name)), since)
    return (time.perf_counter() - began) * 1_000


def are_ready(server: Server) -> bool:
    told = [m["params"] for m in server.heard if m.get("method") == "mcpServer/startupStatus/updated"]
    return {one["name"] for one in told if one["status"] == "ready"} == set(SERVERS)


def fastest_quarter(times: list[float]) -> float:
    return statistics.mean(sorted(times)[: max(1, len(times) // 4)])


def measure(run: Run) -> Outcome:
    model = Model()
    program = run.folder / "idle.py"
    program.write_text(IDLE)
    plain = make_home(run.folder / "plain", model)
    idle = make_home(run.folder / "idle", model, more=settings(program))
    turns = run.pick(400, 60)
    times: dict[str, list[float]] = {"without": [], "with": []}
    counter = Counter("turns", turns)
    with Server(run.binary, plain).initialize() as without, Server(run.binary, idle).initialize() as beside:
        threads = {"without": (without, without.start_thread()), "with": (beside, beside.start_thread())}
        if not until(lambda: are_ready(beside), 30):
            raise Silence("the MCP servers did not become ready")
        for number in range(turns):
            # Who goes first changes, so that being second is no advantage.
            for kind in sorted(threads, reverse=number % 2 == 0):
                server, thread = threads[kind]
                took = turn_ms(server, thread, f"{kind}{number}")
                # The first turns pay for what is made once.
                if number >= turns // 10:
                    times[kind].append(took)
            counter.step()
    offered = json.dumps(model.bodies[f"with{turns - 1}"].get("tools", []))
    model.close()
    missing = [name for name in SERVERS if f"mcp__{name}__tool9" not in offered]
    took = {kind: fastest_quarter(of_kind) for kind, of_kind in times.items()}
    more = took["with"] - took["without"]
    failures = [f"the tools of `{name}` were not offered" for name in missing]
    most = run.pick(MOST_MS, QUICK_MOST_MS)
    if more > most:
        failures.append(f"a turn takes {more:.2f} ms longer; at most {most} is allowed")
    measured = f"{took['without']:.2f} ms without, {took['with']:.2f} ms with three idle servers: {more:+.2f} ms"
    return Outcome(measured, failures, {"turns": turns})
