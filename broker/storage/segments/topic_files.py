"""The file topic.json in the directory of each topic: whose records these are, in case the store is lost.

The store stays the only authority. Each flush writes the files of changed topics before it commits, so a file may be
one change ahead after a crash; a start writes those that are missing or differ.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.storage.files import Files, guarded
from broker.storage.store.catalog import Topic
from broker.storage.store.database import Store

NAME = "topic.json"
DRAFT_NAME = "topic.json.draft"
FORMAT = 1
# With more files, as at the first start of a newer version, two syncs of the file system replace those of each file.
MANY = 32


class TopicDescription(NamedTuple):
    """The content of a topic file. `commit_seq`: of the commit that followed it; the newer of two has the larger one."""

    name: str
    topic_id: bytes
    partition_count: int
    internal: bool
    configs: dict[str, str]
    cluster_id: str
    commit_seq: int

    @classmethod
    def of(cls, topic: Topic, cluster_id: str, commit_seq: int) -> TopicDescription:
        return cls(
            topic.name,
            topic.topic_id,
            topic.partition_count,
            topic.internal,
            dict(topic.configs),
            cluster_id,
            commit_seq,
        )

    def encode(self) -> bytes:
        fields = {
            "format": FORMAT,
            "name": self.name,
            "topic_id": self.topic_id.hex(),
            "partitions": self.partition_count,
            "internal": self.internal,
            "configs": self.configs,
            "cluster_id": self.cluster_id,
            "commit": self.commit_seq,
        }
        return json.dumps({**fields, "crc": _crc(fields)}).encode() + b"\n"

    @classmethod
    def decode(cls, content: bytes) -> TopicDescription | None:
        """None if the content is damaged or of a newer format."""
        try:
            fields = json.loads(content)
            crc = fields.pop("crc")
            if crc != _crc(fields) or fields["format"] != FORMAT:
                return None
            return cls(
                fields["name"],
                bytes.fromhex(fields["topic_id"]),
                fields["partitions"],
                fields["internal"],
                fields["configs"],
                fields["cluster_id"],
                fields["commit"],
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class TopicFiles:
    """Writes the files of topics that have a directory, which they get with their first record."""

    def __init__(self, files: Files, store: Store, root: str) -> None:
        self._files = files
        self._store = store
        self._root = root
        self._changed: dict[bytes, Topic] = {}

    def note(self, topic: Topic) -> None:
        """The next flush has to write the file of this topic."""
        self._changed[topic.topic_id] = topic

    def forget(self, topic: Topic) -> None:
        self._changed.pop(topic.topic_id, None)

    def note_outdated(self, topics: Iterable[Topic]) -> None:
        """Note the topics whose file is missing, damaged or different."""
        directories = set(os.listdir(self._root)) if os.path.isdir(self._root) else set()
        cluster_id = self._cluster_id()
        for topic in topics:
            if topic.topic_id.hex() in directories:
                found = read_topic_file(self._files, self._directory(topic))
                if found is None or found != TopicDescription.of(topic, cluster_id, found.commit_seq):
                    self.note(topic)

    def write(self) -> list[str]:
        """Write the files of changed topics. Return the directories that the caller must sync."""
        if not self._changed:
            return []
        topics = [topic for topic in self._changed.values() if os.path.isdir(self._directory(topic))]
        self._changed.clear()
        is_many = len(topics) > MANY
        cluster_id, commit_seq = self._cluster_id(), self._store.evidence.seq + 1
        for topic in topics:
            self._write_draft(topic, TopicDescription.of(topic, cluster_id, commit_seq).encode(), sync=not is_many)
        if is_many:
            self._sync_everything()
        for topic in topics:
            path = self._path(topic)
            guarded("rename", path, self._files.ops.rename, self._path(topic, DRAFT_NAME), path)
        if is_many:
            self._sync_everything()
            return []
        return [self._directory(topic) for topic in topics]

    def _write_draft(self, topic: Topic, content: bytes, *, sync: bool) -> None:
        path = self._path(topic, DRAFT_NAME)
        self._files.unlink(path)
        draft = self._files.get(path, create=True, exclusive=True)
        draft.write(content, 0)
        if sync:
            self._files.sync(draft)
        self._files.forget(path)

    def _sync_everything(self) -> None:
        if self._files.durable:
            guarded("sync", self._root, self._files.ops.sync_everything)

    def _cluster_id(self) -> str:
        return self._store.meta("cluster_id") or ""

    def _directory(self, topic: Topic) -> str:
        return os.path.join(self._root, topic.topic_id.hex())

    def _path(self, topic: Topic, name: str = NAME) -> str:
        return os.path.join(self._directory(topic), name)


def read_topic_file(files: Files, directory: str) -> TopicDescription | None:
    """None if it is missing or damaged."""
    path = os.path.join(directory, NAME)
    if not os.path.exists(path):
        return None
    file = files.get(path)
    content = file.read(file.size(), 0)
    files.forget(path)
    return TopicDescription.decode(content)


def _crc(fields: dict[str, object]) -> int:
    crc: int = google_crc32c.value(json.dumps(fields, sort_keys=True).encode())
    return crc
