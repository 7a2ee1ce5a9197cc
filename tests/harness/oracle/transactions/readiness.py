"""Waits until the transaction coordinator of a broker has loaded every partition of its log."""

from __future__ import annotations

import contextlib
import itertools
import time

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.transaction_log import PARTITIONS, partition_for
from tests.harness.oracle.transactions.player import Address
from tests.harness.wire_client import ConnectionClosed, WireClient

READY_WITHIN_S = 60.0
TRANSACTION = 1  # a type of coordinator


def wait_until_loaded(address: Address) -> None:
    """FindCoordinator creates the log if it does not exist; answers vary until it is loaded."""
    deadline = time.monotonic() + READY_WITHIN_S
    pending = _one_id_per_partition()
    while pending:
        assert time.monotonic() < deadline, "the transaction coordinator does not load"
        with contextlib.suppress(OSError, ConnectionClosed), WireClient(address, timeout_s=5) as client:
            client.ask(FindCoordinatorRequest(key=pending[-1], key_type=TRANSACTION), 1)
            while pending and _is_loaded(client, pending[-1]):
                pending.pop()
        if pending:
            time.sleep(0.05)


def _is_loaded(client: WireClient, transactional_id: str) -> bool:
    answer = client.ask(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0)
    return bool(answer.transaction_states[0].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)


def _one_id_per_partition() -> list[str]:
    by_partition: dict[int, str] = {}
    for number in itertools.count():
        by_partition.setdefault(partition_for(f"warm-{number}"), f"warm-{number}")
        if len(by_partition) == PARTITIONS:
            return list(by_partition.values())
    raise AssertionError("unreachable")
