"""What the generated models are made of: how they read the wire, and how they write it back unchanged."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StrictFloat,
    StrictInt,
    TypeAdapter,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema
from typing_extensions import Self

_Known = TypeVar("_Known")

Number: TypeAlias = StrictInt | StrictFloat
"""A JSON number. Kept as it came: `1` and `1.0` are both fine, and stay what they are."""

Open: TypeAlias = _Known | str
"""One of the known strings, or one that a newer peer added."""


def camel(name: str) -> str:
    """The wire name of an attribute that does not state another."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class WireModel(BaseModel):
    """A JSON object of the wire.

    Attributes have snake_case names; both these and the wire names are accepted. Fields this version does not know are
    kept. Models are frozen: one notification may reach several listeners, and what a model holds has been validated.
    """

    model_config = ConfigDict(
        alias_generator=camel,
        defer_build=True,
        extra="allow",
        frozen=True,
        populate_by_name=True,
        protected_namespaces=(),
    )

    @classmethod
    def from_wire(cls, value: Any) -> Self:
        """Reads a decoded JSON object."""
        return cls.model_validate(value)

    def to_wire(self) -> dict[str, Any]:
        """The JSON object: what was set, under its wire name. Left out stays left out, null stays null."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class ClosedModel(WireModel):
    """An object without other fields: in a union without a tag, they are what tells its arms apart."""

    model_config = ConfigDict(extra="forbid")


class Variant(WireModel):
    """One arm of a tagged union. Its tag is always written, also when the caller left it to its default."""

    def model_post_init(self, context: Any, /) -> None:
        self.model_fields_set.update(_tags(type(self)))


class UnknownVariant(Variant):
    """An arm that this version does not know, kept as it came; its fields are in `model_extra`."""


@cache
def _tags(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(name for name, info in model.model_fields.items() if get_origin(info.annotation) is Literal)


def wire(name: str) -> Any:
    """States a wire name that `camel` would not give."""
    return Field(validation_alias=name, serialization_alias=name)


def _refuse_null(value: Any) -> Any:
    if value is None:
        raise ValueError("null is not a value of this field; leave it out")
    return value


NOT_NULL = BeforeValidator(_refuse_null)
"""For a field that may be left out (and is then `None`) but not null."""


def _wire_name(name: str, info: FieldInfo) -> str:
    return info.validation_alias if isinstance(info.validation_alias, str) else camel(name)


def _attribute(model: type[BaseModel], wire_name: str) -> str:
    return next(name for name, info in model.model_fields.items() if _wire_name(name, info) == wire_name)


def _first_model(arm: Any) -> type[BaseModel]:
    """The arm itself; of an arm that is another union, its first."""
    while not isinstance(arm, type):
        arm = get_args(arm)[0]
    return arm


class Tagged:
    """Makes a union one that is told apart by a field with a constant. Its last arm takes the unknown constants."""

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        *arms, unknown = get_args(source)
        attribute = _attribute(_first_model(arms[0]), self.tag)
        choices: dict[str | int, CoreSchema] = {
            _first_model(arm).model_fields[attribute].default: handler.generate_schema(arm) for arm in arms
        }
        known = frozenset(choices)

        def choose(value: Any) -> str | int | None:
            tag = value.get(self.tag) if isinstance(value, Mapping) else getattr(value, attribute, None)
            if not isinstance(tag, str):
                return None
            return tag if tag in known else _UNKNOWN

        return core_schema.tagged_union_schema(
            {**choices, _UNKNOWN: handler.generate_schema(unknown)},
            choose,
            custom_error_type="missing_tag",
            custom_error_message=f"Input should be an object in which `{self.tag}` is a string",
        )


class Keyed:
    """Makes a union one whose arms are strings and objects with one key, told apart by that key."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        *arms, unknown = (arm for arm in get_args(source) if isinstance(arm, type) and issubclass(arm, BaseModel))
        wire_names = {arm: _wire_name(*next(iter(arm.model_fields.items()))) for arm in arms}
        choices: dict[str | int, CoreSchema] = {key: handler.generate_schema(arm) for arm, key in wire_names.items()}
        known = frozenset(choices)

        def choose(value: Any) -> str | int | None:
            if isinstance(value, str):
                return _STRING
            if isinstance(value, Mapping):
                return next((key for key in value if key in known), _UNKNOWN)
            return wire_names.get(type(value), _UNKNOWN) if isinstance(value, BaseModel) else None

        return core_schema.tagged_union_schema(
            {**choices, _STRING: core_schema.str_schema(), _UNKNOWN: handler.generate_schema(unknown)},
            choose,
            custom_error_type="string_or_object",
            custom_error_message="Input should be a string or an object",
        )


# Keys of choices that no wire string can be equal to.
_UNKNOWN = 0
_STRING = 1

FIRST_MATCH = Field(union_mode="left_to_right")
"""For a union without a tag: the first arm that fits is the one meant."""


@cache
def _adapter(form: Any) -> TypeAdapter[Any]:
    return TypeAdapter(form)


def read(form: Any, value: Any) -> Any:
    """Reads decoded JSON as a model or as one of the union types."""
    if isinstance(form, type) and issubclass(form, WireModel):
        return form.from_wire(value)
    return _adapter(form).validate_python(value)


def write(value: Any) -> Any:
    """Decoded JSON of a payload: a model, or a string where a union allows one."""
    return value.to_wire() if isinstance(value, WireModel) else value
