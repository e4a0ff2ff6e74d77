"""Tools, files and instructions that belong together, and a script that checks what the model was shown.

Prints: The style guide has 2 rules.
"""

from collections.abc import Sequence
from typing import Any

import anyio
from oarlock import Agent, Capability, Host, Manifest, RuntimeInfo, Tool, tool
from oarlock.capabilities import Files
from oarlock.testing import Call, ScriptedModel


@tool(effects="readonly")
def count_rules(text: str) -> int:
    """Count the rules of a style guide."""
    return sum(line.startswith("- ") for line in text.splitlines())


class StyleGuide(Capability):
    """A guide in the workspace, a tool for it, and a word to the model."""

    id = "style-guide"
    requires = frozenset({"files"})

    def tools(self) -> Sequence[Tool[Any]]:
        return (count_rules,)

    def manifest(self, base: Manifest) -> Manifest:
        return base.merged(Manifest(entries={"STYLE.md": "- Short sentences.\n- Plain words.\n"}))

    def instructions(self, env: RuntimeInfo) -> str:
        return "The style guide is in STYLE.md."


agent = Agent(name="editor", capabilities=[Files(read_only=True), StyleGuide()], tool_set="replace")
model = ScriptedModel(
    Call("count_rules", {"text": "- Short sentences.\n- Plain words.\n"}),
    lambda seen: f"The style guide has {seen.last_output} rules.",
)


async def main() -> None:
    async with Host(provider=model) as host:
        task = await host.start(agent)
        assert "STYLE.md" in await task.files.list()
        print((await task.run("How many rules?", timeout=60)).unwrap())
    assert "The style guide is in STYLE.md." in model.seen[0].text
    assert {"read_file", "count_rules"} <= set(model.seen[0].tools)


anyio.run(main)
