"""Topics, their configs and the dynamic broker configs, in the store and in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from broker.light_dataclasses import dataclass, field
from broker.protocol import uuids
from broker.storage.store.database import Store
from broker.storage.store.values import as_bytes, as_int, as_text


@dataclass(slots=True)
class Topic:
    """A live view: partition_count and configs change when the topic is altered."""

    name: str
    topic_id: bytes  # 16 bytes
    partition_count: int
    configs: dict[str, str] = field(default_factory=dict)  # only what was set on the topic
    internal: bool = False


class Topics(Mapping[str, Topic]):
    """Topics by name and by id.

    `version` counts the changes since the start: topics created or deleted, or with more partitions. `created` is the version
    when the last topic was created.
    """

    def __init__(self) -> None:
        self.version = self.created = 0
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[bytes, Topic] = {}

    def __getitem__(self, name: str) -> Topic:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def by_id(self, topic_id: bytes) -> Topic | None:
        return self._by_id.get(topic_id)

    def _put(self, topic: Topic) -> None:
        self._by_name[topic.name] = topic
        self._by_id[topic.topic_id] = topic
        self._changed()
        self.created = self.version

    def _changed(self) -> None:
        self.version += 1

    def _drop(self, topic: Topic) -> None:
        del self._by_name[topic.name]
        del self._by_id[topic.topic_id]
        self._changed()


class Catalog:
    """Every change is part of the store's transaction and durable after the next flush."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.topics = Topics()
        self.broker_configs: dict[str, str] = {}
        configs: dict[bytes, dict[str, str]] = {}
        for topic_id, name, value in store.query("SELECT topic_id, name, value FROM topic_configs"):
            configs.setdefault(as_bytes(topic_id), {})[as_text(name)] = as_text(value)
        rows = store.query("SELECT topic_id, name, partition_count, internal FROM topics ORDER BY name")
        for topic_id, name, count, internal in rows:
            id_ = as_bytes(topic_id)
            self.topics._put(Topic(as_text(name), id_, as_int(count), configs.get(id_, {}), bool(internal)))
        for name, value in store.query("SELECT name, value FROM broker_configs"):
            self.broker_configs[as_text(name)] = as_text(value)

    def create(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str],
        *,
        internal: bool,
        topic_id: bytes | None = None,
    ) -> Topic:
        if name in self.topics:
            raise ValueError(f"topic {name} exists")
        topic = Topic(name, topic_id or uuids.chosen(os.urandom), partition_count, dict(configs), internal)
        self._store.execute(
            "INSERT INTO topics VALUES (?, ?, ?, ?)", (topic.topic_id, name, partition_count, int(internal))
        )
        self._store_configs(topic, configs)
        self.topics._put(topic)
        return topic

    def delete(self, name: str) -> Topic:
        topic = self.topics[name]
        self._store.execute("DELETE FROM topics WHERE topic_id = ?", (topic.topic_id,))
        self._store.execute("DELETE FROM topic_configs WHERE topic_id = ?", (topic.topic_id,))
        self.topics._drop(topic)
        return topic

    def add_partitions(self, name: str, total: int) -> Topic:
        topic = self.topics[name]
        if total <= topic.partition_count:
            raise ValueError(f"topic {name} already has {topic.partition_count} partitions")
        self._store.execute("UPDATE topics SET partition_count = ? WHERE topic_id = ?", (total, topic.topic_id))
        topic.partition_count = total
        self.topics._changed()
        return topic

    def alter_topic_configs(self, name: str, changes: Mapping[str, str | None]) -> Topic:
        topic = self.topics[name]
        self._store_configs(topic, changes)
        _apply(topic.configs, changes)
        return topic

    def _store_configs(self, topic: Topic, changes: Mapping[str, str | None]) -> None:
        for name, value in changes.items():
            if value is None:
                sql = "DELETE FROM topic_configs WHERE topic_id = ? AND name = ?"
                self._store.execute(sql, (topic.topic_id, name))
            else:
                sql = "INSERT INTO topic_configs VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
                self._store.execute(sql, (topic.topic_id, name, value))

    def alter_broker_configs(self, changes: Mapping[str, str | None]) -> None:
        for name, value in changes.items():
            if value is None:
                self._store.execute("DELETE FROM broker_configs WHERE name = ?", (name,))
            else:
                sql = "INSERT INTO broker_configs VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
                self._store.execute(sql, (name, value))
        _apply(self.broker_configs, changes)


def _apply(configs: dict[str, str], changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            configs.pop(name, None)
        else:
            configs[name] = value
