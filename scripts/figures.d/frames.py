"""G1: whatever stands in a line, it gets the outcome that is written down for it, and the process lives.

The numbers are those of the list of hostile inputs; where that list leaves one out, a case of the same kind fills it.
"""

import json
import time
from collections.abc import Callable

from large_line import stream_line
from model import Model
from report import Json, Outcome, Run, megabytes, progress
from server import PING, Server, make_home

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
# A payload of the wrong shape: today's clients know it as an invalid request.
INVALID_PARAMS = (-32600, -32602)
SHORT = 1024


class Wrong(Exception):
    """Not the outcome that is written down."""


class Session:
    """One case: its lines, and what came back for them."""

    def __init__(self, server: Server, run: Run) -> None:
        self.server, self.run, self.since = server, run, len(server.heard)

    def send(self, *lines: str | bytes) -> None:
        for line in lines:
            self.server.write(line)

    def replies(self, count: int, seconds: float = 30) -> list[Json]:
        """What was said since the case began: so many messages, and after a ping no more."""
        server, since = self.server, self.since
        if count:
            server.wait(lambda: len(server.heard) >= since + count, f"{count} replies", seconds)
        number = server.send(PING)
        server.answer(number, seconds)
        # Answers may pass each other on the way; a late one has until here.
        server.ping()
        pings = (number, number + 1)
        found = [message for message in server.heard[since:] if message.get("id") not in pings]
        if len(found) != count:
            raise Wrong(f"{len(found)} replies instead of {count}: {found}"[:300])
        self.since = len(server.heard)
        return found

    def error(self, codes: int | tuple[int, ...], number: object, *words: str) -> Json:
        """The single reply is an error with one of these codes, this id and these words in its message."""
        [reply] = self.replies(1)
        error = reply.get("error") or {}
        allowed = codes if isinstance(codes, tuple) else (codes,)
        if error.get("code") not in allowed or reply.get("id") != number:
            raise Wrong(f"{reply} instead of an error {allowed} for {number}"[:300])
        missing = [word for word in words if word.lower() not in error["message"].lower()]
        if missing:
            raise Wrong(f"{error['message']!r} does not say {missing}"[:300])
        return reply

    def result(self, number: object) -> None:
        [reply] = self.replies(1)
        if "result" not in reply or reply.get("id") != number:
            raise Wrong(f"{reply} instead of a result for {number}"[:300])


Case = Callable[[Session], None]
CASES: dict[int, tuple[str, Case]] = {}


def case(number: int, title: str) -> Callable[[Case], Case]:
    def enter(check: Case) -> Case:
        CASES[number] = (title, check)
        return check

    return enter


def request(number: object, method: str = PING, params: object = None) -> str:
    return json.dumps({"id": number, "method": method, "params": {} if params is None else params})


@case(1, "not JSON")
def not_json(session: Session) -> None:
    session.send("{not json}")
    session.error(PARSE_ERROR, None)
    session.send('{"id":1001,"method":"thread/list","params":{"limit":}}')
    session.error(PARSE_ERROR, 1001)


@case(2, "nothing, and spaces")
def blank(session: Session) -> None:
    session.send("", "   ", "\t ", "\r")
    session.replies(0)


@case(3, "invalid UTF-8")
def not_text(session: Session) -> None:
    session.send(b'{"id":1003,"method":"thread/list","params":{"cursor":"\xff\xfe"}}')
    session.error(PARSE_ERROR, 1003)
    session.send(b"\xc3\x28\xf0\x90")
    session.error(PARSE_ERROR, None)


@case(4, "neither method, result nor error")
def no_kind(session: Session) -> None:
    session.send('{"id":1004,"params":{}}')
    session.error(INVALID_REQUEST, 1004)


@case(5, "ids that are none")
def bad_ids(session: Session) -> None:
    for number in ("null", "1.5", "9223372036854775808", '{"a":1}', "[1]", "true"):
        session.send('{"id":' + number + ',"method":"thread/start","params":{}}')
        session.error(INVALID_REQUEST, None)
    loaded = session.server.result(PING)["data"]
    if loaded:
        raise Wrong(f"a request without a usable id was carried out: {loaded}")


@case(6, "JSON that is no object")
def no_object(session: Session) -> None:
    for line in ("17", '"text"', "[]", f"[{request(1006)}]", "null"):
        session.send(line)
        session.error(INVALID_REQUEST, None)


@case(7, "unknown method")
def unknown_method(session: Session) -> None:
    session.send(request(1007, "thread/teleport"))
    session.error(INVALID_REQUEST, 1007, "thread/teleport")


@case(8, "wrong type of a field")
def wrong_type(session: Session) -> None:
    session.send(request(1008, "thread/read", {"threadId": 5}))
    session.error(INVALID_PARAMS, 1008, "threadId")
    session.send(request(1008, "turn/start", {"threadId": "x", "input": "text"}))
    session.error(INVALID_PARAMS, 1008, "input")


@case(9, "a request before `initialize`")
def too_early(session: Session) -> None:
    with Server(session.run.binary, session.server.errors.parent / "home") as server:
        early = Session(server, session.run)
        server.write(request(1009, "thread/start"))
        answer = server.answer(1009)
        if (answer.get("error") or {}).get("code") != INVALID_REQUEST:
            raise Wrong(f"{answer}"[:300])
        server.initialize()
        early.since = len(server.heard)
        early.replies(0)


@case(10, "a second `initialize`")
def initialize_again(session: Session) -> None:
    client = {"name": "figures", "title": None, "version": "0"}
    session.send(request(1010, "initialize", {"clientInfo": client}))
    session.error(INVALID_REQUEST, 1010, "Already initialized")


@case(11, "two requests with one id")
def same_id(session: Session) -> None:
    session.server.write_raw(f"{request(1011)}\n{request(1011)}\n".encode())
    for reply in session.replies(2):
        if reply.get("id") != 1011:
            raise Wrong(f"{reply}"[:300])


@case(12, "an answer nobody asked for")
def unasked(session: Session) -> None:
    session.send('{"id":987654,"result":{"decision":"accept"}}', '{"id":"x","error":{"code":1,"message":"no"}}')
    session.replies(0)


@case(13, "unknown notification")
def unknown_notification(session: Session) -> None:
    session.send('{"method":"thread/teleported","params":{"to":"mars"}}')
    session.replies(0)


@case(14, "nested 200 and 100,000 deep")
def deep(session: Session) -> None:
    for depth in (200, 100_000):
        for opening, closing in (("[", "]"), ('{"a":', "}")):
            value = opening * depth + ("1" if opening != "[" else "") + closing * depth
            session.send('{"id":1014,"method":"thread/list","params":{"cursor":' + value + "}}")
            session.error((PARSE_ERROR, *INVALID_PARAMS), 1014)


@case(15, "a key twice")
def key_twice(session: Session) -> None:
    session.send('{"id":1015,"method":"thread/loaded/list","method":"thread/start","params":{}}')
    session.error(INVALID_REQUEST, 1015)


@case(16, "64 MB of junk in one line")
def junk(session: Session) -> None:
    stream_line(session.server, b"\x00{]junk\xff", 64_000_000, b"")
    session.error((PARSE_ERROR, INVALID_REQUEST), None)


@case(17, "a line that does not end for 1 GB")
def endless(session: Session) -> None:
    server = session.server
    before = server.forget_peak()
    size = session.run.pick(1_000_000_000, 100_000_000)
    stream_line(server, b"x" * 1000, size, b'{"id":1017,"method":"thread/list","params":{"cursor":"')
    [reply] = session.replies(1)
    if "error" not in reply or reply.get("id") not in (None, 1017):
        raise Wrong(f"{reply}"[:300])
    grown = server.memory("VmHWM") - before
    if grown > (32 << 20) + 16_000_000:
        raise Wrong(f"memory grew by {megabytes(grown)}")


@case(18, "a line cut off in the middle")
def cut_off(session: Session) -> None:
    session.send(request(1018)[:-2])
    session.error(PARSE_ERROR, 1018)


@case(19, "NUL, byte-order mark, half a surrogate pair, CRLF")
def characters(session: Session) -> None:
    session.send(request(1019).encode() + b"\x00")
    session.error(PARSE_ERROR, 1019)
    session.send(b"\xef\xbb\xbf" + request(1019).encode())
    session.result(1019)
    session.send('{"id":1019,"method":"thread/list","params":{"cursor":"\\ud800"}}')
    session.error((PARSE_ERROR, *INVALID_PARAMS), 1019)
    session.send(request(1019) + "\r")
    session.result(1019)


@case(20, "numbers no integer field can hold")
def numbers(session: Session) -> None:
    for number in ("1e999", "-0", "9223372036854775808", "1.5"):
        session.send('{"id":1020,"method":"thread/list","params":{"limit":' + number + "}}")
        session.error(INVALID_PARAMS, 1020)


@case(21, "params that are no object")
def bad_params(session: Session) -> None:
    for params in ([1, 2], "text", 7):
        session.send(request(1021, "thread/read", params))
        session.error(INVALID_PARAMS, 1021, "params")


@case(22, "half a line, a pause, the rest")
def paused(session: Session) -> None:
    line = request(1022).encode() + b"\n"
    session.server.write_raw(line[:20])
    time.sleep(session.run.pick(10, 1))
    session.server.write_raw(line[20:])
    session.result(1022)


@case(23, "names of 1 MB")
def long_names(session: Session) -> None:
    long = "n" * 1_000_000
    logged = session.server.errors.stat().st_size
    for line in (request(1023, long), request(1023, "thread/list", {long: 1, "limit": "x"})):
        session.send(line)
        reply = session.error(INVALID_PARAMS, 1023)
        if reply["#bytes"] > SHORT:
            raise Wrong(f"a reply of {reply['#bytes']} bytes")
    logged = session.server.errors.stat().st_size - logged
    if logged > 4 * SHORT:
        raise Wrong(f"{logged} bytes in the log")


def measure(run: Run) -> Outcome:
    model = Model()
    home = make_home(run.folder / "home", model)
    failures = []
    server = Server(run.binary, home).initialize()
    for number, (title, check) in sorted(CASES.items()):
        progress(f"  case {number}: {title}")
        try:
            check(Session(server, run))
            server.ping()
        except Exception as error:  # noqa: BLE001
            failures.append(f"case {number} ({title}): {error}")
        if not server.is_alive():
            failures.append(f"case {number} ({title}) ended the process")
            server = Server(run.binary, home).initialize()
    code = server.stop()
    if code != 0:
        failures.append(f"at the end of input the server left with {code}")
    model.close()
    good = len(CASES) - len({failure.split(" (")[0] for failure in failures if failure.startswith("case")})
    return Outcome(f"{good}/{len(CASES)}", failures, {"cases": {n: title for n, (title, _) in sorted(CASES.items())}})
