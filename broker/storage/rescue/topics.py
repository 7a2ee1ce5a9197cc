"""The topics of a damaged directory: their directories, and their names from topic.json or from what is left of the store."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.storage.rescue.salvage import Salvage
from broker.storage.segments.leftovers import DAMAGED_SUFFIX
from broker.storage.segments.topic_files import NAME, TopicDescription

MAX_NAME_LENGTH = 249
_TOPIC_ID = re.compile("[0-9a-f]{32}")
# For a topic whose configs are lost: its records stay until somebody has looked at them.
KEEP_EVERYTHING = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class TopicDirectory(NamedTuple):
    """A directory below segments/. Without its file, its name says the topic id."""

    path: Path
    topic_id: bytes
    described: TopicDescription | None


class FoundTopic(NamedTuple):
    name: str
    topic_id: bytes
    partition_count: int
    configs: dict[str, str]
    commit_seq: int = 0


class FoundTopics(NamedTuple):
    topics: list[FoundTopic]
    cluster_id: str | None
    warnings: list[str]


def find_topic_directories(root: Path, deleted: Collection[bytes]) -> list[TopicDirectory]:
    """The directories of topics, also those that a start set aside as damaged, but not those of deleted topics."""
    found = []
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        name, _, suffix = path.name.partition(".")
        is_kept = not suffix or path.name.endswith(DAMAGED_SUFFIX)
        if not is_kept or not _TOPIC_ID.fullmatch(name) or not path.is_dir():
            continue
        described = _read(path / NAME)
        topic_id = described.topic_id if described is not None else bytes.fromhex(name)
        if topic_id not in deleted:
            found.append(TopicDirectory(path, topic_id, described))
    return found


def find_topics(
    directories: Sequence[TopicDirectory], partitions: Iterable[tuple[bytes, int]], salvage: Salvage, *, is_intact: bool
) -> FoundTopics:
    """All topics of clients, each with a name of its own. `partitions` are those with files or acknowledged ends."""
    counts: dict[bytes, int] = {directory.topic_id: 1 for directory in directories}
    for topic_id, index in partitions:
        if topic_id not in salvage.deleted_topics:
            counts[topic_id] = max(counts.get(topic_id, 1), index + 1)
    described = {found.topic_id: found.described for found in directories if found.described is not None}
    warnings: list[str] = []
    topics: list[FoundTopic] = []
    for topic_id, count in counts.items():
        topic = _described(described.get(topic_id), count) or _stored(salvage, topic_id, count)
        if topic is None:
            topic = FoundTopic(f"rescued-{topic_id.hex()}", topic_id, count, dict(KEEP_EVERYTHING))
            warnings.append(
                f"the name of topic id {topic_id.hex()} is lost: it becomes {topic.name}, without retention"
            )
        topics.append(topic)
    if is_intact:
        # Damaged pages might bring back deleted topics.
        topics += [
            FoundTopic(row.name, topic_id, row.partition_count, salvage.topic_configs.get(topic_id, {}))
            for topic_id, row in salvage.topics.items()
            if topic_id not in counts and not row.internal
        ]
    cluster_ids = {found.commit_seq: found.cluster_id for found in described.values() if found.cluster_id}
    cluster_id = cluster_ids[max(cluster_ids)] if cluster_ids else None
    return FoundTopics(_with_unique_names(topics, warnings), cluster_id, warnings)


def _read(path: Path) -> TopicDescription | None:
    try:
        return TopicDescription.decode(path.read_bytes())
    except OSError:
        return None


def _described(found: TopicDescription | None, count: int) -> FoundTopic | None:
    if found is None:
        return None
    return FoundTopic(found.name, found.topic_id, max(found.partition_count, count), found.configs, found.commit_seq)


def _stored(salvage: Salvage, topic_id: bytes, count: int) -> FoundTopic | None:
    row = salvage.topics.get(topic_id)
    if row is None:
        return None
    configs = salvage.topic_configs.get(topic_id, {})
    return FoundTopic(row.name, topic_id, max(row.partition_count, count), configs)


def _with_unique_names(topics: list[FoundTopic], warnings: list[str]) -> list[FoundTopic]:
    """Of two topics with one name, the newer keeps it: the older one was probably deleted."""
    named: dict[str, FoundTopic] = {}
    for topic in sorted(topics, key=lambda topic: -topic.commit_seq):
        if topic.name in named:
            name = f"{topic.name[: MAX_NAME_LENGTH - 17]}-{topic.topic_id.hex()[:16]}"
            warnings.append(f"two topics are named {topic.name}: the older one becomes {name}")
            topic = topic._replace(name=name, configs={**topic.configs, **KEEP_EVERYTHING})
        named[topic.name] = topic
    return sorted(named.values())
