"""The transactional producers of golden scenarios on a real Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.wire_types import Message
from tests.broker.cores.groups.trace_requests import Values
from tests.harness.wire_client import WireClient

# From this version on, TxnOffsetCommit adds the group to the transaction (KIP-890).
ADDS_SINCE = 5
# The last version of EndTxn that keeps the producer's epoch.
END_VERSION = 4
READY_S, TIMEOUT_MS = 10, 900_000
LATER = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


class Producers:
    """Stand for the producers of one scenario, by the id that the scenario gives them."""

    def __init__(self, address: tuple[str, int], name: str) -> None:
        self._address = address
        self._name = name
        self._ids: dict[str, tuple[int, int]] = {}  # their producer id and epoch

    def begin(self, values: Values, version: int) -> Values:
        """Make the group part of the producer's transaction; the values of its TxnOffsetCommit."""
        producer_id, epoch = self._identity(values["producer"])
        transactional_id = self._transactional_id(values["producer"])
        if version < ADDS_SINCE and values["group"]:
            request = AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=values["group"],
            )
            self._ask(request, 3, lambda answer: answer.error_code)
        own = {"transactional_id": transactional_id, "producer": str(producer_id), "epoch": str(epoch)}
        return {**values, **own}

    def end(self, outcome: str, values: Values) -> None:
        """End the producer's transaction, if it has one, and wait for its markers."""
        producer_id, epoch = self._identity(values["producer"])
        transactional_id = self._transactional_id(values["producer"])
        if self._state(transactional_id) != "Ongoing":
            return
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=outcome == "commit",
        )
        self._ask(request, END_VERSION, lambda answer: answer.error_code)
        until = time.monotonic() + READY_S
        while not self._state(transactional_id).startswith("Complete"):
            assert time.monotonic() < until
            time.sleep(0.01)

    def _identity(self, producer: str) -> tuple[int, int]:
        if producer not in self._ids:
            # This creates __transaction_state.
            find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self._transactional_id(producer)])
            self._ask(find, 4, lambda answer: answer.coordinators[0].error_code)
            request = InitProducerIdRequest(
                transactional_id=self._transactional_id(producer), transaction_timeout_ms=TIMEOUT_MS
            )
            answer = self._ask(request, 4, lambda answer: answer.error_code)
            self._ids[producer] = (answer.producer_id, answer.producer_epoch)
        return self._ids[producer]

    def _transactional_id(self, producer: str) -> str:
        return f"{self._name}.t{producer}"

    def _state(self, transactional_id: str) -> str:
        with WireClient(self._address) as client:
            answer = client.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
        state: str = answer.transaction_states[0].transaction_state
        return state

    def _ask(self, request: Message, version: int, code_of: Callable[[Any], int]) -> Any:
        until = time.monotonic() + READY_S
        while True:
            with WireClient(self._address) as client:
                answer = client.ask(request, version)
            if code_of(answer) not in LATER:
                assert code_of(answer) == ErrorCode.NONE, answer
                return answer
            assert time.monotonic() < until, answer
            time.sleep(0.02)
