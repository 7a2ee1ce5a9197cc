"""Topics as the journal keeps them: enough to create one again, and to notice that another one has its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.admin.configs import TOPIC, OwnValue, Resource, own_configs
from kgctl.client.admin.offsets import LATEST, OffsetAt, list_offsets
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.items import Setting, StoredTopic
from kgctl.model.topic_partition import TopicPartition

Stored = dict[str, StoredTopic | KgctlError | None]


def stored_topics(cluster: Cluster, names: Sequence[str]) -> Steps[Stored]:
    """Each topic as it is now; None does not exist."""
    answer = yield from cluster.metadata(sorted(set(names)))
    found: Stored = {}
    for row in answer.topics:
        is_missing = row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = BrokerError(row.error_code, f"topic {row.name!r}") if row.error_code else None
        replicas = max((len(one.replica_nodes) for one in row.partitions), default=0)
        name = None if row.topic_id == ZERO_UUID else str(UUID(bytes=row.topic_id))
        found[row.name or ""] = (
            None if is_missing else error or StoredTopic(row.name or "", name, len(row.partitions), replicas)
        )
    present = [Resource(TOPIC, name) for name, topic in found.items() if isinstance(topic, StoredTopic)]
    configs = (yield from own_configs(cluster, present)) if present else {}
    for resource, values in configs.items():
        topic = found[resource.name]
        assert isinstance(topic, StoredTopic)
        own = None if isinstance(values, KgctlError) else _settings(values)
        found[resource.name] = replace(topic, configs=own)
    return found


def _settings(values: Mapping[str, OwnValue]) -> tuple[Setting, ...]:
    return tuple(Setting(name, one.value or "") for name, one in sorted(values.items()) if one.is_own)


def log_ends(cluster: Cluster, topics: Sequence[StoredTopic]) -> Steps[dict[str, int | None]]:
    """How many offsets each topic has handed out; None if that is not known."""
    keys = [TopicPartition(one.topic, number) for one in topics for number in range(one.partitions)]
    ends = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))
    found: dict[str, int | None] = {one.topic: 0 for one in topics}
    for key, end in ends.items():
        known = found[key.topic]
        found[key.topic] = known + end.offset if isinstance(end, OffsetAt) and known is not None else None
    return found
