"""A host that can be stopped at any step: it carries the model's requests, decides, and may keep the record."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from effects import output_of
from report import Json
from server import SECONDS, Refused, Server, Silence, until

FEATURES = ["modelTransport", "clientRollout", "operations", "suspend"]
PROVIDER = {"id": "figures", "capabilities": {"wire": "responses"}}
APPROVAL = "item/commandExecution/requestApproval"
PROMPT, ANSWER = "leave a mark", "the mark is left"


@dataclass
class Store:
    """What hosts keep, whichever of them lives. The newest lease alone may write."""

    items: list[Json] = field(default_factory=list)
    epoch: int = 0
    refusals: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def lease(self) -> int:
        with self.lock:
            self.epoch += 1
            return self.epoch

    def append(self, params: Json) -> Json:
        """The answer, as a result or an error."""
        with self.lock:
            if params["hostEpoch"] != self.epoch:
                self.refusals += 1
                return refusal("fenced")
            if params["fromOrdinal"] != len(self.items):
                return refusal("ordinalConflict", nextOrdinal=len(self.items))
            self.items += params["items"]
            return {"result": {"nextOrdinal": len(self.items)}}

    def states(self) -> dict[str, list[str]]:
        """What is recorded of every operation, by the id of its call."""
        states: dict[str, list[str]] = {}
        for item in list(self.items):
            if item["kind"] == "operation":
                states.setdefault(item["operationId"].rsplit(":", 1)[-1], []).append(item["state"])
        return states

    def has(self, kind: str) -> bool:
        return any(item["kind"] == kind for item in self.items)


def refusal(code: str, **data: int) -> Json:
    return {"error": {"code": -32602, "message": code, "data": {"code": code, **data}}}


class Stopped(Exception):
    """This host is no more; what it was about to do does not happen."""


class Host:
    """One life of a host with a runtime of its own. `at` hears of every step and may end either of them."""

    def __init__(self, binary: Path, home: Path, store: Store | None, commands: dict[str, str]) -> None:
        # The commands of the model's one response with calls, by the ids of the calls.
        self.store, self.commands = store, commands
        self.epoch = store.lease() if store else None
        self.at: Callable[[str], None] = lambda step: None
        self.thread = ""
        self.running_turn = ""
        self.is_gone = False
        self.decides = True
        # The step at which the turn is put away instead of going on.
        self.suspends = ""
        self.suspending: int | None = None
        self.suspended = threading.Event()
        self.asked: list[Json] = []
        self.bodies: list[Json] = []
        self.over = threading.Event()
        self.turn: Json = {}
        self.counts = {"append": 0, "request": 0}
        self.server = Server(binary, home, self._hear)

    # ---- ends ----

    def is_over(self) -> bool:
        is_done = self.over.is_set() or self.suspended.is_set()
        return is_done or self.is_gone or not self.server.is_alive()

    def kill_runtime(self) -> None:
        self.server.process.kill()

    def leave(self) -> None:
        """The host is gone in the middle of whatever it did, and its connection with it."""
        self.is_gone = True
        assert self.server.process.stdin is not None
        with suppress(OSError):
            self.server.process.stdin.close()

    def drain(self) -> list[str]:
        """Waits until the runtime has ended, which it must without its host."""
        ended = until(lambda: not self.server.is_alive(), 10)
        self.server.kill()
        return [] if ended else ["the runtime outlives its host by 10 s"]

    # ---- duties, done where they are heard ----

    def _hear(self, message: Json) -> None:
        with suppress(OSError, ValueError, Stopped):
            self._step_if_gone()
            self._do(message, message.get("method"), message.get("params") or {})
            if "method" not in message and message.get("id") == self.suspending:
                self.suspended.set()
                self._step_if_gone("suspend answered")
        if not self.is_gone and message.get("method") == "turn/completed":
            self.turn = message["params"]["turn"]
            self.over.set()

    def _step_if_gone(self, step: str | None = None) -> None:
        if step:
            self.at(step)
        if self.is_gone:
            raise Stopped
        if step and step == self.suspends:
            self.suspend()

    def suspend(self) -> None:
        """Puts the turn away, in whatever it is."""
        self.decides = False
        mode = "whenPending" if self.suspends.endswith("asked") else "now"
        params = {"threadId": self.thread, "turnId": self.running_turn, "mode": mode, "deadlineMs": 5_000}
        self.suspending = self.server.send("turn/suspend", params)
        self.at("suspend asked")

    def _do(self, message: Json, method: str | None, params: Json) -> None:
        if method == "rollout/append":
            self._append(message, params)
        elif method == "model/request":
            self._carry(message, params)
        elif method == "model/cancel":
            self._answer(message, {"result": {"disposition": "alreadyTerminal"}})
        elif method == APPROVAL:
            self.asked.append(message)
            self._step_if_gone(f"{params['itemId']} asked")
            if self.decides:
                self.decide(message)
                self._step_if_gone(f"{params['itemId']} answered")
        elif method == "item/started" and params["item"]["type"] == "commandExecution":
            self._step_if_gone(f"{params['item']['id']} began")
        elif method == "item/completed" and params["item"]["type"] == "commandExecution":
            self._step_if_gone(f"{params['item']['id']} completed")
        elif method == "item/completed":
            self._step_if_gone(f"{params['item']['type']} completed")
        elif method == "turn/started":
            self.running_turn = params["turn"]["id"]
        elif method == "turn/suspended":
            self._step_if_gone("turn suspended")

    def decide(self, message: Json) -> None:
        self._answer(message, {"result": {"decision": "accept"}})

    def _append(self, message: Json, params: Json) -> None:
        number, self.counts["append"] = self.counts["append"], self.counts["append"] + 1
        assert self.store is not None
        self._step_if_gone(f"append {number} arrived")
        answer = self.store.append(params)
        self._step_if_gone(f"append {number} committed")
        self._answer(message, answer)
        self._step_if_gone(f"append {number} acknowledged")

    def _carry(self, message: Json, params: Json) -> None:
        number, self.counts["request"] = self.counts["request"], self.counts["request"] + 1
        self.bodies.append(params["body"])
        accepted = {"disposition": "accepted", "provider": PROVIDER["id"], "model": "figures"}
        self._answer(message, {"result": accepted})
        self._step_if_gone(f"request {number} accepted")
        events = self._events(params["body"])
        ids = {"threadId": params["threadId"], "modelRequestId": params["modelRequestId"]}
        for seq, event in enumerate(events):
            self.server.send("model/streamEvent", {**ids, "seq": seq, "events": [event]})
            self._step_if_gone(f"request {number} event {seq}")

    def _events(self, body: Json) -> list[Json]:
        content = [{"type": "output_text", "text": ANSWER}]
        said = {"type": "message", "role": "assistant", "id": "m", "content": content}
        # A response that broke off may have brought only some of them.
        calls = [called(*call) for call in self.commands.items() if output_of(body, call[0]) is None]
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        return [
            {"type": "response.created", "response": {"id": "r"}},
            *({"type": "response.output_item.done", "item": item} for item in calls or [said]),
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        ]

    def _answer(self, message: Json, answer: Json) -> None:
        self.server.write(json.dumps({"id": message["id"], **answer}))

    # ---- threads ----

    def open(self, thread: str = "") -> Json:
        """Starts a thread, or takes up the one that is named."""
        offer = {"versions": [1], "features": FEATURES}
        capabilities = {"experimentalApi": True, "hostDelegation": offer}
        client = {"name": "figures", "title": None, "version": "0"}
        self.server.result("initialize", {"clientInfo": client, "capabilities": capabilities})
        self.server.write('{"method":"initialized"}')
        terms = {"mode": "full", "version": 1, "provider": PROVIDER, "hostEpoch": self.epoch}
        params: Json = {"delegation": terms, "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        params |= {"cwd": self.server.cwd, "rolloutOwnership": "client" if self.store else "server"}
        if thread:
            params |= {"threadId": thread, "resumeTurn": True}
            params |= {"initialItems": list(self.store.items)} if self.store else {}
        asked = self.server.send("thread/resume" if thread else "thread/start", params)
        self._step_if_gone("resuming" if thread else "starting")
        answer = self.server.answer(asked)
        if "error" in answer:
            raise Refused(str(answer["error"]))
        opened: Json = answer["result"]
        self.thread = str(opened["thread"]["id"])
        return opened

    def say(self) -> None:
        self.server.result("turn/start", {"threadId": self.thread, "input": [{"type": "text", "text": PROMPT}]})

    def live(self, thread: str = "") -> None:
        """A turn, a new one or that of the thread, until it is over or put away or somebody dies."""
        with suppress(Silence, Refused, OSError, ValueError, Stopped):
            self.open(thread)
            self._step_if_gone("resumed" if thread else "started")
            if not thread:
                self.say()
            until(self.is_over, SECONDS)


def called(call: str, command: str) -> Json:
    arguments = json.dumps({"cmd": command})
    return {"type": "function_call", "id": "f", "name": "exec_command", "call_id": call, "arguments": arguments}
