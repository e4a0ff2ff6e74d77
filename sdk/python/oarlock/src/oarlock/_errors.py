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

    def __init__(
        self,
        message: str,
        *,
        code: int,
        data: Any = None,
        task_id: str | None = None,
        operation_id: str | None = None,
        retryable: bool = False,
    ) -> None:
        super().__init__(message, task_id=task_id, operation_id=operation_id, retryable=retryable)
        self.code = code
        self.data = data


class TaskNotFound(RpcError):
    """There is no task with this id."""


class SandboxUnavailable(BackendError):
    """The place of the task cannot hold the sandbox that was asked for; it is never widened."""


class ProviderError(OarlockError):
    """A model provider failed."""


class StoreError(OarlockError):
    """The host's store cannot be read or written."""


class DecisionConflict(OarlockError):
    """Somebody decided first, or what was decided about is not what waits."""

    decided: Mapping[str, Any] | None = None
    """The decision that counts, as the wire has it, where somebody decided first."""


class TaskExists(OarlockError):
    """A task with this id is there already; `if_exists="open"` opens it."""


class TaskBusy(OarlockError):
    """A turn of this task runs or waits already, or another program carries its model requests."""


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
        """As the host describes it."""


class LimitExceeded(TurnFailed):
    """`unwrap()` of a turn that failed because a budget is spent: the agent's `limits`, or one of the host's own."""


class ProviderFailed(TurnFailed, ProviderError):
    """`unwrap()` of a turn that failed because the model's provider did."""


# Of `codexErrorInfo`: what a provider does. A dictionary has one of these as its key.
_OF_PROVIDERS = frozenset(
    {
        "badRequest",
        "contextWindowExceeded",
        "httpConnectionFailed",
        "internalServerError",
        "modelNotFound",
        "rateLimitExceeded",
        "responseStreamConnectionFailed",
        "responseStreamDisconnected",
        "responseTooManyFailedAttempts",
        "serverOverloaded",
        "unauthorized",
        "usageLimitExceeded",
    }
)
# The same turn may succeed later.
_PASSING = _OF_PROVIDERS - {"badRequest", "contextWindowExceeded", "modelNotFound", "unauthorized"}
PROVIDER_FAILED = "providerFailed"
"""The `code` in the error of a turn that failed with a provider of this program."""


def turn_failed(error: Mapping[str, Any], task_id: str | None) -> TurnFailed:
    """The error that a failed turn is raised as."""
    message = str(error.get("message", "the turn failed"))
    info = error.get("codexErrorInfo")
    kind = next(iter(info), None) if isinstance(info, Mapping) else info
    if kind == "sessionBudgetExceeded":
        return LimitExceeded(message, error=error, task_id=task_id)
    if kind in _OF_PROVIDERS or error.get("code") == PROVIDER_FAILED:
        failed = ProviderFailed(message, error=error, task_id=task_id)
        failed.retryable = kind in _PASSING
        return failed
    return TurnFailed(message, error=error, task_id=task_id)


_BY_REASON: dict[str, type[OarlockError]] = {
    "alreadyDecided": DecisionConflict,
    "carrierTaken": TaskBusy,
    "decisionNotAvailable": DecisionConflict,
    "digestMismatch": DecisionConflict,
    "notWaiting": DecisionConflict,
    "placementFailed": BackendError,
    "placementInUse": BackendError,
    "placementUnreachable": BackendError,
    "runtimeMismatch": RuntimeMismatch,
    "sandboxUnavailable": SandboxUnavailable,
    "schemaTooNew": StoreError,
    "storeFailed": StoreError,
    "unknownPlacement": BackendError,
}


# Nothing was done, and the same request may succeed later.
_RETRYABLE = frozenset(
    {
        "carrierTaken",
        "hostGone",
        "ownedElsewhere",
        "ownerLost",
        "placementUnreachable",
        "runtimeGone",
        "stopping",
        "storeFailed",
    }
)
_OVERLOADED = -32001
# How a host that cannot open its store begins its last line.
_STORE_WORDS = ("the database ", "the store ", "a row of the store ")


def refused(error: Mapping[str, Any], task_id: str | None = None, operation_id: str | None = None) -> OarlockError:
    """The error that an answer of the host is raised as: by `data.code` where it has one."""
    message = str(error.get("message", "the host refused the request"))
    code, data = int(error.get("code", 0)), error.get("data")
    reason = data.get("code") if isinstance(data, Mapping) else None
    retryable = reason in _RETRYABLE or code == _OVERLOADED
    if isinstance(reason, str) and reason in _BY_REASON:
        named = _BY_REASON[reason](message, task_id=task_id, operation_id=operation_id, retryable=retryable)
        if isinstance(named, DecisionConflict) and isinstance(data, Mapping):
            first = data.get("decision")
            named.decided = first if isinstance(first, Mapping) else None
        return named
    return RpcError(message, code=code, data=data, task_id=task_id, operation_id=operation_id, retryable=retryable)


def store_error(last_words: str) -> StoreError | None:
    """Why a host ended at its start, where that was its store."""
    for line in reversed(last_words.splitlines()):
        said = line.removeprefix("oarlock: ")
        if said.startswith(_STORE_WORDS):
            return StoreError(said, retryable="cannot be reached" in said)
    return None
