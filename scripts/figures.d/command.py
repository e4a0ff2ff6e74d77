"""From the command line to the table."""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import agent_jobs
import approvals
import bypasses
import delegation
import drain
import executions
import file_search
import flood
import frames
import honesty
import host_kills
import host_speed
import hygiene
import kills
import large_line
import large_output
import large_resume
import load
import long_tests
import mcp_idle
import named_kills
import one_writer
import patches
import place_kills
import places
import python_sdk
import real_model
import repository
import salvage
import secrets_kept
import slow_reader
import stops
import storage
from report import Outcome, Result, Run, Skipped, progress, table

# A new figure is a file with a `measure` and one line here.
FIGURES: dict[str, tuple[str, Callable[[Run], Outcome]]] = {
    "G1": ("every line gets its defined outcome: 23/23", frames.measure),
    "G2": ("1 GB line: peak within limit + 16 MB", large_line.measure),
    "G3": ("20,000 requests at once: 20,000 answers", flood.measure),
    "G4": ("120 MB stream, reader stopped 60 s: RSS +64 MB at most", slow_reader.measure),
    "G5": ("7 x 50 + 1,000 kills: 0 lost, 0 torn", kills.measure),
    "G6": ("broken streams, reconnects, kills: 0 commands run twice", executions.measure),
    "G7": ("kills: every effect has an intent, unknown ends say so", honesty.measure),
    "G8": ("storage faults: 0 false `completed`, 0 lost, no restart", storage.measure),
    "G9": ("corrupted journals: 0 crashes, 99 % kept, losses told", salvage.measure),
    "G10": ("two-server races: 1 writer, takeover within 2 s", one_writer.measure),
    "G11": ("14 kinds of answers x 100: 0 unapproved executions", approvals.measure),
    "G13": ("patches: 0 writes outside, 0 to protected files", patches.measure),
    "G14": ("disguised commands: 0 run unasked outside the sandbox", bypasses.measure),
    "G15": ("hostile repositories: the server runs 0 helpers", repository.measure),
    "G16": ("20 planted secrets: 0 found", secrets_kept.measure),
    "G18": ("0 processes left after 1 s, 512 at most", hygiene.measure),
    "G19": ("400 MB output: RSS +32 MB, model 16 KB, client 1 MB", large_output.measure),
    "G20": ("1,000 threads: 400 MB, 3 files each; 200 turns; requests in 250 ms", load.measure),
    "G21": ("1,000 interrupts at random moments: 0 writes after the end of the turn", stops.measure),
    "resume": ("150 MB: resumed in 2 s, peak 1.5 times the file", large_resume.measure),
    "host-kills": ("host, runtime, client or two of them die at 11 points: 0 lost, 0 run twice", host_kills.measure),
    "named-kills": ("points in host, runtime and client, pairs, Postgres, a late lease: 0 lost, 0 twice", named_kills.measure),
    "host-speed": ("beside a server: 5 ms more per turn (Postgres 10), 100,000 deltas/s", host_speed.measure),
    "host-tasks": ("10,000 tasks: 50 listed in 5 ms, under 1 KB each; 15 MB at rest", host_speed.tasks),
    "host-100": ("100 tasks at once, each with a runtime: all end, requests in 250 ms", host_speed.together),
    "drain": ("100 stops: exit 0, turns that run end, those that wait are taken up", drain.measure),
    "mcp-idle": ("three idle MCP servers: a turn takes 1 ms more at most", mcp_idle.measure),
    "search": ("100,000 files: results within 30 ms of a keystroke", file_search.measure),
    "agent-jobs": ("kills in the middle of a job: no row twice, none missing", agent_jobs.measure),
    "long-tests": ("random tests at full length: all hold", long_tests.measure),
    "real-model": ("a model server with real weights: turns, an interrupt, its death", real_model.measure),
    "placements": ("docker, ssh: first turn 1.5 s staged, 0.3 s after; 5 ms more per turn", places.measure),
    "place-kills": ("host-kills in docker and behind ssh, with the place: 0 lost, 0 run twice", place_kills.measure),
    "python-tasks": ("1,000 tasks open in one Python process: 200 MB", python_sdk.many_tasks),
    "python-faults": ("program, host, runtime killed at every step: `once` never twice", python_sdk.faults),
    "python-cancel": ("cancelled at every await: no hang, no orphan, no lost decision", python_sdk.cancellations),
    "python-crash": ("a program dies in a tool: ours waits for a person, once paid", python_sdk.crashes),
    "python-speed": ("beside openai-codex: start 5 x, turn 3 x, deltas 5 x", python_sdk.speed),
    "delegation": ("host, runtime or both die: 0 lost, 0 run twice, unknown is told", delegation.measure),
}


def main() -> int:
    options = read_arguments()
    results = []
    for name in options.only:
        goal, measure = FIGURES[name]
        progress(f"{name}: {goal}")
        results.append(attempt(name, goal, measure, options))
    print(table(results))
    if options.json:
        written = {"binary": str(options.binary), "quick": options.quick, "figures": [r.as_json() for r in results]}
        options.json.write_text(json.dumps(written, indent=2) + "\n")
    return 0 if all(result.passed is not False for result in results) else 1


def attempt(name: str, goal: str, measure: Callable[[Run], Outcome], options: argparse.Namespace) -> Result:
    """Runs one figure in a folder of its own. One that breaks has failed, and the next still runs."""
    folder = Path(tempfile.mkdtemp(prefix=f"figures-{name}-", dir=options.folder)).resolve()
    began = time.monotonic()
    try:
        outcome = measure(Run(options.binary, folder, options.quick, options.seed))
        failures = outcome.failures
        passed: bool | None = not failures
        measured, details = outcome.measured, outcome.details
    except Skipped as reason:
        passed, measured, failures, details = None, str(reason), [], {}
    except Exception as error:  # noqa: BLE001
        passed, measured, failures, details = False, "the measurement broke", [f"{type(error).__name__}: {error}"], {}
    finally:
        if options.keep:
            progress(f"{name}: kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for failure in failures:
        progress(f"{name} FAILED: {failure}")
    return Result(name, goal, measured, passed, failures, details, time.monotonic() - began)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure the reliability figures of an app-server binary.")
    parser.add_argument("--binary", type=Path, required=True, help="run as `BINARY app-server`")
    parser.add_argument("--only", type=names, default=list(FIGURES), metavar="G1,G3", help="which figures")
    parser.add_argument("--quick", action="store_true", help="smaller counts, one to two minutes in all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument("--seed", type=int, default=1, help="of random kill points and corruptions")
    parser.add_argument("--folder", type=Path, help="where the temporary state folders go")
    parser.add_argument("--keep", action="store_true", help="keep the state folders for a look at them")
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    if not options.binary.is_file():
        parser.error(f"there is no binary at {options.binary}; `cargo build -p oarlock-cli` makes one")
    return options


def names(text: str) -> list[str]:
    known = {name.upper(): name for name in FIGURES}
    chosen = [known.get(name.strip().upper(), name) for name in text.split(",")]
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no figure {', '.join(unknown)}; there are {', '.join(FIGURES)}")
    return chosen
