"""The client's lower face: what only hosts of their own need."""

from typing import Any

from openai_codex import JsonRpcError
from openai_codex.generated.v2_all import ThreadGoalStatus, ThreadReadResponse

from world import World, check


def started(client: Any, world: World, **params: Any) -> str:
    return client.thread_start({"cwd": str(world.cwd), **params}).thread.id


@check("approval: a command waits for the host, runs when accepted, and not when declined")
def approval(world: World) -> None:
    asked: list[tuple[str, Any]] = []

    def handler(method: str, params: Any) -> Any:
        asked.append((method, params))
        return {"decision": "accept" if "yes" in params["command"] else "decline"}

    world.model.play({"run": "touch yes.txt"}, {"text": "."}, {"run": "touch no.txt"}, {"text": "."})
    with world.low_level(handler) as client:
        thread = started(client, world, approvalPolicy="untrusted", approvalsReviewer="user")
        for words in ("Do it.", "Again."):
            turn = client.turn_start(thread, words)
            client.wait_for_turn_completed(turn.turn.id)
    assert [method for method, _ in asked] == ["item/commandExecution/requestApproval"] * 2, asked
    params = asked[0][1]
    assert params["threadId"] == thread and isinstance(params["startedAtMs"], int) and params["itemId"], params
    assert (world.cwd / "yes.txt").exists() and not (world.cwd / "no.txt").exists()


@check("approval: a patch waits for the host")
def patch_approval(world: World) -> None:
    asked: list[tuple[str, Any]] = []

    def handler(method: str, params: Any) -> Any:
        asked.append((method, params))
        return {"decision": "accept"}

    text = "*** Begin Patch\n*** Add File: new.txt\n+fresh\n*** End Patch"
    world.model.play({"run": f"apply_patch <<'EOF'\n{text}\nEOF"}, {"text": "patched"})
    with world.low_level(handler) as client:
        thread = started(client, world, approvalPolicy="untrusted", approvalsReviewer="user")
        turn = client.turn_start(thread, "Patch it.")
        client.wait_for_turn_completed(turn.turn.id)
    assert [method for method, _ in asked] == ["item/fileChange/requestApproval"], asked
    assert isinstance(asked[0][1]["startedAtMs"], int), asked
    assert (world.cwd / "new.txt").read_text() == "fresh\n"


@check("stream_text: only the pieces of the answer")
def stream_text(world: World) -> None:
    world.model.play({"text": "a few words"})
    with world.low_level() as client:
        pieces = [delta.delta for delta in client.stream_text(started(client, world), "Hello.")]
    assert "".join(pieces) == "a few words" and len(pieces) > 1, pieces


@check("goal: the server works on it by itself until the model calls it done")
def goal(world: World) -> None:
    world.model.play(
        {"text": "first words"}, {"call": "update_goal", "arguments": {"status": "complete"}}, {"text": "reached"}
    )
    with world.low_level() as client:
        thread = started(client, world)
        client.wait_for_turn_completed(client.turn_start(thread, "Hello.").turn.id)
        state, turn_id = client.start_goal_operation(thread, "Reach the shore.")
        methods = []
        while not state.is_finished():
            methods.append(client.next_goal_notification(state).method)
        assert turn_id and state.status == ThreadGoalStatus.complete, (turn_id, state.status)
        assert "thread/goal/updated" in methods and "turn/started" in methods, methods
        client.thread_goal_clear(thread)


@check("error: an unknown method and bad params are refused, and the connection lives")
def bad_requests(world: World) -> None:
    with world.low_level() as client:
        for method, params in (("no/such/method", {}), ("thread/read", {"threadId": 5}), ("turn/start", {})):
            try:
                client.request(method, params, response_model=ThreadReadResponse)
            except JsonRpcError as error:
                assert error.code in (-32600, -32601, -32602) and error.message, (method, error)
            else:
                raise AssertionError(f"{method} with {params} was accepted")
        assert started(client, world)
