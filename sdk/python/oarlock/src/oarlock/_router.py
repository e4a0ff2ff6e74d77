"""The tasks that this process follows, and where a message of the host belongs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import oarlock_protocol as protocol

from ._connection import Connection
from ._errors import OarlockError, TaskBusy, TransportClosed
from ._events import AgentFinished, AgentSpawned
from ._follow import TaskFollower
from ._records import record
from ._session import Listeners

if TYPE_CHECKING:
    from ._host import Host

log = logging.getLogger("oarlock")

_APPROVALS = {
    "item/commandExecution/requestApproval",
    "item/fileChange/requestApproval",
    "item/tool/requestApproval",
}
# How often and how long a task that another connection carries is asked for again.
_CARRIER_PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
# Threads whose tokens are remembered before it is known whose children they are.
_MAX_UNCLAIMED = 64


@record()
class _Child:
    """A child agent of a followed task."""

    root: str
    path: tuple[str, ...]


class TaskRouter:
    """One per open host."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.followers: dict[str, TaskFollower] = {}
        self._children: dict[str, _Child] = {}
        self._unclaimed: dict[str, Mapping[str, Any]] = {}
        self.task_listeners: list[Callable[[], None]] = []
        """Called when any task of the host changed, or waits for something."""

    def listeners(self) -> Listeners:
        return Listeners(
            on_notification=self._on_notification,
            on_deltas=self._on_deltas,
            on_request=self._on_request,
            on_reconnected=self._on_reconnected,
            on_gone=self.close,
        )

    def close(self, error: OarlockError) -> None:
        for follower in self.followers.values():
            follower.close(error)

    def forget(self, follower: TaskFollower) -> None:
        if self.followers.get(follower.thread_id) is follower:
            del self.followers[follower.thread_id]

    def _on_reconnected(self) -> None:
        for follower in list(self.followers.values()):
            self._host._spawn(self._resubscribe, follower)

    async def _resubscribe(self, follower: TaskFollower) -> None:
        for pause in (*_CARRIER_PAUSES, None):
            try:
                await self._host._resume(follower)
                return
            except TaskBusy as error:
                # The host may not know yet that the connection before this one is gone.
                if pause is None:
                    follower.close(error)
                    return
                await anyio.sleep(pause)
            except OarlockError as error:
                return follower.close(error)

    def _on_notification(self, method: str, params: Any) -> None:
        if not isinstance(params, dict):
            return
        if method in ("operation/updated", "task/updated"):
            if method == "operation/updated":
                self._on_operation(params)
            for listener in self.task_listeners:
                listener()
            return
        thread_id = params.get("threadId")
        if not isinstance(thread_id, str):
            return
        if method == "item/completed":
            self._on_item(thread_id, params.get("item"))
        follower = self.followers.get(thread_id)
        if follower is not None:
            follower.take(method, params)
        elif method == "thread/tokenUsage/updated":
            self._on_usage(thread_id, params)
        elif method == "turn/completed" and (child := self._children.get(thread_id)) is not None:
            self._on_child(AgentFinished, thread_id, child)

    def _on_deltas(self, method: str, found: Sequence[Mapping[str, Any]]) -> None:
        """Of a child, nobody reads along."""
        if (follower := self.followers.get(found[0]["threadId"])) is not None:
            follower.take_deltas(method, found)

    def _on_usage(self, thread_id: str, params: Mapping[str, Any]) -> None:
        """Of a child; of one that its parent's item has not named yet, the last is kept until it does."""
        child = self._children.get(thread_id)
        if child is None:
            if len(self._unclaimed) >= _MAX_UNCLAIMED:
                self._unclaimed.pop(next(iter(self._unclaimed)))
            self._unclaimed[thread_id] = params
        elif (follower := self.followers.get(child.root)) is not None:
            follower.take_usage(child.path, params)

    def _on_operation(self, params: Mapping[str, Any]) -> None:
        try:
            notification = protocol.OperationUpdatedNotification.from_wire(params)
        except ValueError as error:
            log.warning("an operation cannot be read: %s", error)
            return
        operation = notification.operation
        if operation.thread_id != operation.task_id:
            self._learn(operation.thread_id, _Child(operation.task_id, tuple(operation.agent_path)))
        follower = self.followers.get(operation.task_id)
        if follower is not None:
            follower.take_operation(notification)

    def _on_item(self, parent: str, item: Any) -> None:
        """A child of a followed task that was just started."""
        if not isinstance(item, Mapping) or item.get("tool") != "spawnAgent":
            return
        for thread_id in item.get("receiverThreadIds") or ():
            known = self._children.get(parent)
            path = known.path if known is not None else ("root",)
            child = _Child(self._root_of(parent), (*path, str(thread_id)))
            if (follower := self.followers.get(child.root)) is not None:
                follower.usage.starts_at_zero(child.path)
            self._learn(str(thread_id), child)

    def _learn(self, thread_id: str, child: _Child) -> None:
        """Calls of a child are judged and answered by the agent of its root."""
        if thread_id not in self._children and child.root in self.followers:
            self._children[thread_id] = child
            self._on_child(AgentSpawned, thread_id, child)
            if (counted := self._unclaimed.pop(thread_id, None)) is not None:
                self._on_usage(thread_id, counted)

    def _on_child(self, event: type[AgentSpawned] | type[AgentFinished], thread_id: str, child: _Child) -> None:
        follower = self.followers.get(child.root)
        if follower is not None:
            follower.emit(event(seq=follower.seq, path=child.path, thread_id=thread_id))

    def _root_of(self, thread_id: str) -> str:
        child = self._children.get(thread_id)
        return child.root if child is not None else thread_id

    def _on_request(self, connection: Connection, request_id: Any, method: str, params: Any) -> None:
        if method == "item/tool/call":
            self._host._spawn(self._answer_call, connection, request_id, params)
        elif method in ("model/request", "model/cancel"):
            session = self._host._opened()
            if session.carrier is not None and isinstance(params, Mapping):
                session.carrier.take(session.spawn, connection, request_id, method, params)
        elif method in _APPROVALS:
            # Decided by `operation/decide`, here or elsewhere, so that the record says by whom and nothing is lost.
            self._host._spawn(_answer, connection, request_id, {"decision": "defer"})
            operation_id = params.get("operationId") if isinstance(params, Mapping) else None
            follower = self.followers.get(self._root_of(str(operation_id).split(":")[0]))
            if follower is not None and follower.worker is not None:
                follower.worker.asked(str(operation_id))
        else:
            log.debug("%s is left to others", method)

    async def _answer_call(self, connection: Connection, request_id: Any, params: Any) -> None:
        call = protocol.DynamicToolCallParams.from_wire(params)
        follower = self.followers.get(self._root_of(call.thread_id))
        if follower is None or follower.worker is None:
            log.warning("nobody here runs %s of thread %s", call.tool, call.thread_id)
            return
        response = await follower.worker.answer(call)
        await _answer(connection, request_id, response.to_wire())


async def _answer(connection: Connection, request_id: Any, result: Mapping[str, Any]) -> None:
    try:
        await connection.respond(request_id, result)
    except TransportClosed:
        log.debug("the host was gone before it had its answer")
