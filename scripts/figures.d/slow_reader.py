"""G4: a client that stops reading holds up its own stream and fills no memory; afterwards it gets everything."""

import threading
import time

from model import Model, Plan, flood_messages, flood_text
from report import Json, Outcome, Run, megabytes, progress
from server import PING, Server, make_home

GROWTH = 64_000_000


def measure(run: Run) -> Outcome:
    size, stopped = run.pick(120_000_000, 20_000_000), run.pick(60, 5)
    model = Model()
    first_delta = threading.Event()

    def stop_reading(message: Json) -> None:
        is_delta = message.get("method") == "item/agentMessage/delta" and "flood" in message["params"]["itemId"]
        if is_delta and not first_delta.is_set():
            server.reading.clear()
            first_delta.set()

    with Server(run.binary, make_home(run.folder / "home", model), stop_reading) as server:
        server.initialize()
        thread = server.start_thread()
        server.turn(thread, Plan("before"))
        server.ping()
        before = server.forget_peak()
        turn = server.answer(server.send_turn(thread, Plan("flood", flood=size)))["result"]["turn"]["id"]
        if not first_delta.wait(30):
            return Outcome("no delta came", ["no delta came"])
        progress(f"  not reading for {stopped} s; {megabytes(before)} in use before")
        asked = server.send(PING)
        time.sleep(stopped)
        streamed = model.streamed
        while_stopped = server.memory("VmHWM") - before
        server.reading.set()
        server.answer(asked, 60)
        ended = server.notification("turn/completed", 0, 600, turn__id=turn)
        server.ping()
        peak = server.memory("VmHWM") - before
    model.close()
    failures = complete(server.heard, turn, size)
    if ended["params"]["turn"]["status"] != "completed":
        failures.append(f"the turn ended as {ended['params']['turn']}"[:300])
    if peak > GROWTH:
        failures.append(f"memory grew by {megabytes(peak)}")
    details = {"before": before, "whileStopped": while_stopped, "peak": peak, "drained": streamed, "size": size}
    measured = f"{megabytes(size)}, stopped {stopped} s: RSS +{megabytes(while_stopped)}, in all +{megabytes(peak)}"
    return Outcome(measured, failures, details)


def complete(heard: list[Json], turn: str, size: int) -> list[str]:
    """What is missing or different in the deltas and in the items."""
    deltas: dict[str, list[str]] = {}
    items: dict[str, str] = {}
    for message in heard:
        params = message.get("params") or {}
        if params.get("turnId") != turn:
            continue
        if message["method"] == "item/agentMessage/delta":
            deltas.setdefault(params["itemId"], []).append(params["delta"])
        elif message["method"] == "item/completed" and params["item"]["type"] == "agentMessage":
            items[params["item"]["id"]] = params["item"]["text"]
    wrong = []
    expected = flood_messages(size)
    for number in range(expected):
        item, text = f"flood-{number:03d}", flood_text(number)
        if "".join(deltas.get(item, [])) != text:
            wrong.append(f"deltas of {item}")
        if items.get(item) != text:
            wrong.append(f"text of {item}")
    return [f"{len(wrong)} of {2 * expected} texts differ, first {wrong[0]}"] if wrong else []
