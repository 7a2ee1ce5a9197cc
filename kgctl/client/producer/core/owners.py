"""What requests need of the producer that they are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kgctl.client.net.errors import KgctlError
from kgctl.client.network.coordinator import Coordinator
from kgctl.client.producer.core.batch import ProducerIdentity
from kgctl.client.producer.core.coordination import Outcome, Step
from kgctl.model.topic_partition import TopicPartition


class ProducerOwner(Protocol):
    """An idempotent producer. The `fail` methods return what callers see."""

    transactional_id: str | None
    timeout_ms: int
    identity: ProducerIdentity

    @property
    def coordinator(self) -> Coordinator | None: ...
    def backoff_ms(self, attempts: int, /) -> int: ...
    def initialized(self, identity: ProducerIdentity, *, is_bump: bool) -> None: ...
    def fail_fatally(self, error: KgctlError) -> KgctlError: ...
    def fail_abortably(self, error: KgctlError) -> KgctlError: ...
    def fail_abortably_if_possible(self, error: KgctlError) -> KgctlError: ...


class TransactionOwner(ProducerOwner, Protocol):
    """A transactional producer."""

    is_implicit: bool
    has_started: bool
    partitions: set[TopicPartition]

    def group_coordinator(self, group: str) -> Coordinator: ...
    def put(self, step: Step) -> Outcome: ...
    def added(self, partitions: Iterable[TopicPartition]) -> None: ...
    def not_added(self, partitions: Iterable[TopicPartition]) -> None: ...
    def ended(self, identity: ProducerIdentity | None) -> None: ...
