"""Finds the coordinator of a group or a transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.network.backoff import backoff_ms
from kgctl.client.network.nodes import Node, coordinator_node
from kgctl.client.network.outgoing import Outgoing

if TYPE_CHECKING:
    from random import Random

    from kgctl.client.network.client import NetworkClient

GROUP, TRANSACTION = 0, 1  # by Kafka's number


class Coordinator:
    """Looked up by `seek`, with backoff, and forgotten when it moved or its node went away.

    `node_id` is for `NetworkClient.send`; the coordinator of a group has a connection of its own.
    """

    def __init__(self, network: NetworkClient, key: str, kind: int, random: Random) -> None:
        self.key, self.kind = key, kind
        self.node: Node | None = None
        # Final: lookups end. `retry` begins them again.
        self.error: KgctlError | None = None
        self.lost_reason = ""
        self._lookup_error: KgctlError | None = None
        self._network, self._random = network, random
        self._is_asking = False
        self._failures = 0
        self._next_ms = 0

    @property
    def node_id(self) -> int | None:
        return None if self.node is None else self.node.node_id

    def trouble(self) -> str:
        """Why it is not known or not connected: what its node, the lookup or the other nodes said last. Empty: nothing failed."""
        error = self._lookup_error if self.node is None else self._network.error_of(self.node.node_id)
        return str(error or "") or self._network.why_unreachable() or self.lost_reason

    def seek(self, now_ms: int) -> None:
        """Look it up if it is unknown and a lookup is due. Call it in each `advance` that needs the coordinator."""
        if self.node is not None and self._network.is_unavailable(self.node.node_id, now_ms):
            self.lost("its node is not reachable")
            self._pause(now_ms)  # a lookup may give the same node
        if self.node is not None or self._is_asking or self.error is not None or now_ms < self._next_ms:
            return
        self._is_asking = True
        self._network.send_any(
            Outgoing(
                self._request,
                FindCoordinatorResponse,
                self._answered,
                self._network.settings.request_timeout_ms,
                min_version=0 if self.kind == GROUP else 1,
                api=FindCoordinatorRequest,
            ),
            now_ms,
        )

    def lost(self, reason: str) -> None:
        """Forget the node: it answered NOT_COORDINATOR, or went away."""
        self.node, self.lost_reason = None, reason

    def retry(self) -> None:
        """Look it up again after a final error."""
        self.error = None

    def wake_at_ms(self) -> int | None:
        """When a lookup is due."""
        return None if self.node is not None or self._is_asking or self.error is not None else self._next_ms

    def _request(self, version: int) -> FindCoordinatorRequest:
        if version < 4:
            return FindCoordinatorRequest(key=self.key, key_type=self.kind)
        return FindCoordinatorRequest(key_type=self.kind, coordinator_keys=[self.key])

    def _answered(self, answer: FindCoordinatorResponse | KgctlError, now_ms: int) -> None:
        self._is_asking = False
        if isinstance(answer, KgctlError):
            self._failed(answer, now_ms)
            return
        row = answer.coordinators[0] if answer.coordinators else answer
        if row.error_code:
            noun = "group" if self.kind == GROUP else "transactional id"
            asked = Asked(FindCoordinatorRequest, **{noun.replace(" ", "_"): self.key})
            error = BrokerError(row.error_code, f"{noun} {self.key!r}", row.error_message, asked=asked)
            if row.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._network.metadata.request_update()
            self._failed(error, now_ms)
            return
        self._failures, self._lookup_error = 0, None
        node = Node(row.node_id, row.host, row.port)
        self.node = coordinator_node(node) if self.kind == GROUP else node
        self._network.know(self.node)

    def _failed(self, error: KgctlError, now_ms: int) -> None:
        if not error.retriable and error.name != "TIMED_OUT":
            self.error = error
            return
        self._lookup_error = error
        self._pause(now_ms)

    def _pause(self, now_ms: int) -> None:
        settings = self._network.settings
        self._next_ms = now_ms + backoff_ms(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._failures, self._random
        )
        self._failures += 1
