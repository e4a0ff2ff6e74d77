"""resume: a thread of 150 MB is there again within 2 s, and reading it takes at most 1.5 times its size.

The thread is a rollout of Codex, resumed as it is, and the record of our own that `threads import` makes of it.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from model import Model
from report import Json, Outcome, Run, megabytes
from server import Server, make_home

THREAD = "01a1eb03-5606-70d1-bc63-6c0aa903a8e2"
# Calls in a turn, and the output of each, in bytes.
CALLS, OUTPUT = 8, 12_000
SIZE, SECONDS, TIMES = 150_000_000, 2.0, 1.5
# A debug build is ten times as slow, and a small file is small beside the program.
SLOWER, PROGRAM = 15.0, 160_000_000


def line(kind: str, payload: Json) -> str:
    return json.dumps({"timestamp": "2026-11-17T19:37:08.163Z", "type": kind, "payload": payload}) + "\n"


def said(role: str, kind: str, text: str) -> str:
    return line("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]})


def turn(number: int, cwd: str) -> Iterator[str]:
    name = f"t{number}"
    yield line("event_msg", {"type": "task_started", "turn_id": name})
    yield line("turn_context", {"turn_id": name, "model": "mock-model", "cwd": cwd})
    yield said("user", "input_text", f"question {number}")
    yield line("event_msg", {"type": "user_message", "message": f"question {number}"})
    for index in range(CALLS):
        call = f"call-{number}-{index}"
        arguments = json.dumps({"cmd": f"cat file{index}"})
        yield line("response_item", {"type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": call})
        output = f"{call} says \"so\"\n" * (OUTPUT // 24)
        yield line("response_item", {"type": "function_call_output", "call_id": call, "output": output})
    yield line("event_msg", {"type": "agent_message", "message": f"answer {number}"})
    yield said("assistant", "output_text", f"answer {number}")
    yield line("event_msg", {"type": "task_complete", "turn_id": name})


def write_rollout(home: Path, cwd: str, size: int) -> tuple[Path, int]:
    """A rollout of about so many bytes, and how many turns it has."""
    folder = home / "sessions/2026/11/17"
    folder.mkdir(parents=True)
    path, turns = folder / f"rollout-2026-11-17T19-37-06-{THREAD}.jsonl", 0
    meta = {"id": THREAD, "timestamp": "2026-11-17T19:37:08.141Z", "cwd": cwd, "originator": "figures",
            "cli_version": "0.117.0", "source": "vscode", "model_provider": "mock"}
    with path.open("w") as out:
        out.write(line("session_meta", meta))
        while out.tell() < size:
            out.write("".join(turn(turns, cwd)))
            turns += 1
    return path, turns


def resume(run: Run, home: Path, turns: int) -> tuple[float, int]:
    """Seconds until it is answered, and the growth of the server's memory at its highest."""
    with Server(run.binary, home, cwd=run.folder).initialize() as server:
        server.ping()
        before = server.forget_peak()
        began = time.monotonic()
        thread = server.result("thread/resume", {"threadId": THREAD}, 120)["thread"]
        took, grown = time.monotonic() - began, server.memory("VmHWM") - before
    if len(thread["turns"]) != turns:
        raise ValueError(f"{len(thread['turns'])} of {turns} turns are there")
    return took, grown


def measure(run: Run) -> Outcome:
    model, size = Model(), run.pick(SIZE, SIZE // 20)
    homes = {name: make_home(run.folder / name, model) for name in ("rollout", "record")}
    slower = SLOWER if run.quick or run.binary.stat().st_size > 60 << 20 else 1.0
    failures, shown, details = [], [], {}
    for name, home in homes.items():
        path, turns = write_rollout(home, str(run.folder), size)
        if name == "record":
            environment = {**os.environ, "CODEX_HOME": str(home), "OARLOCK_HOME": str(home)}
            subprocess.run([run.binary, "threads", "import", path], env=environment, check=True, capture_output=True)
            path.unlink()
        took, grown = resume(run, home, turns)
        if took > SECONDS * slower:
            failures.append(f"{name}: resumed in {took:.1f} s")
        if grown > TIMES * size and grown > PROGRAM:
            failures.append(f"{name}: takes {megabytes(grown)} for {megabytes(size)}")
        shown.append(f"{name} {took:.2f} s, {megabytes(grown)}")
        details[name] = {"seconds": took, "grown": grown, "turns": turns}
    model.close()
    return Outcome(f"{megabytes(size)}: " + "; ".join(shown), failures, details)
