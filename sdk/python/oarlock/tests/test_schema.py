"""Tools as declared: schema, arguments, docstrings. No binary."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from oarlock import ConfigError, FunctionTool, ToolContext, tool
from oarlock._docstrings import read_docstring

GOOGLE = """Refund part of an order.

It is paid at once.

Args:
    order (str): public order number,
        as printed
    cents: amount in cents

Returns:
    nothing of note
"""
NUMPY = """Refund part of an order.

It is paid at once.

Parameters
----------
order : str
    public order number,
    as printed
cents : int
    amount in cents

Returns
-------
str
    nothing of note
"""
SPHINX = """Refund part of an order.

It is paid at once.

:param str order: public order number,
    as printed
:param cents: amount in cents
:returns: nothing of note
"""


@pytest.mark.parametrize("doc", [GOOGLE, NUMPY, SPHINX])
def test_docstrings_of_the_usual_styles(doc: str) -> None:
    read = read_docstring(doc)
    assert read.text == "Refund part of an order.\n\nIt is paid at once."
    assert read.parameters == {"order": "public order number, as printed", "cents": "amount in cents"}


class Line(BaseModel):
    sku: str
    count: int = 1


@tool(effects="idempotent")
def ship(
    ctx: ToolContext[int],
    lines: list[Line],
    how: Literal["air", "sea"] = "sea",
    note: Annotated[str | None, Field(max_length=5)] = None,
) -> dict[str, int]:
    """Ship lines.

    Args:
        lines: what to ship
    """
    return {line.sku: line.count for line in lines}


def test_the_schema_comes_from_the_signature() -> None:
    assert (ship.name, ship.description, ship.effects) == ("ship", "Ship lines.", "idempotent")
    properties = ship.input_schema["properties"]
    assert list(properties) == ["lines", "how", "note"]
    assert properties["lines"]["description"] == "what to ship"
    assert properties["how"] == {"default": "sea", "enum": ["air", "sea"], "type": "string"}
    assert ship.input_schema["required"] == ["lines"]
    assert ship.input_schema["additionalProperties"] is False
    assert ship.output_schema == {"additionalProperties": {"type": "integer"}, "type": "object"}
    assert ship.schema.takes_context


def test_arguments_are_what_the_function_takes() -> None:
    given = ship.schema.arguments({"lines": [{"sku": "a"}]})
    assert given == {"lines": [Line(sku="a")], "how": "sea", "note": None}
    wrongs: list[object] = [{}, {"lines": [{}]}, {"lines": [], "how": "rail"}, {"lines": [], "more": 1}, "text"]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            ship.schema.arguments(wrong)


def test_a_tool_is_still_a_function() -> None:
    @tool
    def double(n: int) -> int:
        """Twice."""
        return n + n

    assert double(4) == 8
    assert double.effects == "once"


def test_annotations_may_be_local() -> None:
    class Here(BaseModel):
        x: int

    @tool
    def take(here: Here) -> int:
        """Takes."""
        return here.x

    assert take.schema.arguments({"here": {"x": 1}}) == {"here": Here(x=1)}


def test_a_class_with_state_is_a_tool() -> None:
    class CountWords(FunctionTool[object, ..., int]):
        """Counts."""

        def __init__(self) -> None:
            super().__init__(effects="readonly")
            self.calls = 0

        def run(self, text: str) -> int:
            """Counts words."""
            self.calls += 1
            return len(text.split())

    counter = CountWords()
    assert (counter.name, counter.description) == ("count_words", "Counts words.")
    assert counter("a b") == 2
    assert counter.calls == 1


def test_what_cannot_be_a_tool_says_so() -> None:
    with pytest.raises(ConfigError, match="has no annotation"):

        @tool
        def unannotated(x) -> None:  # type: ignore[no-untyped-def]
            """No."""

    with pytest.raises(ConfigError, match="cannot be called by name"):

        @tool
        def starred(*x: int) -> None:
            """No."""

    with pytest.raises(ConfigError, match="1 to 64 letters"):

        @tool(name="a tool")
        def spaced() -> None:
            """No."""


def test_the_digest_is_of_the_declaration() -> None:
    def declared(description: str) -> FunctionTool[object, [int], int]:
        def same(n: int) -> int:
            return n

        same.__doc__ = description
        return tool(same)

    assert declared("a").schema_digest() == declared("b").schema_digest()
    assert ship.schema_digest() != declared("a").schema_digest()
