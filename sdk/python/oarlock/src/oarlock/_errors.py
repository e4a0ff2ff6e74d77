"""Everything that the SDK raises by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class OarlockError(Exception):
    """The base of all errors of this package."""

    def __init__(
        self,
        message: str,
        *,
        task_id: str | None = None,
        operation_id: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message)
        self.task_id = task_id
        self.operation_id = operation_id
        self.retryable = retryable
        """Trying the same again may help."""


class ConfigError(OarlockError):
    """An agent, a tool or a host is declared in a way that cannot work."""


class RuntimeMismatch(OarlockError):
    """The program at the other end is not a host, or one of another release."""


class BackendError(OarlockError):
    """The place in which a task runs cannot be made or reached."""


class TransportClosed(OarlockError):
    """The connection to the host ended."""

    def __init__(self, message: str, *, stderr_tail: str = "", task_id: str | None = None) -> None:
        super().__init__(f"{message}\n{stderr_tail}".rstrip(), task_id=task_id, retryable=True)
        self.stderr_tail = stderr_tail
        """The last lines that an embedded host wrote."""


class ProtocolError(OarlockError):
    """The host said something that cannot be understood."""


class RpcError(OarlockError):
    """The host refused a request."""

    def __init__(self, message: str, *, code: int, data: Any = None, task_id: str | None = None) -> None:
        super().__init__(message, task_id=task_id)
        self.code = code
        self.data = data


class ProviderError(OarlockError):
    """A model provider failed."""


class LimitExceeded(OarlockError):
    """A budget of the agent is spent."""


class StoreError(OarlockError):
    """The host's store cannot be read or written."""


class DecisionConflict(OarlockError):
    """Somebody decided first, or what was decided about is not what waits."""


class TaskExists(OarlockError):
    """A task with this id is there already; `if_exists="open"` opens it."""


class TaskBusy(OarlockError):
    """A turn of this task runs or waits already."""


class ToolError(OarlockError):
    """Raised by a tool: its text is the tool's answer to the model."""


class TurnPaused(OarlockError):
    """`unwrap()` of a turn that waits for a decision."""


class TurnInterrupted(OarlockError):
    """`unwrap()` of a turn that was stopped."""


class TurnFailed(OarlockError):
    """`unwrap()` of a turn that failed."""

    def __init__(self, message: str, *, error: Mapping[str, Any], task_id: str | None = None) -> None:
        super().__init__(message, task_id=task_id)
        self.error = error


_BY_REASON: dict[str, type[OarlockError]] = {
    "alreadyDecided": DecisionConflict,
    "decisionNotAvailable": DecisionConflict,
    "digestMismatch": DecisionConflict,
    "notWaiting": DecisionConflict,
    "placementUnreachable": BackendError,
    "runtimeMismatch": RuntimeMismatch,
}


def refused(error: Mapping[str, Any], task_id: str | None = None) -> OarlockError:
    """The error that an answer of the host is raised as: by `data.code` where it has one."""
    message = str(error.get("message", "the host refused the request"))
    data = error.get("data")
    reason = data.get("code") if isinstance(data, Mapping) else None
    if isinstance(reason, str) and reason in _BY_REASON:
        return _BY_REASON[reason](message, task_id=task_id)
    return RpcError(message, code=int(error.get("code", 0)), data=data, task_id=task_id)
