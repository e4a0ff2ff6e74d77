"""The kinds of input a turn takes."""

import base64
import json

from openai_codex import ExternalMessage, ImageInput, LocalImageInput, SkillInput, TextInput

from world import World, check, conversation, item_types

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def images(world: World) -> list[str]:
    parts = [part for item in world.asked[0].body["input"] for part in item.get("content", [])]
    return [part["image_url"] for part in parts if part["type"] == "input_image"]


@check("input: several texts make one message")
def several_texts(world: World) -> None:
    world.model.play({"text": "ok"})
    with world.codex() as codex:
        result = codex.thread_start().run([TextInput("one"), TextInput("two – zwei 二")])
    assert conversation(world.asked[0]) == ["one", "two – zwei 二"], conversation(world.asked[0])
    assert [part.root.text for part in result.items[0].root.content] == ["one", "two – zwei 二"], result.items[0]


@check("input: an image by data URL")
def image_url(world: World) -> None:
    url = "data:image/png;base64," + base64.b64encode(PIXEL).decode()
    world.model.play({"text": "a pixel"})
    with world.codex() as codex:
        codex.thread_start().run([TextInput("What is it?"), ImageInput(url)])
    assert images(world) == [url], images(world)


@check("input: an image by path")
def local_image(world: World) -> None:
    path = world.cwd / "pixel.png"
    path.write_bytes(PIXEL)
    world.model.play({"text": "a pixel"})
    with world.codex() as codex:
        codex.thread_start().run([TextInput("What is it?"), LocalImageInput(str(path))])
    assert len(images(world)) == 1 and images(world)[0].startswith("data:image/png;base64,"), images(world)


@check("input: a skill by path brings its text")
def skill(world: World) -> None:
    path = world.cwd / ".agents" / "skills" / "greet" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: greet\ndescription: How to greet.\n---\nAlways wave with both hands.\n")
    world.model.play({"text": "waving"})
    with world.codex() as codex:
        codex.thread_start(cwd=str(world.cwd)).run([TextInput("Greet."), SkillInput("greet", str(path))])
    assert "Always wave with both hands." in json.dumps(world.asked[0].body["input"])


@check("input: a message from outside arrives as a tool's output, not as the user's words")
def external_message(world: World) -> None:
    world.model.play({"text": "noted"})
    with world.codex() as codex:
        result = codex.thread_start().run(ExternalMessage("ticker", "The build is red."))
    assert result.final_response == "noted", result
    assert "functionCallOutput" in item_types(result.items), item_types(result.items)
    assert "The build is red." not in conversation(world.asked[0]), conversation(world.asked[0])
    outputs = [item for item in world.asked[0].body["input"] if item["type"].endswith("_output")]
    assert "The build is red." in json.dumps(outputs), world.asked[0].body["input"][-2:]
