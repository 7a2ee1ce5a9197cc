"""The reads of topics: all of them with their offsets, and what their logs take."""

from __future__ import annotations

import time
from typing import ClassVar

from broker.light_dataclasses import dataclass
from kgctl.client.admin.admin import Admin
from kgctl.model.watched_topics import TopicsSnapshot, TopicStorage
from kgctl.tui.feed.read import Read


@dataclass(frozen=True, slots=True)
class Topics(Read[TopicsSnapshot]):
    """All topics now, internal ones included."""

    def run(self, admin: Admin) -> TopicsSnapshot:
        topics = admin.list_topics()
        partitions = admin.describe_topics()
        return TopicsSnapshot(time.monotonic(), int(time.time() * 1000), tuple(topics), tuple(partitions))


@dataclass(frozen=True, slots=True)
class Storage(Read[TopicStorage]):
    """What the logs of all topics take. Brokers look into each log, so ask rarely."""

    is_long: ClassVar[bool] = True

    def run(self, admin: Admin) -> TopicStorage:
        return admin.topic_storage()
