"""What a row of a method table is."""

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from ._base import read

_Params = TypeVar("_Params")
_Response = TypeVar("_Response")

Direction: TypeAlias = Literal["clientRequest", "serverRequest", "serverNotification", "clientNotification"]
"""Who speaks, and whether an answer is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationMethod(Generic[_Params]):
    """A method without an answer."""

    method: str
    params: type[_Params] | None
    """The params' model or union type; `None` for a method without params."""
    experimental: bool
    """Needs the experimental capability."""
    doc: str

    def read_params(self, value: Any) -> _Params:
        """Reads the params of a message. A method without params has `None`, whatever was sent."""
        return cast(_Params, None if self.params is None else read(self.params, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMethod(NotificationMethod[_Params], Generic[_Params, _Response]):
    """A method with an answer."""

    response: type[_Response]
    """The answer's model or union type."""

    def read_response(self, value: Any) -> _Response:
        """Reads the result of an answer."""
        return cast(_Response, read(self.response, value))


def form(union: Any) -> Any:
    """A union type as a row's payload. Type checkers take only classes where a `type[...]` is asked for."""
    return union
