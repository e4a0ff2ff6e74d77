"""What a user can set for the process, a thread and a turn."""

import json

from openai_codex import Sandbox
from openai_codex.types import Personality, ReasoningEffort, ReasoningSummary

from world import World, check, texts


@check("settings: instructions of both kinds reach the model")
def instructions(world: World) -> None:
    world.model.play({"text": "ok"})
    with world.codex() as codex:
        thread = codex.thread_start(base_instructions="You are a lighthouse.", developer_instructions="Blink twice.")
        thread.run("Hello.")
    body = world.asked[0].body
    developer = json.dumps([item for item in body["input"] if item.get("role") == "developer"])
    # Newer servers send the base instructions as the first developer message.
    assert body.get("instructions") == "You are a lighthouse." or "You are a lighthouse." in developer, developer
    assert "Blink twice." in developer, developer


@check("settings: model, effort and summary of a turn reach the model and stay")
def model_settings(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start(model="first-model")
        thread.run("One.", effort=ReasoningEffort.high, summary=ReasoningSummary.model_validate("concise"))
        thread.run("Two.", model="second-model")
    first, second = (request.body for request in world.asked)
    assert (first["model"], second["model"]) == ("first-model", "second-model")
    assert first["reasoning"] == second["reasoning"] == {"effort": "high", "summary": "concise"}, first["reasoning"]


@check("settings: the working directory of a thread, then of a turn")
def working_directory(world: World) -> None:
    for name in ("one", "two"):
        (world.cwd / name).mkdir()
    world.model.play({"run": "pwd"}, {"text": "."}, {"run": "pwd"}, {"text": "."})
    with world.codex() as codex:
        thread = codex.thread_start(cwd=str(world.cwd / "one"))
        results = [thread.run("Where?"), thread.run("And now?", cwd=str(world.cwd / "two"))]
    outputs = [
        item.root.aggregated_output
        for result in results
        for item in result.items
        if item.root.type == "commandExecution"
    ]
    assert [output.strip() for output in outputs] == [str(world.cwd / "one"), str(world.cwd / "two")], outputs


@check("settings: every sandbox preset is accepted by threads and turns")
def sandbox_presets(world: World) -> None:
    world.model.play(*[{"text": "ok"}] * len(Sandbox))
    with world.codex() as codex:
        for sandbox in Sandbox:
            thread = codex.thread_start(sandbox=sandbox)
            assert thread.run("Hello.", sandbox=sandbox).final_response == "ok", sandbox


@check("settings: personality, source and service name are accepted")
def small_settings(world: World) -> None:
    world.model.play({"text": "ok"})
    with world.codex() as codex:
        thread = codex.thread_start(personality=Personality.friendly, service_name="check")
        result = thread.run("Hello.", source="timer")
    assert result.final_response == "ok", result


@check("settings: a tier for one turn does not stay, that of the thread does")
def service_tier(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex() as codex:
        thread = codex.thread_start(service_tier="flex")
        thread.run("One.", turn_service_tier="priority")
        thread.run("Two.")
    # Whether a model has the tier of the turn is the server's to know.
    first, second = (request.body.get("service_tier") for request in world.asked)
    assert first in (None, "priority") and second == "flex", (first, second)


@check("settings: overrides of the process and of a thread")
def overrides(world: World) -> None:
    world.model.play({"text": "one"}, {"text": "two"})
    with world.codex(config_overrides=('model="from-the-command-line"',)) as codex:
        codex.thread_start().run("One.")
        codex.thread_start(config={"model": "from-the-thread"}).run("Two.")
    models = [request.body["model"] for request in world.asked]
    assert models == ["from-the-command-line", "from-the-thread"], models


@check("settings: instructions in AGENTS.md reach the model")
def project_instructions(world: World) -> None:
    (world.cwd / "AGENTS.md").write_text("Prefer tabs in this house.\n")
    world.model.play({"text": "ok"})
    with world.codex() as codex:
        codex.thread_start(cwd=str(world.cwd)).run("Hello.")
    assert any("Prefer tabs in this house." in text for text in texts(world.asked[0].body))


@check("models: a list with one default and efforts that can be read")
def models(world: World) -> None:
    with world.codex() as codex:
        listed, everything = codex.models().data, codex.models(include_hidden=True).data
    assert listed and len(everything) >= len(listed), (len(listed), len(everything))
    assert sum(model.is_default for model in listed) == 1, [model.id for model in listed if model.is_default]
    assert not any(model.hidden for model in listed), "a hidden model without asking"
    for model in listed:
        efforts = [option.reasoning_effort for option in model.supported_reasoning_efforts]
        assert model.default_reasoning_effort in efforts, (model.id, efforts)


@check("account: none, then an API key, then none")
def account(world: World) -> None:
    with world.codex(config_overrides=('model_provider="openai"',)) as codex:
        before = codex.account()
        codex.login_api_key("sk-check")
        during = codex.account()
        codex.logout()
        after = codex.account()
    assert before.account is None and after.account is None, (before, after)
    assert during.account is not None and during.account.root.type == "apiKey", during
