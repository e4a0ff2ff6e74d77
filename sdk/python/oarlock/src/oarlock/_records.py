"""Frozen dataclasses that are quick to define and to make: a program waits for all of ours before its first turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import Any, TypeVar

from typing_extensions import dataclass_transform

_Record = TypeVar("_Record")
_assign = object.__setattr__


class _Factory:
    """Of a field whose default is made anew each time; shown as dataclasses show it."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET: Any = _Factory()


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, kw_only: bool = False) -> Callable[[type[_Record]], type[_Record]]:
    """As `@dataclass(frozen=True, slots=True)`, but `__init__` is compiled when the first one is made: most programs
    use a few of our classes and load all of them. The rest is shared."""

    def make(cls: type[_Record]) -> type[_Record]:
        for name, method in _METHODS.items():
            if name not in vars(cls):
                setattr(cls, name, method)
        # Else dataclasses write a signature for it, with all that `inspect` needs.
        cls.__doc__ = cls.__doc__ or cls.__name__
        made = dataclass(cls, slots=True, kw_only=kw_only, init=False, repr=False, eq=False)
        setattr(made, "__init__", _first_init(made))  # noqa: B010
        return made

    return make


def _first_init(cls: type[Any]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init = _compiled_init(cls)
        setattr(cls, "__init__", init)  # noqa: B010
        init(self, *args, **kwargs)

    return __init__


def _compiled_init(cls: type[Any]) -> Callable[..., None]:
    names: dict[str, Any] = {"_unset": _UNSET}
    positional: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for each in fields(cls):
        name = each.name
        (keywords if each.kw_only else positional).append(_parameter(each, names))
        # The slot itself: the way of the class looks for a value first.
        names[f"_set_{name}"] = getattr(cls, name).__set__
        value = f"_make_{name}() if {name} is _unset else {name}" if f"_make_{name}" in names else name
        body.append(f"    _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("    self.__post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n" + "\n".join(body or ["    pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


def _parameter(each: Field[Any], names: dict[str, Any]) -> str:
    """As written in the head of `__init__`; its default goes into `names`."""
    if each.default_factory is not MISSING:
        names[f"_make_{each.name}"] = each.default_factory
        return f"{each.name}=_unset"
    if each.default is not MISSING:
        names[f"_default_{each.name}"] = each.default
        return f"{each.name}=_default_{each.name}"
    return each.name


class _Signature:
    """What `inspect.signature` and notebooks show of a class whose `__init__` is not compiled yet."""

    def __get__(self, _: Any, cls: type[Any]) -> Any:
        from inspect import signature

        whole = signature(_compiled_init(cls))
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__dataclass_fields__])


def _repr(self: Any) -> str:
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
    return f"{type(self).__qualname__}({shown})"


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _set(self: Any, name: str, value: Any) -> None:
    # Once, for classes that programs derive and whose `__init__` has something to add.
    if hasattr(self, name):
        raise FrozenInstanceError(f"cannot assign to field {name!r}")
    _assign(self, name, value)


def _delete(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _set_state(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        _assign(self, name, value)


_METHODS = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _set,
    "__delattr__": _delete,
    # To be copied and pickled.
    "__getstate__": _values,
    "__setstate__": _set_state,
    "__signature__": _Signature(),
}
