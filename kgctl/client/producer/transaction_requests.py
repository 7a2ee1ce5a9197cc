"""What a transactional producer asks its coordinator. Steps without I/O."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import TRANSACTION, Ask, Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut
from kgctl.client.net.steps import Pause, Steps
from kgctl.client.producer.transaction import EXPLICIT_END_VERSION, ProducerIdentity
from kgctl.model.topic_partition import TopicPartition

R = TypeVar("R", bound=Message)
NEW_PRODUCER = ProducerIdentity(-1, -1)
# The versions that producers use; later ones are for brokers.
_MAX_ADD_VERSION = 3
# Kafka's producer waits 20 ms for the transaction before, whose end is usually a matter of milliseconds.
_FIRST_WAITS_SECONDS = (0.02, 0.02, 0.05, 0.1, 0.2)
_LAST_WAIT_SECONDS = 0.5


def init_producer(
    cluster: Cluster, transactional_id: str, timeout_ms: int, identity: ProducerIdentity = NEW_PRODUCER
) -> Steps[ProducerIdentity]:
    """A new epoch for the transactional id. Fences older producers, aborts their transaction and waits until it has ended.

    With its `identity`, a producer gets a new epoch for itself, unless it is fenced (KIP-360, Kafka 2.5).
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )
    lowest = 0 if identity == NEW_PRODUCER else 3
    asked = Asked(InitProducerIdRequest, transactional_id=transactional_id)

    def error_in(answer: InitProducerIdResponse) -> KgctlError | None:
        return _error(answer.error_code, asked)

    answer = yield from _ask(cluster, asked, request, InitProducerIdResponse, error_in, min_version=lowest)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def add_partitions(
    cluster: Cluster, transactional_id: str, identity: ProducerIdentity, partitions: Sequence[TopicPartition]
) -> Steps[None]:
    """Make the partitions part of the transaction. Raises the error of one of them; then none is added."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=[
            AddPartitionsToTxnRequest.Topic(name=topic, partitions=numbers) for topic, numbers in by_topic.items()
        ],
    )
    asked = Asked(AddPartitionsToTxnRequest, transactional_id=transactional_id)

    def error_in(answer: AddPartitionsToTxnResponse) -> KgctlError | None:
        errors = [
            BrokerError(
                row.partition_error_code,
                str(TopicPartition(topic.name, row.partition_index)),
                asked=asked._replace(topic=topic.name),
                by_leader=True,
            )
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
            if row.partition_error_code
        ]
        # The others were not attempted because of the one that says why.
        errors.sort(key=lambda error: error.code == ErrorCode.OPERATION_NOT_ATTEMPTED)
        return errors[0] if errors else None

    yield from _ask(cluster, asked, request, AddPartitionsToTxnResponse, error_in, max_version=_MAX_ADD_VERSION)


def end_transaction(
    cluster: Cluster, transactional_id: str, identity: ProducerIdentity, *, commit: bool, is_implicit: bool
) -> Steps[ProducerIdentity | None]:
    """Commit or abort. Returns the identity for the next transaction if it is a new one.

    After TimedOut, the coordinator may have ended the transaction or not; asking for the same again is safe.
    """
    request = EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=commit,
    )
    asked = Asked(EndTxnRequest, transactional_id=transactional_id)
    lowest = EXPLICIT_END_VERSION + 1 if is_implicit else 0
    highest = lowest if is_implicit else EXPLICIT_END_VERSION

    def error_in(answer: EndTxnResponse) -> KgctlError | None:
        return _error(answer.error_code, asked)

    answer = yield from _ask(cluster, asked, request, EndTxnResponse, error_in, min_version=lowest, max_version=highest)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch) if answer.producer_id >= 0 else None


def _error(code: int, asked: Asked) -> KgctlError | None:
    return BrokerError(code, f"transactional id {asked.transactional_id!r}", asked=asked) if code else None


def _ask(
    cluster: Cluster,
    asked: Asked,
    request: Message,
    response: type[R],
    error_in: Callable[[R], KgctlError | None],
    *,
    min_version: int = 0,
    max_version: int = 1 << 15,
) -> Steps[R]:
    """Ask the coordinator until it answers without an error that may pass. The driver bounds the time."""
    name = asked.transactional_id
    for wait in itertools.chain(_FIRST_WAITS_SECONDS, itertools.repeat(_LAST_WAIT_SECONDS)):
        try:
            node = (yield from cluster.coordinators([name], TRANSACTION))[name]
            if isinstance(node, KgctlError):
                raise node
            answer: R = yield from cluster.ask(Ask(node.endpoint, request, response, min_version, max_version))
            error = error_in(answer)
            if error is None:
                return answer
        except KgctlError as failure:
            error = failure
        if not error.retriable and not isinstance(error, TimedOut):
            raise error
        if not (isinstance(error, BrokerError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS):
            cluster.forget_coordinator(name, TRANSACTION)
        yield Pause(wait, str(error))
    raise AssertionError("unreachable")
