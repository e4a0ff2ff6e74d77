"""Acting on a turn that is under way, and compaction."""

from concurrent.futures import ThreadPoolExecutor

from openai_codex import Codex, InvalidRequestError, Thread
from openai_codex.types import TurnStatus

from world import World, check, conversation, eventually, until_delta


@check("interrupt: ends the turn, lets go of the model, and the thread lives on")
def interrupt(world: World) -> None:
    world.model.play({"text": "never finished words", "hold": True}, {"text": "fresh"})
    with world.codex() as codex:
        thread = codex.thread_start()
        turn = thread.turn("Start.")
        stream = turn.stream()
        until_delta(stream)
        turn.interrupt()
        last = list(stream)[-1]
        assert last.method == "turn/completed" and last.payload.turn.status == TurnStatus.interrupted, last
        assert world.model.wait_until_abandoned(0, 10), "the model's connection is still open"
        assert thread.run("Again.").final_response == "fresh"


@check("interrupt: a running command does not hold the turn, nor outlive the server")
def interrupt_command(world: World) -> None:
    world.model.play({"run": "echo $$ > pid; exec sleep 600"})
    with world.codex() as codex:
        turn = codex.thread_start(cwd=str(world.cwd)).turn("Run it.")
        stream = turn.stream()
        next(
            event
            for event in stream
            if event.method == "item/started" and event.payload.item.root.type == "commandExecution"
        )
        pid = eventually(lambda: (world.cwd / "pid").exists() and (world.cwd / "pid").read_text().strip(), "it runs")
        turn.interrupt()
        assert list(stream)[-1].payload.turn.status == TurnStatus.interrupted
    eventually(lambda: not _alive(int(pid)), "the command has ended")


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@check("interrupt: a turn that is over is refused")
def interrupt_late(world: World) -> None:
    world.model.play({"text": "done"})
    with world.codex() as codex:
        turn = codex.thread_start().turn("Start.")
        turn.run()
        try:
            turn.interrupt()
        except InvalidRequestError as error:
            assert error.message
        else:
            raise AssertionError("a finished turn was interrupted")


@check("steer: more words go into the running turn")
def steer(world: World) -> None:
    world.model.play({"text": "half way", "hold": True}, {"text": "with the change"})
    with world.codex() as codex:
        turn = codex.thread_start().turn("Start.")
        stream = turn.stream()
        until_delta(stream)
        assert turn.steer("And in blue.").turn_id == turn.id
        world.model.release()
        events = list(stream)
    assert events[-1].payload.turn.status == TurnStatus.completed, events[-1]
    users = [
        event.payload.item.root.content[0].root.text
        for event in events
        if event.method == "item/completed" and event.payload.item.root.type == "userMessage"
    ]
    assert users[-1:] == ["And in blue."], users
    said = conversation(world.asked[1])
    # Newer servers do not wait for the end of the answer under way, and then it is not part of the history.
    assert said in (["Start.", "half way", "And in blue."], ["Start.", "And in blue."]), said


@check("steer: a turn that is over is refused")
def steer_late(world: World) -> None:
    world.model.play({"text": "done"})
    with world.codex() as codex:
        turn = codex.thread_start().turn("Start.")
        turn.run()
        try:
            turn.steer("Too late.")
        except InvalidRequestError as error:
            assert error.message
        else:
            raise AssertionError("a finished turn was steered")


@check("join: a turn started on a busy thread becomes part of the running one")
def join(world: World) -> None:
    world.model.play({"text": "half way", "hold": True}, {"text": "both done"})
    with world.codex() as codex:
        thread = codex.thread_start()
        first = thread.turn("Start.")
        stream = first.stream()
        until_delta(stream)
        second = thread.turn("This too.")
        assert second.id == first.id, (first.id, second.id)
        world.model.release()
        assert second.run().final_response == "both done"
        assert list(stream)[-1].method == "turn/completed"
    assert "This too." in conversation(world.asked[1]), conversation(world.asked[1])


@check("busy: the status of a thread follows its turn")
def status(world: World) -> None:
    world.model.play({"text": "half way", "hold": True})
    with world.codex() as codex:
        thread = codex.thread_start()
        stream = thread.turn("Start.").stream()
        until_delta(stream)
        assert thread.read().thread.status.root.type == "active", thread.read().thread.status
        world.model.release()
        list(stream)
        eventually(lambda: thread.read().thread.status.root.type == "idle", "the thread is idle")


@check("parallel: two threads at once keep their streams apart")
def parallel(world: World) -> None:
    world.model.play({"text": "half way", "hold": True}, {"text": "half way", "hold": True})
    with world.codex() as codex, ThreadPoolExecutor(2) as pool:
        threads = [codex.thread_start(), codex.thread_start()]
        runs = [pool.submit(thread.run, f"for {thread.id}") for thread in threads]
        eventually(lambda: len(world.asked) == 2, "both threads ask the model at once")
        world.model.release()
        results = [run.result(30) for run in runs]
    for thread, result in zip(threads, results, strict=True):
        assert result.final_response == "half way", result
        assert result.items[0].root.content[0].root.text == f"for {thread.id}", result.items[0]


@check("compact: the history becomes a summary, and the thread goes on")
def compact(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "SUMMARY OF ALL"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        thread.run("first")
        thread.compact()
        eventually(lambda: _compacted(codex, thread), "the thread is compacted")
        assert thread.run("second").final_response == "two"
    said = " ".join(conversation(world.asked[2]))
    assert "SUMMARY OF ALL" in said and "second" in said, said
    assert "one" not in conversation(world.asked[2]), said


def _compacted(codex: Codex, thread: Thread) -> bool:
    read = thread.read(include_turns=True).thread
    items = [item.root.type for turn in read.turns for item in turn.items]
    return read.status.root.type == "idle" and "contextCompaction" in items


@check("close: a client that leaves in the middle of a turn takes the server with it")
def close(world: World) -> None:
    world.model.play({"text": "half way", "hold": True}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        until_delta(thread.turn("Start.").stream())
        process = codex._client._proc
    assert process is not None
    # The client kills what has not ended of itself in two seconds, and does not wait for that.
    eventually(lambda: process.poll() is not None, "the server has ended")
    assert world.model.wait_until_abandoned(0, 10), "the model's connection is still open"
    with world.codex() as codex:
        again = codex.thread_resume(thread.id)
        assert again.run("Go on.").final_response == "two"
    assert "Start." in conversation(world.asked[1]), conversation(world.asked[1])
