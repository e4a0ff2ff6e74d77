"""Starting, running and streaming turns."""

import json

from openai_codex import ApprovalMode
from openai_codex.models import UnknownNotification
from openai_codex.types import TurnStatus

from world import World, check, conversation, item_types


@check("start: the server names itself and a version")
def start(world: World) -> None:
    with world.codex() as codex:
        info = codex.metadata.serverInfo
        assert info is not None and info.name and info.version, codex.metadata
        assert codex.metadata.userAgent, codex.metadata
        assert codex.metadata.platformFamily and codex.metadata.platformOs, codex.metadata


@check("run: answer, items, usage and times of a turn")
def run(world: World) -> None:
    world.model.play({"text": "Hello from the model."})
    with world.codex() as codex:
        result = codex.thread_start().run("Say hello.")
    assert result.final_response == "Hello from the model.", result
    assert result.status == TurnStatus.completed and result.error is None, result
    assert item_types(result.items) == ["userMessage", "agentMessage"], result.items
    assert result.usage is not None, "no token usage"
    assert result.usage.last.input_tokens == 100 and result.usage.last.cached_input_tokens == 10, result.usage
    assert result.usage.last.output_tokens == 20 and result.usage.last.reasoning_output_tokens == 5, result.usage
    assert result.usage.total.total_tokens == 120, result.usage
    assert result.started_at and result.completed_at and result.completed_at >= result.started_at, result
    assert result.duration_ms is not None and result.duration_ms >= 0, result
    assert conversation(world.asked[0]) == ["Say hello."], conversation(world.asked[0])


@check("run: a second turn carries the first and adds up the usage")
def second_turn(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start()
        first, second = thread.run("first"), thread.run("second")
    assert first.id != second.id
    assert conversation(world.asked[1]) == ["first", "one", "second"], conversation(world.asked[1])
    assert second.usage is not None and second.usage.total.total_tokens == 240, second.usage


@check("stream: events are typed, in order, and the pieces make the text")
def stream(world: World) -> None:
    world.model.play({"text": "a few words in pieces"})
    with world.codex() as codex:
        turn = codex.thread_start().turn("Stream it.")
        events = list(turn.stream())
    unknown = [event.method for event in events if isinstance(event.payload, UnknownNotification)]
    assert not unknown, f"not readable as the client's types: {unknown}"
    methods = [event.method for event in events]
    assert methods[0] == "turn/started" and methods[-1] == "turn/completed", methods
    pieces = [event.payload.delta for event in events if event.method == "item/agentMessage/delta"]
    assert len(pieces) > 1 and "".join(pieces) == "a few words in pieces", pieces
    kinds = [
        (event.method, event.payload.item.root.type)
        for event in events
        if event.method.startswith("item/") and hasattr(event.payload, "item")
    ]
    assert kinds == [
        (f"item/{state}", item) for item in ("userMessage", "agentMessage") for state in ("started", "completed")
    ], kinds
    assert "thread/tokenUsage/updated" in methods, methods


@check("reasoning: a summary becomes an item")
def reasoning(world: World) -> None:
    world.model.play({"reasoning": "Because it is asked.", "text": "done"})
    with world.codex() as codex:
        result = codex.thread_start().run("Think.")
    assert item_types(result.items) == ["userMessage", "reasoning", "agentMessage"], result.items
    assert result.items[1].root.summary == ["Because it is asked."], result.items[1]


@check("command: runs in the workspace and its output reaches the model")
def command(world: World) -> None:
    world.model.play({"run": "pwd; echo made > made.txt"}, {"text": "done"})
    with world.codex() as codex:
        result = codex.thread_start(approval_mode=ApprovalMode.deny_all).run("Run it.")
    item = next(item.root for item in result.items if item.root.type == "commandExecution")
    assert item.exit_code == 0 and item.status.value == "completed", item
    assert str(world.cwd) in (item.aggregated_output or ""), item
    assert (world.cwd / "made.txt").read_text() == "made\n"
    assert str(world.cwd) in json.dumps(world.asked[1].body["input"][-1]), world.asked[1].body["input"][-1]


@check("command: a failing one is reported and the turn goes on")
def failing_command(world: World) -> None:
    world.model.play({"run": "echo oops >&2; exit 3"}, {"text": "it failed"})
    with world.codex() as codex:
        result = codex.thread_start().run("Run it.")
    item = next(item.root for item in result.items if item.root.type == "commandExecution")
    assert item.exit_code == 3 and item.status.value == "failed", item
    assert result.final_response == "it failed", result


@check("patch: a file change item with its diff")
def patch(world: World) -> None:
    text = "*** Begin Patch\n*** Add File: new.txt\n+fresh\n*** End Patch"
    world.model.play({"run": f"apply_patch <<'EOF'\n{text}\nEOF"}, {"text": "patched"})
    with world.codex() as codex:
        turn = codex.thread_start().turn("Patch it.")
        events = list(turn.stream())
    assert (world.cwd / "new.txt").read_text() == "fresh\n"
    items = [event.payload.item.root for event in events if event.method == "item/completed"]
    change = next((item for item in items if item.type == "fileChange"), None)
    assert change is not None, [item.type for item in items]
    assert change.status.value == "completed" and change.changes[0].kind.root.type == "add", change
    assert change.changes[0].path.endswith("new.txt") and "fresh" in change.changes[0].diff, change
    assert any(event.method == "turn/diff/updated" for event in events), "no diff of the turn"


@check("plan: an update reaches the stream")
def plan(world: World) -> None:
    steps = [{"step": "look", "status": "completed"}, {"step": "leap", "status": "in_progress"}]
    world.model.play({"call": "update_plan", "arguments": {"plan": steps}}, {"text": "planned"})
    # Newer servers offer this tool only when told to.
    with world.codex(config_overrides=("tools.update_plan.enabled=true",)) as codex:
        events = list(codex.thread_start().turn("Plan.").stream())
    update = next(event.payload for event in events if event.method == "turn/plan/updated")
    assert [(step.step, step.status.value) for step in update.plan] == [("look", "completed"), ("leap", "inProgress")]


@check("structured output: the schema reaches the model and the answer is whole")
def structured_output(world: World) -> None:
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    world.model.play({"text": '{"n": 7}'}, {"text": "free again"})
    with world.codex() as codex:
        thread = codex.thread_start()
        result = thread.run("A number.", output_schema=schema)
        thread.run("Anything.")
    assert json.loads(result.final_response or "") == {"n": 7}, result
    sent = world.asked[0].body["text"]["format"]
    assert sent["type"] == "json_schema" and sent["schema"] == schema and sent["strict"] is True, sent
    assert "format" not in (world.asked[1].body.get("text") or {}), "the schema outlives its turn"


@check("error: a refusal by the model fails the turn, and the thread lives on")
def model_error(world: World) -> None:
    world.model.play({"fail": 400, "message": "this model says no"}, {"text": "better"})
    with world.codex() as codex:
        thread = codex.thread_start()
        try:
            thread.run("Fail.")
        except RuntimeError as error:
            assert "this model says no" in str(error), error
        else:
            raise AssertionError("the failed turn was reported as good")
        assert thread.run("Again.").final_response == "better"


@check("error: an error event precedes the end of a failed turn")
def error_event(world: World) -> None:
    world.model.play({"fail": 400, "message": "this model says no"})
    with world.codex() as codex:
        events = list(codex.thread_start().turn("Fail.").stream())
    error = next(event.payload for event in events if event.method == "error")
    assert error.will_retry is False and "says no" in error.error.message, error
    assert events[-1].payload.turn.status == TurnStatus.failed, events[-1]
    assert events[-1].payload.turn.error is not None, events[-1]
