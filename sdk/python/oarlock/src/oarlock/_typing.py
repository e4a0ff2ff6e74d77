"""Names that the types of several modules share."""

from __future__ import annotations

from typing import Any, Literal, ParamSpec, TypeAlias

from typing_extensions import TypeVar

JSON: TypeAlias = Any
Effects: TypeAlias = Literal["readonly", "idempotent", "once"]
"""Whether a tool may run again after a crash. `once` may not; `idempotent` may with the same operation id."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
D = TypeVar("D")
D_co = TypeVar("D_co", covariant=True)
D_contra = TypeVar("D_contra", contravariant=True, default=object)
DF = TypeVar("DF", contravariant=True)
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
