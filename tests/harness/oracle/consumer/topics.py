"""Topics of walks. Walks that change no topics share them: creating topics takes a real Kafka long."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.wire_types import ZERO_UUID
from tests.harness.oracle.consumer import hashes
from tests.harness.oracle.over_socket import Address
from tests.harness.wire_client import WireClient

WITHIN_S = 20.0
CANDIDATES = 4  # topics of each name that are created in order to keep one
ROOM = 0.06  # for a topic that a walk creates later: one of 16 has an id that is in order


class NoTopics(Exception):
    """Topics do not appear, or none has an id in order."""


@dataclass
class TopicSet:
    """Topics with ids in order. `names` are those of all topics of the walk, also of those that do not exist yet."""

    prefix: str
    names: dict[str, str]
    ids: dict[str, bytes]
    counts: dict[str, int]


class TopicSets:
    def __init__(self, address: Address, settle_s: float = 0.0) -> None:
        """`settle_s`: how long a coordinator may take to hear of a topic that the broker shows already."""
        self.address, self.settle_s = address, settle_s
        self._shared: dict[tuple[tuple[str, int], ...], TopicSet] = {}
        self._lock = threading.Lock()

    def shared(self, topics: Mapping[str, int]) -> TopicSet:
        key = tuple(topics.items())
        with self._lock:
            if key not in self._shared:
                self._shared[key] = self.own(topics, 0.0)
            return self._shared[key]

    def own(self, topics: Mapping[str, int], room: float = ROOM) -> TopicSet:
        """New topics with these symbols and counts; those with the count 0 are only named."""
        prefix = f"walk-{uuid.uuid4().hex[:8]}-"
        names = {symbol: hashes.named(stem_of(prefix, symbol), at) for at, symbol in enumerate(topics)}
        counts = {symbol: count for symbol, count in topics.items() if count}
        slots = list(topics)
        with Topics(self.address) as made:
            for _ in range(50):
                wanted = {
                    symbol: hashes.some_named(stem_of(prefix, symbol), slots.index(symbol), CANDIDATES)
                    for symbol in counts
                }
                ids = made.create({name: counts[symbol] for symbol, found in wanted.items() for name in found})
                kept = hashes.chosen([[ids[name] for name in found] for found in wanted.values()], room)
                made.delete([name for name, topic_id in ids.items() if topic_id not in (kept or ())])
                if kept:
                    by_id = {topic_id: name for name, topic_id in ids.items()}
                    names |= {symbol: by_id[topic_id] for symbol, topic_id in zip(counts, kept, strict=True)}
                    time.sleep(self.settle_s)
                    return TopicSet(prefix, names, dict(zip(counts, kept, strict=True)), counts)
        raise NoTopics("no topic ids in order")


class Topics:
    """Creates and deletes topics, and waits until that is seen."""

    def __init__(self, address: Address) -> None:
        self._client = WireClient(address, client_id="control", timeout_s=WITHIN_S)

    def __enter__(self) -> Topics:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def create(self, counts: Mapping[str, int]) -> dict[str, bytes]:
        """The ids of the new topics."""
        wanted = [
            CreateTopicsRequest.Topic(name=name, num_partitions=count, replication_factor=1)
            for name, count in counts.items()
        ]
        answer = self._client.ask(CreateTopicsRequest(topics=wanted), 7)
        assert not any(one.error_code for one in answer.topics), answer
        self.wait_for(counts, {one.name: one.topic_id for one in answer.topics})
        return {one.name: one.topic_id for one in answer.topics}

    def delete(self, names: list[str]) -> None:
        if names:
            self._client.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), 5)
            self.wait_for(dict.fromkeys(names, 0))

    def exists(self, name: str) -> bool:
        return self.id_of(name) != ZERO_UUID

    def id_of(self, name: str) -> bytes:
        topics = [MetadataRequest.Topic(name=name)]
        found: bytes = self._client.ask(MetadataRequest(topics=topics), 12).topics[0].topic_id
        return found

    def wait_for(self, counts: Mapping[str, int], ids: Mapping[str, bytes] | None = None) -> None:
        """Until these topics have this many partitions and these ids; 0: until they are gone."""
        asked = [MetadataRequest.Topic(name=name) for name in counts]
        deadline = time.monotonic() + WITHIN_S
        while True:
            found = self._client.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12).topics
            partitions = {one.name: 0 if one.error_code else len(one.partitions) for one in found}
            if partitions == counts and all((ids or {}).get(one.name, one.topic_id) == one.topic_id for one in found):
                return
            if time.monotonic() > deadline:
                raise NoTopics(f"topics do not appear: {partitions}")
            time.sleep(0.005)


def stem_of(prefix: str, symbol: str) -> str:
    """What the name of a topic begins with: regular expressions tell topics apart by their letters."""
    return f"{prefix}{symbol[1:].lower()}"
