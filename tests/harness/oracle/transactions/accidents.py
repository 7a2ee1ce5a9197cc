"""Accidents of Kafka that we do not copy. A walk that meets one cannot be compared; docs/protocol.md describes what we do.

The walk generator avoids those that it can foresee:

- A batch that is marked as transactional but has no producer id is appended. We answer INVALID_TXN_STATE.
- After WriteTxnMarkers with a newer producer epoch or coordinator epoch than the coordinator has, the producer's next
  transaction never completes. Ours completes.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.harness.oracle.transactions.player import RESTART, Inconclusive, State, Step

NOTHING = ["Empty", {}, []]


def refuse(step: Step, before: State, after: State, groups: Iterable[str]) -> None:
    """Raise Inconclusive if Kafka did by accident what we do otherwise."""
    for group in groups:
        was, is_ = before[group], after[group]
        # A group of which only aborted offsets are left exists until the next check for expired groups: after a restart it
        # still does, and the abort brings back a group that was deleted meanwhile.
        if is_ == NOTHING and (step["api"] == RESTART or was[0] == "Dead"):
            raise Inconclusive("Kafka keeps a group that has nothing")
