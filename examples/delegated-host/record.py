"""The record of a thread in a file, who may write to it, and the answers of the model that were paid for."""

import fcntl
import json
import os
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class Refused(Exception):
    """The other side answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.error = error


def error(message: str, number: int = -32602, **data: Any) -> Json:
    return {"code": number, "message": message, "data": data}


class Record:
    """One item of the thread per line, and beside it the number of the host that may write: the highest."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = path.open("a+b")
        self.epochs = path.with_name(path.name + ".epoch").open("a+b")
        fcntl.flock(self.file, fcntl.LOCK_EX)
        self.epoch = self.newest_epoch() + 1
        self.epochs.write(b"%d\n" % self.epoch)
        self.commit(self.epochs)
        self.file.seek(0)
        data = self.file.read()
        # A line that was cut off in the middle was never acknowledged.
        whole = data[: data.rfind(b"\n") + 1]
        self.file.truncate(len(whole))
        self.items: list[Json] = [json.loads(line) for line in whole.splitlines()]
        fcntl.flock(self.file, fcntl.LOCK_UN)

    def newest_epoch(self) -> int:
        self.epochs.seek(0)
        return max((int(line) for line in self.epochs.read().split()), default=0)

    def commit(self, file: Any) -> None:
        file.flush()
        os.fsync(file.fileno())

    def append(self, params: Json) -> Json:
        """Answers when the items are on the disk, and refuses whoever is not up to date."""
        fcntl.flock(self.file, fcntl.LOCK_EX)
        try:
            if params["hostEpoch"] != self.epoch or self.newest_epoch() != self.epoch:
                raise Refused(error("a newer host keeps this record", code="fenced"))
            if params["fromOrdinal"] != self.next:
                raise Refused(error("not the next item", code="ordinalConflict", nextOrdinal=self.next))
            lines = [json.dumps(item, separators=(",", ":")) + "\n" for item in params["items"]]
            self.file.write("".join(lines).encode())
            self.commit(self.file)
            self.items += params["items"]
        finally:
            fcntl.flock(self.file, fcntl.LOCK_UN)
        return {"nextOrdinal": self.next}

    @property
    def next(self) -> int:
        return int(self.items[-1]["ordinal"]) + 1 if self.items else 0

    def thread(self) -> str | None:
        return next((item["meta"]["threadId"] for item in self.items if item["kind"] == "sessionMeta"), None)

    def unfinished(self) -> bool:
        """Whether the last turn has no end."""
        kinds = [item["kind"] for item in self.items if item["kind"] in ("turnStarted", "turnEnded")]
        return kinds[-1:] == ["turnStarted"]


class Answers:
    """Whole answers of the model, one per line. The same request again, after a crash, is answered from here."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("a+b")
        self.file.seek(0)
        self.kept: dict[tuple[str, str], list[Json]] = {}
        for line in self.file.read().splitlines():
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # Cut off in the middle, so it was not whole.
            self.kept[answer["segmentId"], answer["requestDigest"]] = answer["events"]

    def find(self, request: Json) -> list[Json] | None:
        """Only for the very same prompt: another one is another request, whatever it is called."""
        return self.kept.get((request["segmentId"], request["requestDigest"]))

    def keep(self, request: Json, events: list[Json]) -> None:
        self.kept[request["segmentId"], request["requestDigest"]] = events
        answer = {"segmentId": request["segmentId"], "requestDigest": request["requestDigest"], "events": events}
        self.file.write(b"\n" + json.dumps(answer, separators=(",", ":")).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())
