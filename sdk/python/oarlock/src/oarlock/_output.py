"""Structured answers: the schema that is asked for, and the instance that comes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Generic

from ._typing import JSON, T

# Imported with the first structured answer.
if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


class OutputForm(Generic[T]):
    """The form of a structured answer. Anything but an object is wrapped in one, as providers want it."""

    def __init__(self, form: type[T]) -> None:
        from pydantic import TypeAdapter

        self._adapter: TypeAdapter[T] = TypeAdapter(form)
        schema = self._adapter.json_schema()
        self._is_wrapped = schema.get("type") != "object" and "$ref" not in schema
        if self._is_wrapped:
            definitions = schema.pop("$defs", None)
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
            if definitions is not None:
                schema["$defs"] = definitions
        self.schema: JSON = _closed(schema)

    def read(self, text: str) -> T:
        """Raises pydantic's ValidationError."""
        if not self._is_wrapped:
            return self._adapter.validate_json(_unfenced(text))
        value = json.loads(_unfenced(text)) if _is_json(text) else text
        return self._adapter.validate_python(value["value"] if isinstance(value, dict) and "value" in value else value)

    def partial(self, text: str) -> JSON:
        """The answer so far, unvalidated; nothing where that is no JSON yet."""
        from pydantic_core import from_json

        try:
            value = from_json(_unfenced(text), allow_partial=True)
        except ValueError:
            return None
        return value.get("value") if self._is_wrapped and isinstance(value, dict) else value


def _is_json(text: str) -> bool:
    try:
        json.loads(_unfenced(text))
    except ValueError:
        return False
    return True


def _unfenced(text: str) -> str:
    """Some models put their JSON into a block of code."""
    text = text.strip()
    if text.startswith("```"):
        text = text.split("\n", 1)[-1].rsplit("```", 1)[0]
    return text


def _closed(schema: Any) -> Any:
    """No object takes properties it does not name."""
    if isinstance(schema, dict):
        closed = {key: _closed(value) for key, value in schema.items()}
        if closed.get("type") == "object" and "properties" in closed:
            closed.setdefault("additionalProperties", False)
        return closed
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    return schema


def repair_request(error: ValidationError) -> str:
    """Asks the model to answer again."""
    lines = ["Your answer does not have the form that was asked for:"]
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in problem["loc"]) or "(all)"
        lines.append(f"- {place}: {problem['msg']}")
    lines.append("Answer again with the whole corrected JSON and nothing else.")
    return "\n".join(lines)
