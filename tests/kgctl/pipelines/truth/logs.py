"""The logs of a cluster as librdkafka reads them: the truth that tables are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.kgctl.pipelines.transforms.oracle_decode import at, expected
from tests.kgctl.pipelines.truth.traffic import GROUPS, TOPICS

OFFSETS_TOPIC = "__consumer_offsets"


@dataclass(frozen=True)
class Stored:
    """A record of `__consumer_offsets`."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass
class Logs:
    """Each reading adds what is new, so records that are compacted away later stay known."""

    bootstrap: str
    offsets: dict[tuple[int, int], Stored] = field(default_factory=dict)
    # By topic and partition: the timestamp of each record, ms.
    times: dict[tuple[str, int], dict[int, int]] = field(default_factory=dict)

    def read(self) -> None:
        for message in self._records([OFFSETS_TOPIC, *TOPICS]):
            topic, part, offset = message.topic(), message.partition(), message.offset()
            _, timestamp_ms = message.timestamp()
            if topic == OFFSETS_TOPIC:
                self.offsets[part, offset] = Stored(message.key(), message.value(), timestamp_ms)
            else:
                self.times.setdefault((topic, part), {})[offset] = timestamp_ms

    def _records(self, topics: list[str]) -> list[Any]:
        options = {"bootstrap.servers": self.bootstrap, "group.id": "truth", "enable.auto.commit": False}
        consumer = Consumer({**options, "enable.partition.eof": True})
        try:
            partitions = [
                TopicPartition(topic, part, 0)
                for topic in topics
                for part in consumer.list_topics(topic, 30).topics[topic].partitions
            ]
            consumer.assign(partitions)
            found, ended = list[Any](), 0
            while ended < len(partitions):
                for message in consumer.consume(10_000, 0.2):
                    error = message.error()
                    if error is None:
                        found.append(message)
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        ended += 1
            return found
        finally:
            consumer.close()

    def end_at(self, topic: str, part: int, at_ms: float) -> int:
        """The offset of the first record of at least this time, or the end of the log."""
        times = self.times[topic, part]
        return next((offset for offset, time_ms in sorted(times.items()) if time_ms >= at_ms), max(times) + 1)

    def decoded(self, kind: str) -> dict[tuple[int, int], tuple[Any, ...]]:
        """The rows of `commits` or `group_events` of the groups of the traffic, by partition and offset, with `log_ts` at the end."""
        places = sorted(self.offsets)
        rows = expected((self.offsets[place].key, self.offsets[place].value) for place in places)
        assert not rows.quarantine
        made: dict[int, tuple[Any, ...]] = getattr(rows, kind)
        found = {places[number]: (*row, at(self.offsets[places[number]].timestamp_ms)) for number, row in made.items()}
        return {place: row for place, row in found.items() if row[0] in GROUPS}


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
