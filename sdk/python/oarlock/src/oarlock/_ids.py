"""Ids of tasks, and a task as a list shows it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal
from uuid import UUID, uuid5

from ._records import record

if TYPE_CHECKING:
    import oarlock_protocol as protocol

# Ids that callers choose become threads by this namespace.
_NAMESPACE = UUID("6f61726c-6f63-4b20-8e1d-7461736b2069")


@record(kw_only=True)
class TaskInfo:
    """A task as a list shows it."""

    id: str
    name: str | None
    agent: str
    """Its name; empty for a task that no agent of this package started."""
    status: Literal["creating", "idle", "running", "waiting", "waitingForCarrier", "suspended", "queued", "failed"]
    pending: int
    """Calls that wait for a decision."""
    labels: Mapping[str, str]
    updated_at: datetime


def thread_of(task_id: str) -> str:
    """The thread of a task. A UUID is itself; any other id always becomes the same one."""
    try:
        return str(UUID(task_id))
    except ValueError:
        return str(uuid5(_NAMESPACE, task_id))


def task_id_of(thread_id: str, name: str | None) -> str:
    """The id that the caller chose, where the task carries it as its name."""
    return name if name is not None and thread_of(name) == thread_id else thread_id


def info_of(row: protocol.Task) -> TaskInfo:
    return TaskInfo(
        id=task_id_of(row.id, row.name),
        name=row.name,
        agent=row.agent or "",
        status=row.state,  # type: ignore[arg-type]  # A newer host may have more words.
        pending=row.waiting_operations,
        labels=row.labels,
        updated_at=datetime.fromtimestamp(row.updated_at_ms / 1000, UTC),
    )
