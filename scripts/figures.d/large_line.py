"""G2: a line far over the limit is thrown away as it comes, and answered once."""

from model import Model
from report import Outcome, Run, megabytes, progress
from server import Server, make_home

# The longest line a server takes unless told otherwise.
LIMIT = 32 << 20
SLACK = 16_000_000
PIECE = 1 << 20


def stream_line(server: Server, junk: bytes, size: int, head: bytes) -> None:
    """Writes one line of so many bytes without ever holding it."""
    piece = (junk * (PIECE // len(junk) + 1))[:PIECE]
    server.write_raw(head)
    left = size - len(head)
    while left > 0:
        server.write_raw(piece[:left])
        left -= len(piece)
    server.write_raw(b"\n")


def measure(run: Run) -> Outcome:
    size = run.pick(1_000_000_000, 200_000_000)
    model = Model()
    failures = []
    with Server(run.binary, make_home(run.folder / "home", model)) as server:
        server.initialize()
        server.ping()
        baseline = server.forget_peak()
        since = len(server.heard)
        progress(f"  {megabytes(size)} in one line; {megabytes(baseline)} in use before")
        stream_line(server, b"x" * 999 + b'"', size, b'{"id":77,"method":"thread/list","params":{"cursor":"')
        server.wait(lambda: len(server.heard) > since, "a reply to the long line", 120)
        server.ping()
        server.ping()
        replies = [message for message in server.heard[since:] if "result" not in message]
        peak = server.memory("VmHWM") - baseline
        after = server.memory("VmRSS") - baseline
        if len(replies) != 1 or "error" not in replies[0] or replies[0].get("id") not in (None, 77):
            failures.append(f"replies instead of one error: {replies}"[:300])
        if peak > LIMIT + SLACK:
            failures.append(f"peak +{megabytes(peak)} is over {megabytes(LIMIT + SLACK)}")
    model.close()
    details = {"baseline": baseline, "peak": peak, "after": after, "bytes": size}
    return Outcome(f"{megabytes(size)}: peak +{megabytes(peak)}, {len(replies)} error", failures, details)
