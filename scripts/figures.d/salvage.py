"""G9: a spoilt journal costs what was spoilt and no more, and the loss is told.

Ten thousand corruptions go through the journal's own test. Here some go through a whole server.
"""

import json
import random
import shutil
from dataclasses import dataclass, field

from cargo import run_test
from ledger import essence
from model import Model, Plan
from report import Counter, Json, Outcome, Run, progress
from server import Refused, Server, make_home
from storage import attempt, journal

TEST = "random_corruption_loses_no_valid_record_and_every_loss_is_reported"
TURNS = 12
CORRUPTIONS = "10000"


def corrupt(whole: bytes, chance: random.Random) -> tuple[str, bytes]:
    """One kind of accident, at a random place."""
    at, length = chance.randrange(len(whole)), chance.randrange(1, 2_000)
    start = chance.randrange(len(whole))
    lines = whole.splitlines(keepends=True)
    kind = chance.choice(["flip", "cut the end", "cut the middle", "splice", "double", "noise"])
    if kind == "flip":
        return kind, whole[:at] + bytes([whole[at] ^ (1 << chance.randrange(8))]) + whole[at + 1 :]
    if kind == "cut the end":
        return kind, whole[:at]
    if kind == "cut the middle":
        return kind, whole[:at] + whole[at + length :]
    if kind == "splice":
        return kind, whole[:at] + whole[start : start + length] + whole[at:]
    if kind == "double":
        first, after = chance.randrange(len(lines)), chance.randrange(len(lines) + 1)
        return kind, b"".join(lines[:after] + lines[first : first + 4] + lines[after:])
    return kind, whole[:at] + chance.randbytes(min(length, len(whole) - at)) + whole[at + length :]


@dataclass
class Tally:
    sound: int = 0
    kept: int = 0
    refused: int = 0
    with_loss: int = 0
    told_client: int = 0
    told_log: int = 0
    failures: list[str] = field(default_factory=list)


def write_journal(run: Run, model: Model) -> str:
    """Makes a state folder with one thread of many turns, whose id is handed back."""
    home = make_home(run.folder / "home", model)
    with Server(run.binary, home) as server:
        thread = server.initialize().start_thread()
        for number in range(TURNS):
            server.turn(thread, Plan(f"turn-{number}", tool=number % 3 == 0, size=300 * (number % 5)))
        server.result("thread/name/set", {"threadId": thread, "name": "salvage"})
        server.stop()
    return thread


def items_of(lines: list[bytes]) -> dict[bytes, object]:
    """The item that each line of a journal shows to a client, where it shows one."""
    found: dict[bytes, object] = {}
    for line in lines:
        record = json.loads(line)
        if record["type"] == "threadItem":
            found[line] = essence(record["payload"]["item"])
    return found


def examine(run: Run, thread: str, whole: bytes, bad: bytes, at: str, tally: Tally) -> None:
    """Reads and resumes one spoilt journal with a server of its own."""
    home = run.folder / "spoilt"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(run.folder / "home", home)
    journal(home).write_bytes(bad)
    lines = whole.splitlines()
    items = items_of(lines)
    with Server(run.binary, home) as server:
        logged = server.errors.stat().st_size
        server.initialize()
        try:
            read: Json = server.read(thread)
        except Refused as refused:
            refuse(server, thread, lines[0] in bad, str(refused), at, tally)
            return
        shown = [essence(item) for turn in read["turns"] for item in turn["items"]]
        sound = [item for line, item in items.items() if line in bad]
        tally.sound += len(sound)
        tally.kept += sum(item in shown for item in sound)
        doubled = [item for item in shown if shown.count(item) > 1]
        if doubled:
            tally.failures.append(f"{at}: shown twice: {doubled[0]}"[:200])
        strange = [item for item in shown if item not in items.values()]
        if strange:
            tally.failures.append(f"{at}: shown and never written: {strange[0]}"[:200])
        resume(server, thread, at, tally)
        if is_loss(lines, bad):
            tally.with_loss += 1
            report(server, logged, at, tally)
        if not server.is_alive():
            tally.failures.append(f"{at}: the server ended")


def refuse(server: Server, thread: str, has_head: bool, why: str, at: str, tally: Tally) -> None:
    """A record without its head may be refused, if the refusal is clear and other threads are not concerned."""
    tally.refused += 1
    if has_head:
        tally.failures.append(f"{at}: refused although its head is sound: {why}"[:300])
    if "error" not in server.ask("thread/resume", {"threadId": thread}):
        tally.failures.append(f"{at}: resumed although it cannot be read")
    other = attempt(server, server.start_thread(), Plan("other"))
    if other != ("completed", ""):
        tally.failures.append(f"{at}: another thread's turn is {other}")


def resume(server: Server, thread: str, at: str, tally: Tally) -> None:
    answer = server.ask("thread/resume", {"threadId": thread})
    if "error" in answer:
        tally.failures.append(f"{at}: read and not resumed: {answer['error']}"[:300])
        return
    after = attempt(server, thread, Plan("after"))
    if after != ("completed", ""):
        tally.failures.append(f"{at}: the turn after is {after}"[:300])


def is_loss(lines: list[bytes], bad: bytes) -> bool:
    """Whether a record is gone. What is missing from the end without a trace cannot be told from a shorter journal."""
    if all(line in bad for line in lines):
        return False
    return not b"".join(line + b"\n" for line in lines).startswith(bad) or not bad.endswith(b"\n")


def report(server: Server, logged: int, at: str, tally: Tally) -> None:
    """Whether the loss was said: to the client at best, in the log at least."""
    notices = ("warning", "configWarning", "deprecationNotice", "thread/damaged")
    told = [message for message in server.heard if message.get("method") in notices or has_warning(message)]
    log = server.errors.read_bytes()[logged:].lower()
    if told:
        tally.told_client += 1
    elif b"damage" in log:
        tally.told_log += 1
    else:
        tally.failures.append(f"{at}: a loss nobody is told of")


def has_warning(message: Json) -> bool:
    result = message.get("result")
    thread = result.get("thread") if isinstance(result, dict) else None
    holders = [holder for holder in (result, thread) if isinstance(holder, dict)]
    return any(holder.get("warning") or holder.get("warnings") for holder in holders)


def measure(run: Run) -> Outcome:
    model, chance, tally = Model(), random.Random(run.seed), Tally()
    thread = write_journal(run, model)
    whole = journal(run.folder / "home").read_bytes()
    rounds = run.pick(200, 20)
    counter = Counter("corrupted journals", rounds)
    for number in range(rounds):
        kind, bad = corrupt(whole, chance)
        try:
            examine(run, thread, whole, bad, f"corruption {number} ({kind})", tally)
        except Exception as error:  # noqa: BLE001
            tally.failures.append(f"corruption {number} ({kind}): {error}")
        counter.step()
    model.close()
    share = 100 * tally.kept / max(tally.sound, 1)
    if share < 99:
        tally.failures.append(f"{tally.kept} of {tally.sound} sound items kept")
    measured = (
        f"{rounds}: {share:.1f} % kept, {tally.refused} refused, {tally.with_loss} losses"
        f" ({tally.told_client} told the client, {tally.told_log} only the log)"
    )
    details = {key: value for key, value in vars(tally).items() if key != "failures"} | {"test": TEST}
    return Outcome(measured + in_the_journal(run, tally.failures), tally.failures, details)


def in_the_journal(run: Run, failures: list[str]) -> str:
    progress(f"  {'not with --quick' if run.quick else 'running'}: cargo test -p oarlock-journal {TEST}")
    if run.quick:
        return ""
    passed, said = run_test("oarlock-journal", TEST, {"JOURNAL_CORRUPTIONS": CORRUPTIONS})
    if passed is None:
        return "; the journal's test not run: no cargo"
    if not passed:
        failures.append(f"the journal's own test fails: {said[-500:]}")
    return f"; {CORRUPTIONS} in the journal {'hold' if passed else 'FAIL'}"
