"""What a client was told about one thread, and whether the record still says so."""

from dataclasses import dataclass, field
from typing import Any

from model import Plan
from report import Json


@dataclass
class Ledger:
    """Filled from everything the client heard, down to the last byte before the server died."""

    thread: str
    # In the order they were sent, answered or not.
    plans: dict[str, Plan] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    named: str | None = None
    is_archived: bool = False
    # By turn id: the plan, the items that were completed, and how the turn ended.
    turns: dict[str, "Told"] = field(default_factory=dict)

    def hear(self, heard: list[Json], sent: dict[int, tuple[str, Json]]) -> None:
        for message in heard:
            if "method" in message:
                self._notified(message["method"], message.get("params") or {})
            elif "result" in message and message.get("id") in sent:
                self._answered(*sent[message["id"]], message["result"])

    def _answered(self, method: str, params: Json, result: Json) -> None:
        if params.get("threadId") != self.thread:
            return
        if method == "turn/start":
            self.turns[result["turn"]["id"]] = Told(params["input"][0]["text"])
        elif method == "thread/name/set":
            self.named = params["name"]
        elif method == "thread/archive":
            self.is_archived = True

    def _notified(self, method: str, params: Json) -> None:
        if params.get("threadId") != self.thread:
            return
        if method == "item/completed" and params["turnId"] in self.turns:
            self.turns[params["turnId"]].items.append(essence(params["item"]))
        elif method == "turn/completed" and params["turn"]["id"] in self.turns:
            self.turns[params["turn"]["id"]].status = params["turn"]["status"]

    def problems(self, thread: Json) -> list[str]:
        """What was told and is not there, and what is there and cannot be."""
        found = {turn["id"]: turn for turn in thread["turns"]}
        order = [turn["id"] for turn in thread["turns"] if turn["id"] in self.turns]
        wrong = [] if order == list(self.turns) else [f"turns {order} instead of {list(self.turns)}"]
        for number, told in self.turns.items():
            wrong += told.missing_in(found[number]) if number in found else [f"turn {number} is lost"]
        for turn in thread["turns"]:
            wrong += self._impossible(turn)
        if thread.get("name") != self.named and thread.get("name") not in self.names:
            wrong.append(f"name {thread.get('name')!r} instead of {self.named!r}")
        if self.named and not thread.get("name"):
            wrong.append(f"the name {self.named!r} is lost")
        return wrong

    def _impossible(self, turn: Json) -> list[str]:
        """A record may be missing if nobody was told of it; it may not be there by half or twice."""
        wrong = []
        items = [essence(item) for item in turn["items"]]
        whole = [essence for plan in self.plans.values() for essence in essences(plan)]
        wrong += [f"torn or foreign item {item}"[:200] for item in items if item not in whole]
        wrong += [f"{item} is there twice"[:200] for item in items if items.count(item) > 1]
        if turn["status"] == "inProgress":
            wrong.append(f"turn {turn['id']} still runs after the restart")
        return wrong


@dataclass
class Told:
    """What was told of one turn."""

    text: str
    items: list[Any] = field(default_factory=list)
    status: str | None = None

    def missing_in(self, turn: Json) -> list[str]:
        items = [essence(item) for item in turn["items"]]
        # A disk that refuses may refuse the end of a turn, too: then the turn reads as one that was cut short, and
        # what was told as failed may be told as nothing.
        has_failed = self.status == "failed"
        told = [item for item in self.items if not (has_failed and "failed" in item)]
        wrong = [f"lost {item}"[:200] for item in [("userMessage", self.text), *told] if item not in items]
        same = {"failed", "interrupted"} if has_failed else {self.status}
        if self.status and turn["status"] not in same:
            wrong.append(f"turn {turn['id']} is {turn['status']}, told as {self.status}")
        return wrong


def essence(item: Json) -> Any:
    """What an item says, without ids and times."""
    if item["type"] == "userMessage":
        return ("userMessage", "".join(part.get("text", "") for part in item["content"]))
    if item["type"] == "agentMessage":
        return ("agentMessage", item["text"])
    if item["type"] == "dynamicToolCall":
        said = "".join(part.get("text", "") for part in item.get("contentItems") or [])
        return ("dynamicToolCall", item["id"], item["status"], said)
    return (item["type"],)


def essences(plan: Plan) -> list[Any]:
    """Every whole item a turn of this plan may leave behind."""
    call = f"call-{plan.name}"
    return [
        ("userMessage", plan.text()),
        ("agentMessage", plan.answer()),
        ("agentMessage", f"before the call of {plan.name}"),
        ("dynamicToolCall", call, "completed", plan.seen()),
        # Asked for and cut short: its outcome is unknown, and said to be.
        ("dynamicToolCall", call, "failed", ""),
        ("dynamicToolCall", call, "inProgress", ""),
    ]
