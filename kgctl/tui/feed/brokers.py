"""The reads of brokers."""

from __future__ import annotations

import time
from collections import Counter

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.broker_status import broker_statuses
from kgctl.model.cluster import ClusterFacts
from kgctl.model.findings import Severity
from kgctl.model.watched_brokers import BrokerDetails, BrokerSeen, BrokersSnapshot
from kgctl.tui.feed.read import Read
from kgctl.watch.cluster_doctor import examine


@dataclass(frozen=True, slots=True)
class Brokers(Read[BrokersSnapshot]):
    """Each broker, asked at its own address. One that hangs delays only this read."""

    @property
    def lane(self) -> str:
        return "brokers"

    def run(self, admin: Admin) -> BrokersSnapshot:
        facts = admin.cluster_facts()
        statuses = admin.run(broker_statuses(admin.cluster))
        findings = (one for one in examine(facts) if one.severity is not Severity.OK)
        at_s, wall_ms = time.monotonic(), time.time_ns() // 1_000_000
        return BrokersSnapshot(
            at_s, wall_ms, _seen(facts), _topics(facts), len(facts.partitions), tuple(findings), tuple(statuses)
        )


def _topics(facts: ClusterFacts) -> int:
    """Without internal ones, as everywhere in the dashboard."""
    return len({one.partition.topic for one in facts.partitions if not one.is_internal})


def _seen(facts: ClusterFacts) -> tuple[BrokerSeen, ...]:
    leaders = Counter(one.leader for one in facts.partitions)
    replicas = Counter(replica for one in facts.partitions for replica in one.replicas)
    in_sync = Counter(replica for one in facts.partitions for replica in one.isr)
    return tuple(
        BrokerSeen(
            one.broker_id,
            one.address,
            one.broker_id == facts.controller_id,
            leaders[one.broker_id],
            replicas[one.broker_id],
            max(0, replicas[one.broker_id] - in_sync[one.broker_id]),
            one.error,
        )
        for one in facts.brokers
    )


@dataclass(frozen=True, slots=True)
class Details(Read[BrokerDetails]):
    """Brokers look into each log for the sizes, so ask rarely."""

    @property
    def lane(self) -> str:
        return "details of brokers"

    def run(self, admin: Admin) -> BrokerDetails:
        rows, missing = admin.describe_cluster()
        return BrokerDetails(tuple(rows), tuple(admin.log_dirs()), tuple(missing))
