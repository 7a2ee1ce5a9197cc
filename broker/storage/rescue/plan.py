"""What a rescue would bring back: topics with their partitions, committed offsets, identity of the cluster."""

from __future__ import annotations

from pathlib import Path

from broker.light_dataclasses import dataclass, field
from broker.storage.errors import StorageError
from broker.storage.file_ops import FileOps
from broker.storage.files import Files
from broker.storage.rescue.ends import AcknowledgedEnds, read_acknowledged_ends
from broker.storage.rescue.partitions import Evidence, PartitionPlan, plan_partition
from broker.storage.rescue.reading import Progress
from broker.storage.rescue.salvage import CommittedOffset, Salvage, SecurityRecord, StoredPartition
from broker.storage.rescue.segment_files import FoundFiles, PartitionKey, find_segment_files
from broker.storage.rescue.topics import FoundTopic, find_topic_directories, find_topics
from broker.storage.rows.declarations import SHARE_STATE_TOPIC
from broker.storage.store.commit_marker import CommitMarkerFile

# Ids that the broker gave out and that appear in no batch must not be given out again.
PRODUCER_ID_MARGIN = 1_000_000
NO_STORED = StoredPartition(b"", -1, 0)


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
    security_records: list[SecurityRecord]
    next_producer_id: int
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def store_is_intact(self) -> bool:
        return not self.problems

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for topic in self.topics for partition in topic.partitions)


def plan_rescue(data_dir: Path, progress: Progress) -> RescuePlan:
    """Read all of a data directory that no broker uses. Nothing in it is changed."""
    salvage = Salvage(data_dir)
    problems = [*salvage.problems, *_lost_commits(data_dir, salvage)]
    ends = read_acknowledged_ends(data_dir, salvage.partitions)
    directories = find_topic_directories(data_dir / "segments", salvage.deleted_topics)
    files = find_segment_files([(found.path, found.topic_id) for found in directories], ends.ends)
    found = find_topics(directories, [*files.files, *ends.ends], salvage, is_intact=not problems)
    evidence = _Evidence(ends, files, salvage, is_intact=not problems)
    topics = [TopicPlan(topic, evidence.plan(topic, progress)) for topic in found.topics]
    warnings = [*found.warnings, *files.warnings]
    if ends.warning is not None:
        warnings.append(ends.warning)
    if problems:
        warnings.append(
            "dynamic broker configs may be lost: set them again before retention deletes records by its defaults"
        )
        warnings.append(
            "users, ACLs and quotas may be lost, and deleted ones may be back: check them before clients connect"
        )
    if any(partition.has_transactions for topic in topics for partition in topic.partitions):
        warnings.append(
            "transactional ids, their offsets and levels of features are not kept: the first start aborts all open"
            " transactions; restart transactional producers"
        )
    if any(topic.name == SHARE_STATE_TOPIC for topic in salvage.topics.values()):
        warnings.append(
            "share groups are not kept: enable them again (share.version=1); they begin where share.auto.offset.reset of"
            " the group says, by default at the end"
        )
    return RescuePlan(
        data_dir,
        topics,
        salvage.offsets,
        found.cluster_id or salvage.meta.get("cluster_id"),
        salvage.broker_configs,
        salvage.security_records,
        _next_producer_id(salvage, topics),
        problems,
        warnings,
    )


class _Evidence:
    """What is known of each partition."""

    def __init__(self, ends: AcknowledgedEnds, files: FoundFiles, salvage: Salvage, *, is_intact: bool) -> None:
        self._ends = ends.ends
        self._files = files.files
        self._is_intact = is_intact
        self._stored = {(row.topic_id, row.partition): (number, row) for number, row in salvage.partitions.items()}
        self._segments = salvage.segments

    def plan(self, topic: FoundTopic, progress: Progress) -> list[PartitionPlan]:
        policy = topic.configs.get("cleanup.policy", "")
        return [
            plan_partition(index, self._files.get(key, ()), self._of(key, policy), progress)
            for index in range(topic.partition_count)
            for key in [(topic.topic_id, index)]
        ]

    def _of(self, key: PartitionKey, policy: str) -> Evidence:
        number, row = self._stored.get(key, (0, NO_STORED))
        is_compacted, only_compacted = "compact" in policy, policy.strip() == "compact"
        segments = sorted(self._segments.get(number, ()))
        end = self._ends.get(key)
        return Evidence(
            max([end.end_offset if end is not None else 0, *[end_offset for _, end_offset in segments]]),
            row.log_start_offset if number else 0 if only_compacted else None,
            # An older store lists segments that were cleaned since.
            tuple(segments) if self._is_intact else (),
            is_compacted,
            # The start in an older store may have been moved since, by anything but compaction.
            only_compacted or (is_compacted and self._is_intact),
        )


def _next_producer_id(salvage: Salvage, topics: list[TopicPlan]) -> int:
    """An id above all that the broker gave out, as far as they can be seen, by a wide margin."""
    seen = [partition.largest_producer_id for topic in topics for partition in topic.partitions]
    stored = salvage.meta.get("next_producer_id", "0")
    following = max([salvage.largest_producer_id, *seen], default=-1) + 1
    return max(following, int(stored) if stored.isdigit() else 0) + PRODUCER_ID_MARGIN


def _lost_commits(data_dir: Path, salvage: Salvage) -> list[str]:
    """What the commit marker says about commits that are not in the store."""
    marker_file = CommitMarkerFile(Files(FileOps()), str(data_dir))
    try:
        marker = marker_file.read()
    except StorageError as error:
        return [str(error)]
    if marker is None:
        return [f"{marker_file.path} is missing or damaged"]
    if 0 < salvage.last_commit < marker.commit_seq:
        first = salvage.last_commit + 1
        return [f"{data_dir / 'store.db'}: acknowledged commits {first} to {marker.commit_seq} are lost"]
    return []
