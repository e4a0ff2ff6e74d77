"""The schema of a function's arguments, and the arguments as the function takes them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_origin

from ._docstrings import read_docstring
from ._errors import ConfigError
from ._typing import JSON

# Imported where the first tool is declared: a program without any does not wait for it.
if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter, ValidationError

_TAKEN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FunctionSchema:
    """Parameters and result of a function, by its signature, annotations and docstring."""

    def __init__(
        self, fn: Callable[..., Any], *, context: type[Any], name: str, strict: bool, names: Mapping[str, Any]
    ) -> None:
        from pydantic import ConfigDict, TypeAdapter, create_model
        from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

        described = read_docstring(inspect.getdoc(fn))
        self.description = described.text
        hints = _hints(fn, name, names)
        parameters = list(inspect.signature(fn).parameters.values())
        self.takes_context = bool(parameters) and _is_context(hints.get(parameters[0].name), context)
        fields: dict[str, Any] = {}
        for parameter in parameters[1:] if self.takes_context else parameters:
            if parameter.kind not in _TAKEN:
                raise ConfigError(f"tool {name}: `{parameter}` cannot be called by name; give it a plain parameter")
            if parameter.name not in hints:
                raise ConfigError(f"tool {name}: parameter `{parameter.name}` has no annotation")
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[parameter.name] = _field(hints[parameter.name], default, described.parameters.get(parameter.name))
        self.parameters = tuple(fields)
        config = ConfigDict(extra="forbid" if strict else "ignore", arbitrary_types_allowed=False)
        try:
            self._model: type[BaseModel] = create_model(name, __config__=config, **fields)
            schema = self._model.model_json_schema()
            returns = hints.get("return", Any)
            self._returned: TypeAdapter[Any] = TypeAdapter(Any if returns is inspect.Signature.empty else returns)
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise ConfigError(f"tool {name}: {error}") from error
        schema.pop("title", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        self.input_schema: Mapping[str, JSON] = schema
        self.output_schema = _output_schema(self._returned)

    def arguments(self, given: JSON) -> dict[str, Any]:
        """The arguments as the function takes them. Raises pydantic's ValidationError."""
        model = self._model.model_validate(given if given is not None else {})
        return {name: getattr(model, name) for name in self.parameters}

    def plain(self, given: JSON) -> dict[str, JSON]:
        """The validated arguments as JSON."""
        return self._model.model_validate(given if given is not None else {}).model_dump(mode="json")

    def dump(self, value: Any) -> JSON:
        """A returned value as JSON, by its annotation."""
        return self._returned.dump_python(value, mode="json", warnings=False)


def _field(hint: Any, default: Any, description: str | None) -> Any:
    if description is None:
        return (hint, default)
    from pydantic import Field

    return (hint, Field(default, description=description))


def _hints(fn: Callable[..., Any], name: str, names: Mapping[str, Any]) -> dict[str, Any]:
    function = fn if inspect.isfunction(fn) or inspect.ismethod(fn) else type(fn).__call__
    try:
        return typing.get_type_hints(function, localns=dict(names), include_extras=True)
    except NameError as error:
        raise ConfigError(f"tool {name}: an annotation cannot be resolved: {error}") from error


def _is_context(hint: Any, context: type[Any]) -> bool:
    return hint is context or get_origin(hint) is context


def _output_schema(adapter: TypeAdapter[Any]) -> Mapping[str, JSON] | None:
    from pydantic.errors import PydanticUserError

    try:
        schema = adapter.json_schema(mode="serialization")
    except (PydanticUserError, ValueError):
        return None
    return schema or None


def complaint(tool: str, error: ValidationError) -> str:
    """The problems with the arguments, in pydantic's words."""
    lines = [f"The arguments of {tool} are not valid; call it again with these corrected:"]
    for problem in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in problem["loc"]) or "(all)"
        lines.append(f"- {place}: {problem['msg']} (got {problem['input']!r:.200})")
    return "\n".join(lines)
