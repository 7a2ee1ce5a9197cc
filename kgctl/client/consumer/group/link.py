"""Requests to the coordinator of the group, in the order in which they were sent, once it is known and connected."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Message
from kgctl.client.consumer.group.errors import CoordinatorUnknown
from kgctl.client.net.errors import KgctlError, TimedOut, Unreachable
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.network.nodes import Node
from kgctl.client.network.outgoing import Outgoing

R = TypeVar("R", bound=Message)

# Makes another id for the same broker: one more connection.
_APART = 1 << 30
MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})


class CoordinatorLink:
    """Whoever finds that the coordinator moved or is gone says so with `lose`; then it is looked up again."""

    def __init__(self, network: NetworkClient, coordinator: Coordinator, request_timeout_ms: int) -> None:
        self._network = network
        self._coordinator = coordinator
        self._timeout_ms = request_timeout_ms
        self._unsent: deque[tuple[int, Outgoing[Any], Node | None]] = deque()
        self._is_wanted = False

    @property
    def is_known(self) -> bool:
        return self._coordinator.node_id is not None

    @property
    def has_answer(self) -> bool:
        """The coordinator is known, or cannot be looked up."""
        return self._coordinator.node_id is not None or self._coordinator.error is not None

    def late(self, what: str) -> TimedOut:
        """The error of a call that the coordinator has not answered: with its address, or why it is not known or connected."""
        node = self._coordinator.node
        reason = self._coordinator.trouble()
        if not reason:
            reason = (
                "its coordinator is not known" if node is None else f"the coordinator {node.endpoint} does not answer"
            )
        return TimedOut(f"{what}: {reason}")

    def seek(self, now_ms: int) -> bool:
        """Look the coordinator up if it is unknown; true if it is known. Raises why it cannot be looked up, then tries again."""
        self._is_wanted = True
        self._coordinator.seek(now_ms)
        error = self._coordinator.error
        if error is not None:
            self._coordinator.retry()
            raise error
        return self._coordinator.node_id is not None

    def send(
        self,
        request: Message | Callable[[int], Message],
        response: type[R],
        done: Callable[[R | KgctlError, int], None],
        now_ms: int,
        *,
        api: type[Message] | None = None,
        timeout_ms: int | None = None,
        min_version: int = 0,
        is_apart: bool = False,
    ) -> None:
        """Send the request. `done` gets a CoordinatorUnknown if the coordinator is or becomes unknown before.

        `is_apart`: on another connection, because the coordinator answers nothing behind a JoinGroup that it holds.
        """

        def answered(answer: R | KgctlError, at_ms: int) -> None:
            if isinstance(answer, Unreachable | TimedOut):
                self.lose(str(answer))
                answer = Unreachable(str(answer))  # a request that timed out may succeed elsewhere
            done(answer, at_ms)

        timeout = self._timeout_ms if timeout_ms is None else timeout_ms
        outgoing = Outgoing(request, response, answered, timeout, api=api, min_version=min_version)
        node = self._coordinator.node if is_apart else None
        if node is not None:
            node = node._replace(node_id=node.node_id ^ _APART)
            self._network.know(node)
        self._unsent.append((now_ms + self._timeout_ms, outgoing, node))
        self.advance(now_ms)

    def lose(self, reason: str) -> None:
        """The coordinator moved, or its connection has ended. What is in flight to it is still answered."""
        self._is_wanted = True
        self._coordinator.lost(reason)

    def disconnect(self, reason: str, now_ms: int) -> None:
        """The coordinator does not answer: what is in flight fails."""
        node_id = self._coordinator.node_id
        self.lose(reason)
        if node_id is not None:
            self._network.drop(node_id, now_ms, Unreachable(f"the coordinator is looked up again: {reason}"))

    def advance(self, now_ms: int) -> None:
        """Look the coordinator up if it is needed; send what waits, or fail it."""
        if self._is_wanted and self._coordinator.error is None:
            self._coordinator.seek(now_ms)
        while self._unsent:
            expires_ms, outgoing, apart = self._unsent[0]
            node_id = self._coordinator.node_id if apart is None else apart.node_id
            if node_id is not None and self._network.is_ready(node_id, now_ms):
                self._unsent.popleft()
                self._network.send(node_id, outgoing, now_ms)
            elif node_id is None:
                self._unsent.popleft()
                reason = self._coordinator.trouble()
                text = "the coordinator of the group is not known"
                outgoing.fail(CoordinatorUnknown(f"{text}: {reason}" if reason else text), now_ms)
            elif now_ms < expires_ms:
                return
            elif apart is None:
                self.disconnect("it could not be connected in time", now_ms)
            else:
                self._unsent.popleft()
                outgoing.fail(Unreachable(f"{apart.endpoint}: it could not be connected in time"), now_ms)

    def wake_at_ms(self, now_ms: int) -> list[int]:
        """When to call `advance` again."""
        node_id = self._coordinator.node_id
        if node_id is None:
            lookup_ms = self._coordinator.wake_at_ms() if self._is_wanted else None
            return [] if lookup_ms is None else [lookup_ms]
        if not self._unsent:
            return []
        ready_ms = self._network.ready_at_ms(node_id, now_ms)
        return [self._unsent[0][0]] if ready_ms is None else [self._unsent[0][0], ready_ms]
