"""G19: a command that writes without end costs the server little, and model and client get the part that helps."""

import re
from pathlib import Path

from effects import output_of
from model import Model, Plan
from report import Json, Outcome, Run, megabytes
from server import Server, make_home

GROWTH = 32_000_000
TO_MODEL = 16 * 1024
TO_CLIENT = 1_000_000
TO_FILE = 64 * 1024 * 1024
SECONDS = 120


def writes(size: int) -> str:
    """Begins and ends with words that must not be lost in the middle."""
    return f"echo the beginning; head -c {size} /dev/zero | tr '\\0' x; echo; echo the end"


def told_to_client(heard: list[Json], call_id: str) -> dict[str, int]:
    """Bytes of all messages about the item, by method."""
    told: dict[str, int] = {}
    for message in heard:
        params = message.get("params") or {}
        if params.get("itemId") == call_id or (params.get("item") or {}).get("id") == call_id:
            told[message["method"]] = told.get(message["method"], 0) + message["#bytes"]
    return told


def problems_of_file(text: str, whose: str) -> list[str]:
    """What is wrong with the file that holds what is not shown."""
    if not (found := re.search(r"Full output: (\S+) \((?:the first (\d+) of )?(\d+) bytes\)", text)):
        return [f"{whose} is told of no file"]
    path, kept, total = Path(found[1]), found[2], found[3]
    if not path.is_file():
        return [f"{whose} is told of a file that is not there: {path}"]
    status, beginning = path.stat(), path.open("rb").read(13)
    problems = [] if beginning == b"the beginning" else [f"the file begins with {beginning!r}"]
    if status.st_mode & 0o777 != 0o600:
        problems.append(f"the file has the mode {status.st_mode & 0o777:o}")
    if status.st_size != int(kept or total) or status.st_size > TO_FILE:
        problems.append(f"the file has {status.st_size} bytes; {whose} is told of {kept or total}")
    return problems


def shown_to_client(heard: list[Json], call_id: str) -> str:
    """What the item says in the end."""
    for message in heard:
        item = (message.get("params") or {}).get("item") or {}
        if message.get("method") == "item/completed" and item.get("id") == call_id:
            return str(item["aggregatedOutput"])
    return ""


def one(run: Run, model: Model, sandbox: str, size: int, tty: bool) -> tuple[list[str], Json]:
    name = f"{sandbox}-{'tty' if tty else 'pipe'}"
    plan = Plan(name, commands=(writes(size),), options={"yield_time_ms": 30_000, "tty": tty})
    with Server(run.binary, make_home(run.folder / name / "home", model, sandbox=sandbox)) as server:
        thread = server.initialize().start_thread()
        server.turn(thread, Plan(f"{name}-before", commands=("true",)))
        before = server.forget_peak()
        turn = server.turn(thread, plan, SECONDS)
        peak = server.memory("VmHWM") - before
        server.stop()
    output = output_of(model.bodies[name], plan.call_id(0)) or ""
    client = told_to_client(server.heard, plan.call_id(0))
    problems = [] if turn["status"] == "completed" else [f"the turn is {turn['status']}"]
    if "exited with code 0" not in output:
        problems.append(f"the command did not end well: {output[:100]!r}")
    missing = [words for words in ("the beginning", "the end") if words not in output]
    problems += [f"the model is not told {words!r}" for words in missing]
    if peak > GROWTH:
        problems.append(f"memory grew by {megabytes(peak)}")
    if len(output.encode()) > TO_MODEL:
        problems.append(f"{len(output.encode())} bytes for the model")
    if sum(client.values()) > TO_CLIENT:
        problems.append(f"{megabytes(sum(client.values()))} for the client: {client}")
    problems += problems_of_file(output, "the model")
    problems += problems_of_file(shown_to_client(server.heard, plan.call_id(0)), "the client")
    details = {"peak": peak, "model": len(output.encode()), "client": sum(client.values()), "messages": client}
    return [f"{name}: {problem}" for problem in problems], details


def measure(run: Run) -> Outcome:
    model, size = Model(), run.pick(400_000_000, 60_000_000)
    failures: list[str] = []
    details: Json = {}
    for sandbox in ("danger-full-access", "workspace-write"):
        for tty in (False, True):
            problems, details[f"{sandbox}, {'terminal' if tty else 'pipe'}"] = one(run, model, sandbox, size, tty)
            failures += problems
    model.close()
    most = {key: max(values[key] for values in details.values()) for key in ("peak", "model", "client")}
    said = f"+{megabytes(most['peak'])}, model {most['model']} bytes, client {megabytes(most['client'])}"
    return Outcome(f"{megabytes(size)}: {said}", failures, details)
