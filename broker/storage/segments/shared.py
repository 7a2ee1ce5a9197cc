"""State shared by all segment partitions of a log."""

from __future__ import annotations

from collections.abc import Mapping

from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.segments.pending import Pending
from broker.storage.segments.segment import Segment
from broker.storage.segments.synced_ends import SyncedEnds
from broker.storage.settings import LogSettings
from broker.storage.store.catalog import Topic
from broker.storage.store.database import Store
from broker.storage.topic_configs import Policy

MAX_LOADED_INDEXES = 64


class Shared:
    """Store, files and settings, and the bounded set of loaded indexes."""

    def __init__(
        self,
        store: Store,
        files: Files,
        pending: Pending,
        ends: SyncedEnds,
        failure: Failure,
        settings: LogSettings,
        root: str,
        broker_configs: Mapping[str, str],
        *,
        accept_loss: bool,
    ) -> None:
        self.store = store
        self.files = files
        self.pending = pending
        self.ends = ends
        self.failure = failure
        self.settings = settings
        self.root = root  # directory of the segment files
        self.broker_configs = broker_configs
        self.accept_loss = accept_loss
        self.loaded_indexes: dict[Segment, None] = {}
        self.policies: dict[bytes, Policy] | None = None  # while recovery opens all partitions of topics

    def policy_of(self, topic: Topic) -> Policy:
        if self.policies is None:
            return Policy.of(topic.configs, self.broker_configs, self.settings)
        policy = self.policies.get(topic.topic_id)
        if policy is None:
            policy = self.policies[topic.topic_id] = Policy.of(topic.configs, self.broker_configs, self.settings)
        return policy

    def keep_index(self, segment: Segment) -> None:
        """Note the use of a sealed segment's index, and drop the least recently used one if there are too many."""
        self.loaded_indexes.pop(segment, None)
        self.loaded_indexes[segment] = None
        if len(self.loaded_indexes) > MAX_LOADED_INDEXES:
            oldest = next(iter(self.loaded_indexes))
            del self.loaded_indexes[oldest]
            oldest.drop_index()
