"""What the jobs about topics ask the cluster before they begin: which topics there are, and their configs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.configs import TOPIC, OwnValue, Resource, own_configs
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.topic_names import matching

_POLICY, _AGE, _SIZE = "cleanup.policy", "retention.ms", "retention.bytes"
_TOMBSTONES, _RATIO, _SEGMENT = "delete.retention.ms", "min.cleanable.dirty.ratio", "segment.bytes"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic with its configs; None where there is no limit, or where the cluster does not report the config."""

    name: str
    partitions: tuple[TopicPartition, ...]
    cleanup_policy: str
    retention_ms: int | None
    retention_bytes: int | None
    delete_retention_ms: int | None
    dirty_ratio_limit: float | None
    segment_bytes: int | None

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy


def topics_of(
    run: RunContext, admin: Admin, job: str, wanted: Callable[[TopicFacts], bool] = lambda _: True
) -> list[TopicFacts]:
    """The topics that match --topics, internal ones included, and that the job wants; sorted by name.

    Topics whose configs may not be read are left out with a note. Raises NotFound if --topics matches none.
    """
    answer = admin.run(admin.cluster.metadata(None))
    partitions = {
        row.name: tuple(
            TopicPartition(row.name, one.partition_index)
            for one in sorted(row.partitions, key=lambda one: one.partition_index)
        )
        for row in answer.topics
        if row.name and not row.error_code
    }
    selected = matching(partitions, run.settings.topics)
    names = [_POLICY, _AGE, _SIZE, _TOMBSTONES, _RATIO, _SEGMENT]
    configs = admin.run(own_configs(admin.cluster, [Resource(TOPIC, name) for name in selected], names))
    topics, failed = [], []
    for resource, values in configs.items():
        if isinstance(values, KgctlError):
            failed.append(values)
        else:
            topics.append(_facts(resource.name, partitions[resource.name], values))
    if failed:
        run.emit(Progress("note", f"{len(failed)} of {len(configs)} topics are left out: {failed[0]}", job=job))
    return sorted(filter(wanted, topics), key=lambda one: one.name)


def _facts(name: str, partitions: tuple[TopicPartition, ...], configs: dict[str, OwnValue]) -> TopicFacts:
    def number(config: str) -> int | None:
        text = configs[config].value if config in configs else None
        return int(text) if text and int(text) >= 0 else None

    policy = (configs[_POLICY].value if _POLICY in configs else None) or "delete"
    deletes = "delete" in policy
    ratio = configs[_RATIO].value if _RATIO in configs else None
    return TopicFacts(
        name,
        partitions,
        policy,
        number(_AGE) if deletes else None,
        number(_SIZE) if deletes else None,
        number(_TOMBSTONES),
        float(ratio) if ratio else None,
        number(_SEGMENT),
    )
