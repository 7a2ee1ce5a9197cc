"""A cluster with its traffic, and what the checks of tables compare with.

The clusters are those of other tests, but nothing deletes old records, and Kafka accepts a transaction that no coordinator knows.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from broker.local import LocalBroker
from tests.harness import clusters
from tests.harness.ports import kept_address
from tests.harness.reference_kafka import ReferenceKafka
from tests.kgctl.pipelines.runs import rows
from tests.kgctl.pipelines.truth.logs import Logs, milliseconds
from tests.kgctl.pipelines.truth.stored import Stored
from tests.kgctl.pipelines.truth.traffic import Traffic
from tests.kgctl.pipelines.truth.transacting import LONG_MS

Row = dict[str, Any]
STEP_MS = 500
CONFIG = {
    **clusters.CONFIG,
    "transaction.max.timeout.ms": str(LONG_MS),
}
KAFKA_ONLY = {
    **clusters.KAFKA_ONLY,
    "transaction.partition.verification.enable": "false",
}
# The pipelines publish positions here while they run.
OFFSETS_TOPIC = "__consumer_offsets"


@dataclass
class Tables:
    """The tables of a run. `groups` are those that a test made."""

    out: Path
    groups: Collection[str]
    step_ms: int

    def rows(self, table: str) -> list[Row]:
        return rows(self.out, table)

    def of_users(self, table: str) -> list[Row]:
        """Without the groups of the pipelines."""
        return [row for row in self.rows(table) if row["group"] in self.groups]

    def measured(self, table: str) -> dict[datetime, list[Row]]:
        """The rows of each measurement, the newest one last."""
        found: dict[datetime, list[Row]] = defaultdict(list)
        for row in sorted(self.rows(table), key=lambda row: row["at"]):
            found[row["at"]].append(row)
        return dict(found)


@dataclass
class World(Tables):
    """`began_ms`: when the newest run began."""

    kind: str
    cluster: clusters.Cluster
    traffic: Traffic
    logs: Logs
    stored: Stored
    began_ms: int = 0

    def rounds(self, count: int) -> None:
        for _ in range(count):
            self.traffic.round()
            self.read()

    def read(self) -> None:
        self.logs.read()
        self.stored.read()


def start(kind: str) -> contextlib.AbstractContextManager[clusters.Cluster]:
    """Raises `Unavailable` if Kafka cannot be set up."""
    if kind == "kafka":
        return ReferenceKafka({**CONFIG, **KAFKA_ONLY})
    made: contextlib.AbstractContextManager[clusters.Cluster] = LocalBroker(config=CONFIG, listen=kept_address())
    return made


def by_key(found: list[Row], *key: str) -> dict[Any, Row]:
    """Each key once."""
    made = {tuple(row[name] for name in key): row for row in found}
    assert len(made) == len(found)
    return made


def ms(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds(moment)
