"""What a rescue would bring back: topics with their partitions, committed offsets, identity of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from broker.storage.errors import StorageError
from broker.storage.file_ops import FileOps
from broker.storage.files import Files
from broker.storage.rescue.ends import AcknowledgedEnds, read_acknowledged_ends
from broker.storage.rescue.partitions import PartitionPlan, plan_partition
from broker.storage.rescue.reading import Progress
from broker.storage.rescue.salvage import CommittedOffset, Salvage
from broker.storage.rescue.topics import FoundTopic, find_topics
from broker.storage.store.commit_marker import CommitMarkerFile

# Ids that the broker gave out and that appear in no batch must not be given out again.
PRODUCER_ID_MARGIN = 1_000_000


@dataclass(slots=True)
class TopicPlan:
    topic: FoundTopic
    partitions: list[PartitionPlan]


@dataclass(slots=True)
class RescuePlan:
    """`problems` say what is damaged; `warnings` what the user has to check."""

    data_dir: Path
    topics: list[TopicPlan]
    offsets: list[CommittedOffset]
    cluster_id: str | None
    broker_configs: dict[str, str]
    next_producer_id: int
    store_is_intact: bool
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for topic in self.topics for partition in topic.partitions)


def plan_rescue(data_dir: Path, progress: Progress) -> RescuePlan:
    """Read all of a data directory that no broker uses. Nothing in it is changed."""
    salvage = Salvage(data_dir)
    problems = [*salvage.problems, *_lost_commits(data_dir, salvage)]
    ends = read_acknowledged_ends(data_dir, salvage.partitions)
    found = find_topics(data_dir / "segments", salvage)
    log_starts = {(p.topic_id, p.partition): p.log_start_offset for p in salvage.partitions.values()}
    topics = [_plan_topic(topic, ends, log_starts, progress) for topic in found.topics]
    seen = [partition.largest_producer_id for topic in topics for partition in topic.partitions]
    stored_id = salvage.meta.get("next_producer_id", "0")
    next_producer_id = max([0, salvage.largest_producer_id + 1, *[number + 1 for number in seen]])
    if stored_id.isdigit():
        next_producer_id = max(next_producer_id, int(stored_id))
    warnings = list(found.warnings)
    if ends.warning is not None:
        warnings.append(ends.warning)
    if problems:
        warnings.append(
            "dynamic broker configs may be lost: set them again before retention deletes records by its defaults"
        )
    return RescuePlan(
        data_dir,
        topics,
        salvage.offsets,
        found.cluster_id or salvage.meta.get("cluster_id"),
        salvage.broker_configs,
        next_producer_id + PRODUCER_ID_MARGIN,
        salvage.is_complete and not problems,
        problems,
        warnings,
    )


def _lost_commits(data_dir: Path, salvage: Salvage) -> list[str]:
    """What the commit marker says about commits that are not in the store."""
    marker_file = CommitMarkerFile(Files(FileOps()), str(data_dir))
    try:
        marker = marker_file.read()
    except StorageError as error:
        return [str(error)]
    if marker is None:
        return [f"{marker_file.path} is missing or damaged"]
    missing = marker.commit_seq - salvage.last_commit
    if missing > 0 and salvage.last_commit:
        return [
            f"{data_dir / 'store.db'}: acknowledged commits {salvage.last_commit + 1} to {marker.commit_seq} are lost"
        ]
    return []


def _plan_topic(
    topic: FoundTopic, ends: AcknowledgedEnds, log_starts: dict[tuple[bytes, int], int], progress: Progress
) -> TopicPlan:
    is_compacted = "compact" in topic.configs.get("cleanup.policy", "")
    partitions = []
    for index in range(topic.partition_count):
        key = topic.topic_id, index
        directory = topic.directory / str(index) if topic.directory is not None else Path()
        if topic.directory is None or (not directory.exists() and key not in ends.ends):
            partitions.append(PartitionPlan(index, [], None, is_compacted))
            continue
        end, log_start = ends.ends.get(key), log_starts.get(key)
        partitions.append(plan_partition(directory, index, end, log_start, progress, is_compacted=is_compacted))
    return TopicPlan(topic, partitions)
