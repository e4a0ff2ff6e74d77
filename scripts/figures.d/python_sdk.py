"""The Python SDK: many tasks in one process, kills and cancellations at every step, and its speed beside others."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from messages_model import MessagesModel
from model import FLOOD_DELTAS, Model, Plan, flood_messages
from report import Json, Outcome, Run, Skipped, progress
from server import make_home

ROOT = Path(__file__).resolve().parents[2]
SDK = ROOT / "sdk" / "python" / "oarlock"
PROGRAMS = Path(__file__).parent / "python_programs"
MEGABYTE = 1_000_000

# What the speed is compared with; installed into a folder of their own.
PEERS = ("openai-codex==0.163.0", "openai-agents==0.24.0", "pydantic-ai==2.62.0", "claude-agent-sdk==0.2.183")


def python() -> str:
    """The interpreter that `scripts/check-python` installs into."""
    found = ROOT / ".cache" / "venv" / "bin" / "python"
    if not found.exists():
        raise Skipped("scripts/check-python has not made .cache/venv")
    return str(found)


def environment(run: Run, **more: str) -> dict[str, str]:
    home = run.folder / "home"
    home.mkdir(exist_ok=True)
    paths = [SDK / "src", SDK.parent / "oarlock-protocol" / "src"]
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(home),
        "OARLOCK_HOME": str(home),
        "OARLOCK_BIN": str(run.binary),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        **more,
    }


def program(run: Run, interpreter: str, name: str, *arguments: str, **more: str) -> Json:
    """Runs one of the programs; the last line it prints is its result."""
    command = [interpreter, str(PROGRAMS / f"{name}.py"), *arguments]
    done = subprocess.run(command, env=environment(run, **more), capture_output=True, text=True, timeout=1_800)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {done.stderr[-800:]}")
    result: Json = json.loads(done.stdout.splitlines()[-1])
    return result


def many_tasks(run: Run) -> Outcome:
    count = run.pick(1_000, 40)
    found = program(run, python(), "many_tasks", str(count))
    per_task = (found["open"] - found["before"]) / count
    # In the quick form, for as many tasks as the figure has.
    whole = found["before"] + per_task * 1_000
    failures = [f"1,000 tasks take {whole / MEGABYTE:.0f} MB"] if whole > 200 * MEGABYTE else []
    measured = f"{count} open: {found['open'] / MEGABYTE:.0f} MB in Python, {per_task / 1_000:.0f} KB each"
    return Outcome(measured, failures, found)


def tests(run: Run, selection: list[str], **more: str) -> Outcome:
    command = [python(), "-m", "pytest", "--quiet", "-p", "no:cacheprovider", *selection]
    done = subprocess.run(command, cwd=SDK, env=environment(run, **more), capture_output=True, text=True, timeout=7_200)
    last = (done.stdout.splitlines() or ["nothing"])[-1]
    failed = re.findall(r"^FAILED (.*)$", done.stdout, re.MULTILINE)
    return Outcome(last.strip("= "), failed or ([done.stdout[-500:]] if done.returncode else []))


def faults(run: Run) -> Outcome:
    """All kills. The step `python` of scripts/test has a few of them."""
    if run.quick:
        raise Skipped("a few of them are tests of the SDK; all take half an hour")
    return tests(run, ["tests/test_faults.py"], OARLOCK_FAULTS="all")


def cancellations(run: Run) -> Outcome:
    """Cancelled at every await, on both event loops."""
    if run.quick:
        raise Skipped("a few of them are tests of the SDK; all take minutes")
    return tests(run, ["tests/test_life.py", "-k", "cancelled_at"], OARLOCK_FAULTS="all")


def peers() -> str:
    folder = ROOT / ".cache" / "python-peers"
    stamp = folder / "pins"
    if not stamp.exists() or stamp.read_text() != " ".join(PEERS):
        try:
            subprocess.run(["python3", "-m", "venv", "--clear", str(folder)], check=True, capture_output=True)
            pip = [str(folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *PEERS]
            subprocess.run(pip, check=True, capture_output=True, timeout=900)
        except (OSError, subprocess.SubprocessError) as error:
            raise Skipped(f"the packages to compare with cannot be installed: {error}") from error
        stamp.write_text(" ".join(PEERS))
    return str(folder / "bin" / "python")


def speed(run: Run) -> Outcome:
    """Ours beside openai-codex with one mock model, and beside two libraries with a scripted model, in one run."""
    if run.quick:
        raise Skipped("compares with packages that it installs; run it in full")
    theirs, ours = peers(), python()
    # One in front of the other, so that whatever else runs here meets both.
    rounds = [(measured("ours", run, ours), measured("codex", run, theirs)) for _ in range(3)]
    best = [{key: min(r[side][key] for r in rounds) for key in rounds[0][side]} for side in (0, 1)]
    mine, codex = best
    turns = run.pick(200, 20)
    tool = {
        name: min(program(run, interpreter, f"tool_turn_{name}", str(turns))["turn"] for _ in range(3))
        for name, interpreter in (("ours", ours), ("agents", theirs), ("pydantic_ai", theirs))
    }
    ratios = {key: codex[key] / mine[key] for key in mine}
    wanted = {"import": 1.0, "first": 5.0, "turn": 3.0, "deltas": 5.0}
    failures = [
        f"{key}: {ratios[key]:.1f} x, not {factor:.0f} x" for key, factor in wanted.items() if ratios[key] < factor
    ]
    if mine["import"] > 0.35:
        failures.append(f"import takes {mine['import']:.2f} s")
    if tool["ours"] > min(tool["agents"], tool["pydantic_ai"]):
        failures.append("a turn with a tool call takes longer than that of a library without a record")
    shown = ", ".join(f"{key} {mine[key] * 1_000:.0f} ms ({ratios[key]:.1f} x)" for key in wanted)
    shown += "; a tool turn " + ", ".join(f"{name} {value * 1_000:.1f} ms" for name, value in tool.items())
    details: dict[str, Any] = {"ours": mine, "codex": codex, "toolTurn": tool}
    return Outcome(shown, failures, details)


def crashes(run: Run) -> Outcome:
    """A tool pays and its program dies in it. What does a second life find, and how often was it paid?"""
    if run.quick:
        raise Skipped("compares with packages that it installs; run it in full")
    theirs = peers()
    responses, messages = Model(), MessagesModel("mcp__desk__refund", {"order": "A-17"})
    paid: dict[str, int] = {}
    left: dict[str, str] = {}
    try:
        for name in ("ours", "agents", "pydantic_ai", "codex", "claude"):
            folder = run.folder / name
            home = make_home(folder / "home", responses)
            command = f"echo A-17 >> {folder}/paid; sleep 30"
            more = {
                "CODEX_HOME": str(home),
                "PROMPT": Plan("pay", commands=(command,)).text(),
                "MOCK": f"http://127.0.0.1:{messages.port}",
            }
            interpreter = python() if name == "ours" else theirs
            progress(f"  {name}")
            first = subprocess.run(
                [interpreter, str(PROGRAMS / f"crash_{name}.py"), str(folder), "1"],
                env=environment(run, **more),
                capture_output=True,
                text=True,
                timeout=120,
            )
            if first.returncode != -9:
                raise RuntimeError(f"{name} was not killed: {first.stderr[-500:]}")
            left[name] = program(run, interpreter, f"crash_{name}", str(folder), "2", **more)["left"]
            paid[name] = len((folder / "paid").read_text().splitlines())
    finally:
        responses.close()
        messages.close()
    failures = (
        [] if paid["ours"] == 1 and "unknown" in left["ours"] else [f"ours paid {paid['ours']} times: {left['ours']}"]
    )
    shown = ", ".join(f"{name} paid {count} x" for name, count in paid.items())
    return Outcome(shown, failures, {"paid": paid, "left": left, "claudeTold": messages.results[-1:]})


def measured(name: str, run: Run, interpreter: str) -> dict[str, float]:
    model = Model()
    home = make_home(run.folder / f"home-{name}", model)
    flood = next(size for size in range(100_000, 10_000_000, 50_000) if flood_messages(size) * FLOOD_DELTAS >= 20_000)
    prompts = {"turn": Plan("turn").text(), "flood": Plan("flood", flood=flood).text()}
    progress(f"  {name}")
    try:
        return program(
            run,
            interpreter,
            f"speed_{name}",
            json.dumps(prompts),
            CODEX_HOME=str(home),
            OARLOCK_HOME=str(home),
            MOCK=f"http://127.0.0.1:{model.port}/v1",
        )
    finally:
        model.close()
