"""Plays recorded walks on a coordinator that crashes between steps and recovers from what it has stored.

The states of share partitions survive: the share coordinator stores them. A restart shall not show.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from broker.cores.groups.records import StateRecord
from tests.harness.oracle.consumer.on_core import settings_of
from tests.harness.oracle.share.files import Step, Walk
from tests.harness.oracle.share.on_core import WALL_MS, CorePlayer
from tests.harness.stored_groups import StoredGroups

CRASHES = 0.3  # before a step


class RecoveringPlayer(CorePlayer):
    def __init__(self, walk: Walk) -> None:
        self._stored = StoredGroups()
        self._random = random.Random(f"crashes {walk['seed']}")
        self.crashes = 0
        super().__init__(settings_of(walk))

    def play(self, step: Step) -> tuple[Any, list[Any]]:
        if self._random.random() < CRASHES:
            self.crashes += 1
            self.core = self._new_core()
            assert not self._stored.recover(self.core, self.now_ms, WALL_MS + self.now_ms).state_records
        return super().play(step)

    def _keep(self, records: Iterable[StateRecord]) -> None:
        self._stored.keep(records)
