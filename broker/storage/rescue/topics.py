"""The topics of a damaged directory: their directories, and their names from topic.json or from what is left of the store."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from broker.storage.rescue.salvage import Salvage
from broker.storage.segments.leftovers import DAMAGED_SUFFIX
from broker.storage.segments.topic_files import NAME, TopicDescription

MAX_NAME_LENGTH = 249
_TOPIC_ID = re.compile("[0-9a-f]{32}")
# For a topic whose configs are lost: its records stay until somebody has looked at them.
KEEP_EVERYTHING = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


class FoundTopic(NamedTuple):
    """`directory` is None for a topic without records, which only the store names."""

    name: str
    topic_id: bytes
    partition_count: int
    configs: dict[str, str]
    directory: Path | None
    commit_seq: int = 0


class FoundTopics(NamedTuple):
    topics: list[FoundTopic]
    cluster_id: str | None
    warnings: list[str]


def find_topics(root: Path, salvage: Salvage) -> FoundTopics:
    """All topics of clients, each with a name of its own."""
    warnings: list[str] = []
    topics: list[FoundTopic] = []
    cluster_ids: dict[int, str] = {}
    for directory, topic_id in _topic_directories(root):
        if topic_id in salvage.deleted_topics:
            continue
        topic = _from_file(directory, topic_id, cluster_ids) or _from_store(directory, topic_id, salvage)
        if topic is None:
            topic = _unnamed(directory, topic_id)
            warnings.append(f"{directory}: the name of the topic is lost; it becomes {topic.name}, without retention")
        topics.append(topic)
    known = {topic.topic_id for topic in topics}
    if salvage.is_complete:
        # A damaged list of free pages would bring back deleted topics.
        for stored in salvage.topics.values():
            if not stored.internal and stored.topic_id not in known:
                configs = salvage.topic_configs.get(stored.topic_id, {})
                topics.append(FoundTopic(stored.name, stored.topic_id, stored.partition_count, configs, None))
    topics = _with_unique_names(topics, warnings)
    return FoundTopics(topics, cluster_ids[max(cluster_ids)] if cluster_ids else None, warnings)


def _topic_directories(root: Path) -> list[tuple[Path, bytes]]:
    """Directories named by a topic id. One that a start set aside as damaged counts if there is no other of the topic."""
    found: dict[bytes, Path] = {}
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        name, _, suffix = path.name.partition(".")
        is_taken = not suffix or path.name.endswith(DAMAGED_SUFFIX)
        if is_taken and _TOPIC_ID.fullmatch(name) and path.is_dir():
            found.setdefault(bytes.fromhex(name), path)
    return [(path, topic_id) for topic_id, path in found.items()]


def _from_file(directory: Path, topic_id: bytes, cluster_ids: dict[int, str]) -> FoundTopic | None:
    try:
        described = TopicDescription.decode((directory / NAME).read_bytes())
    except OSError:
        return None
    if described is None or described.topic_id != topic_id:
        return None
    if described.cluster_id:
        cluster_ids[described.commit_seq] = described.cluster_id
    count = max(described.partition_count, _partitions_in(directory))
    return FoundTopic(described.name, topic_id, count, described.configs, directory, described.commit_seq)


def _from_store(directory: Path, topic_id: bytes, salvage: Salvage) -> FoundTopic | None:
    stored = salvage.topics.get(topic_id)
    if stored is None:
        return None
    count = max(stored.partition_count, _partitions_in(directory))
    return FoundTopic(stored.name, topic_id, count, salvage.topic_configs.get(topic_id, {}), directory)


def _unnamed(directory: Path, topic_id: bytes) -> FoundTopic:
    count = max(1, _partitions_in(directory))
    return FoundTopic(f"rescued-{topic_id.hex()}", topic_id, count, dict(KEEP_EVERYTHING), directory)


def _partitions_in(directory: Path) -> int:
    """One more than the largest partition that has a directory."""
    return max([int(path.name) + 1 for path in directory.iterdir() if path.name.isdigit() and path.is_dir()], default=0)


def _with_unique_names(topics: list[FoundTopic], warnings: list[str]) -> list[FoundTopic]:
    """Of two topics with one name, the newer keeps it: the older one was probably deleted."""
    named: dict[str, FoundTopic] = {}
    for topic in sorted(topics, key=lambda topic: -topic.commit_seq):
        if topic.name in named:
            name = f"{topic.name[: MAX_NAME_LENGTH - 17]}-{topic.topic_id.hex()[:16]}"
            warnings.append(f"two topics are named {topic.name}: the older one, {topic.directory}, becomes {name}")
            topic = topic._replace(name=name, configs={**topic.configs, **KEEP_EVERYTHING})
        named[topic.name] = topic
    return sorted(named.values())
