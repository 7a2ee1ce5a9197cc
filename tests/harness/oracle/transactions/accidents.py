"""Accidents of Kafka that we do not copy. A walk that meets one cannot be compared; docs/protocol.md describes what we do.

The walk generator avoids those that it can foresee:

- A batch that is marked as transactional but has no producer id is appended. We answer INVALID_TXN_STATE.
- After WriteTxnMarkers with a newer producer epoch or coordinator epoch than the coordinator has, the producer's next
  transaction never completes. Ours completes.
- With transaction.version 0, the first Produce v12, TxnOffsetCommit v5 or AddPartitionsToTxn v4 of a transaction is answered with
  UNSUPPORTED_VERSION, and from then on every request of this transactional id with CONCURRENT_TRANSACTIONS until a restart.
  Ours adds the partitions.
- If a producer has pending offsets in a partition of __consumer_offsets, its next TxnOffsetCommit there is taken with any
  transactional id, and an older epoch is answered with INVALID_PRODUCER_EPOCH. Ours always looks the id up.
- Partitions of __consumer_offsets remember the epochs of producers without pending offsets, and WriteTxnMarkers with an older
  epoch is refused there. Ours has nothing to end and answers without an error.
- ListOffsets for the largest timestamp returns a record before the log start while its segment is there. We leave it out.
- A first commit without a member whose metadata is all too long leaves a group that DeleteGroups knows and DescribeGroups does
  not. Ours creates none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker.protocol.errors import ErrorCode
from tests.harness.oracle.transactions.forms import codes
from tests.harness.oracle.transactions.player import RESTART, Inconclusive, State, Step

NOTHING = ["Empty", {}, []]


def refuse(step: Step, response: Any, before: State, after: State, groups: Iterable[str]) -> None:
    """Raise Inconclusive if Kafka did by accident what we do otherwise."""
    if ErrorCode.UNKNOWN_SERVER_ERROR in codes(response):
        # To a stale InitProducerId while the last epoch is fenced, for example.
        raise Inconclusive("Kafka fails")
    if step["api"] == "JoinGroup" and response["error_code"] == 0 and after[step["request"]["group_id"]][0] == "Dead":
        # Sometimes until the next record of the group.
        raise Inconclusive("Kafka does not describe a group that has a member")
    for group in groups:
        was, is_ = before[group], after[group]
        # A group of which only aborted offsets are left exists until the next check for expired groups: after a restart it
        # still does, and the abort brings back a group that was deleted meanwhile.
        if is_ == NOTHING and (step["api"] == RESTART or was[0] == "Dead"):
            raise Inconclusive("Kafka keeps a group that has nothing")
