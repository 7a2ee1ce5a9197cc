"""Fences the producers of a transactional id. Steps without I/O."""

from __future__ import annotations

import itertools

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import TRANSACTION, Ask, Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut
from kgctl.client.net.steps import Pause, Steps

# Kafka's producer waits 20 ms for the transaction before, whose end is usually a matter of milliseconds.
_FIRST_WAITS_SECONDS = (0.02, 0.02, 0.05, 0.1, 0.2)
_LAST_WAIT_SECONDS = 0.5


def init_producer(cluster: Cluster, transactional_id: str, timeout_ms: int) -> Steps[None]:
    """A new epoch for the transactional id. Fences its producers, aborts their transaction and waits until it has ended.

    The driver bounds the time.
    """
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    asked = Asked(InitProducerIdRequest, transactional_id=transactional_id)
    error: KgctlError
    for wait in itertools.chain(_FIRST_WAITS_SECONDS, itertools.repeat(_LAST_WAIT_SECONDS)):
        try:
            node = (yield from cluster.coordinators([transactional_id], TRANSACTION))[transactional_id]
            if isinstance(node, KgctlError):
                raise node
            answer = yield from cluster.ask(Ask(node.endpoint, request, InitProducerIdResponse))
            if not answer.error_code:
                return
            error = BrokerError(answer.error_code, f"transactional id {transactional_id!r}", asked=asked)
        except KgctlError as failure:
            error = failure
        if not error.retriable and not isinstance(error, TimedOut):
            raise error
        if not (isinstance(error, BrokerError) and error.code == ErrorCode.CONCURRENT_TRANSACTIONS):
            cluster.forget_coordinator(transactional_id, TRANSACTION)
        yield Pause(wait, str(error))
    raise AssertionError("unreachable")
