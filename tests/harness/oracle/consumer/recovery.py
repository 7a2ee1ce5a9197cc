"""Plays recorded walks on a coordinator that crashes between steps and recovers from what it has stored.

A restart shall not show: answers, records and states stay those of Kafka, which did not restart. No crash happens while a classic group
rebalances or keeps an id for a client, as that is not stored. A classic group stores only the chosen protocol of its members, so a
walk whose classic group becomes a consumer group after a crash may differ in the protocols; a Kafka that has restarted does, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from broker.cores.groups.records import StateRecord
from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from tests.harness.oracle.consumer.files import Recorded, State, Step
from tests.harness.oracle.consumer.on_core import CorePlayer
from tests.harness.stored_groups import StoredGroups

CRASHES = 0.3  # before a step
UNSTORED = ("PreparingRebalance", "CompletingRebalance")


class RecoveringPlayer(CorePlayer):
    def __init__(self, walk: Recorded, settings: GroupSettings, crashes: float = CRASHES) -> None:
        """`crashes`: how probable one is before a step. Those of Kafka itself that a walk has come in any case."""
        self._stored_groups = StoredGroups()
        self._rng = random.Random(f"crashes {walk['seed']}")
        self._promised: set[str] = set()  # ids of members that have not joined yet
        self._probability, self.crashes = crashes, 0
        super().__init__(walk, settings)

    def play(self, step: Step) -> tuple[list[dict[str, Any]], list[Any]]:
        if self._rng.random() < self._probability:
            before = self.state()
            if self._is_stored(before):
                self._crash()
                assert self.state() == before, f"after a restart before step {step['t']}"
        replies, records = super().play(step)
        self._note_promises(step, replies)
        return replies, records

    def _keep(self, records: Iterable[StateRecord]) -> None:
        self._stored_groups.keep(records)

    def _is_stored(self, state: State) -> bool:
        if self._promised:
            return False
        return all(found["state"] not in UNSTORED for found in state.values())

    def _on_Restart(self, step: Step) -> None:
        self._crash()

    def _crash(self) -> None:
        self.crashes += 1
        self.core = self._new_core()
        self._replies(self._stored_groups.recover(self.core, self.now_ms, self._wall_ms()))

    def _note_promises(self, step: Step, replies: list[dict[str, Any]]) -> None:
        if step["api"] != "JoinGroup":
            return
        self._promised.discard(step["request"]["member_id"])
        for reply in replies:
            if reply["response"].get("error_code") == ErrorCode.MEMBER_ID_REQUIRED:
                self._promised.add(reply["response"]["member_id"])
