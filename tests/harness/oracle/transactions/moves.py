"""The requests of transactional clients, and which of them a well-behaved client would send next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.harness.oracle.transactions.names import BOGUS_PRODUCER
from tests.harness.oracle.transactions.producers import LAST_EPOCH, VERSIONS, Place, Producer, Step

if TYPE_CHECKING:
    from tests.harness.oracle.transactions.generate import Walk

ADMIN = "admin"
NO_TOPIC = "walk-none"
Identity = tuple["str | int", int]


class Moves:
    """Requests that a walk can choose from."""

    def __init__(self, walk: Walk) -> None:
        self.walk, self.producers, self.rng = walk, walk.producers, walk.rng

    def version(self, producer: Producer, api: str) -> int:
        return self.rng.choice(VERSIONS[producer.age][api])

    def places(self, most: int = 2) -> list[Place]:
        places = self.walk.places
        return self.rng.sample(places, min(len(places), self.rng.randint(1, most)))

    # ---- transactions

    def init(self, producer: Producer, identity: Identity = (-1, -1), **changed: Any) -> Step:
        producer_id, epoch = identity
        version = self.version(producer, "InitProducerId")
        if producer_id != -1 and version < 3:
            version = self.rng.choice((3, 4, 5))
        fields = {
            "transactional_id": producer.transactional_id,
            "transaction_timeout_ms": producer.timeout_ms,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        return self.walk.step(producer, "InitProducerId", version, **fields | changed)

    def add_partitions(
        self, producer: Producer, places: list[Place], identity: Identity | None = None, version: int | None = None
    ) -> Step:
        producer_id, epoch = identity or producer.identity()
        fields = {
            "v3_and_below_transactional_id": producer.transactional_id or "",
            "v3_and_below_producer_id": producer_id,
            "v3_and_below_producer_epoch": epoch,
            "v3_and_below_topics": by_topic(places),
        }
        version = self.version(producer, "AddPartitionsToTxn") if version is None else version
        return self.walk.step(producer, "AddPartitionsToTxn", version, **fields)

    def add_offsets(self, producer: Producer, group: str, identity: Identity | None = None) -> Step:
        producer_id, epoch = identity or producer.identity()
        return self.walk.step(
            producer,
            "AddOffsetsToTxn",
            self.version(producer, "AddOffsetsToTxn"),
            transactional_id=producer.transactional_id or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            group_id=group,
        )

    def end(
        self, producer: Producer, committed: bool, identity: Identity | None = None, version: int | None = None
    ) -> Step:
        producer_id, epoch = identity or producer.identity()
        return self.walk.step(
            producer,
            "EndTxn",
            self.version(producer, "EndTxn") if version is None else version,
            transactional_id=producer.transactional_id or "",
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )

    # ---- records

    def produce(
        self,
        producer: Producer,
        batches: dict[Place, dict[str, Any]],
        *,
        transactional_id: str | None = "own",
        version: int | None = None,
    ) -> Step:
        version = self.version(producer, "Produce") if version is None else version
        topics = []
        for topic in dict.fromkeys(topic for topic, _ in batches):
            topics.append(
                {
                    "name": topic,
                    "topic_id": f"{topic}.id",
                    "partition_data": [
                        {"index": partition, "records": [batch]}
                        for (name, partition), batch in batches.items()
                        if name == topic
                    ],
                }
            )
        return self.walk.step(
            producer,
            "Produce",
            version,
            transactional_id=producer.transactional_id if transactional_id == "own" else transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=topics,
        )

    def next_batches(self, producer: Producer, places: list[Place]) -> dict[Place, dict[str, Any]]:
        return {
            place: producer.batch(place, self.walk.number + 10 * at, self.rng.choice((1, 1, 2, 3)))
            for at, place in enumerate(places)
        }

    # ---- offsets

    def commit_in_transaction(
        self,
        producer: Producer,
        group: str,
        identity: Identity | None = None,
        member: dict[str, Any] | None = None,
        version: int | None = None,
    ) -> Step:
        producer_id, epoch = identity or producer.identity()
        member = self.walk.members.identity(group) if member is None else member
        version = self.version(producer, "TxnOffsetCommit") if version is None else version
        return self.walk.step(
            producer,
            "TxnOffsetCommit",
            version,
            transactional_id=producer.transactional_id or "",
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=self.offsets(group, member),
            **member,
        )

    def offsets(self, group: str, member: dict[str, Any]) -> list[dict[str, Any]]:
        places = self.places(3)
        if self.rng.random() < 0.1:
            places.append((NO_TOPIC, 0))
        if self.rng.random() < 0.05:
            places.append((places[0][0], 7))
        topics = [
            {"name": topic, "partitions": [self._offset(p) for t, p in places if t == topic]}
            for topic in dict.fromkeys(t for t, _ in places)
        ]
        if member["generation_id"] < 0 and self.walk.state.get(group, ["Dead"])[0] == "Dead":
            # If all its metadata were too long, Kafka would create a group that only some requests see.
            for partition in (partition for topic in topics for partition in topic["partitions"]):
                partition["committed_metadata"] = "short"
        return topics

    def _offset(self, partition: int) -> dict[str, Any]:
        return {
            "partition_index": partition,
            "committed_offset": self.rng.choice((0, 7, self.walk.number)),
            "committed_leader_epoch": self.rng.choice((-1, -1, 0)),
            "committed_metadata": self.walk.weighed((5, ""), (2, "note"), (1, None), (0.5, "x" * 4097)),
        }

    def any_identity(self, producer: Producer, right: float) -> Identity:
        """What a producer says it is: right in some cases, otherwise wrong in one respect."""
        if self.rng.random() < right:
            return producer.identity()
        producer_id, epoch = producer.identity()
        others = [one.identity() for one in self.producers.all if one is not producer and one.is_known]
        current = self.walk.current(producer.transactional_id)
        return self.walk.weighed(  # type: ignore[no-any-return]
            (2, (producer_id, max(epoch - 1, 0))),
            (2, (producer_id, min(epoch + 1, LAST_EPOCH))),
            (0.5, (producer_id, min(epoch + 5, LAST_EPOCH))),
            (1, (BOGUS_PRODUCER, max(epoch, 0))),
            (2 if producer.former else 0, self.rng.choice(producer.former or [(-1, -1)])),
            (1 if others else 0, self.rng.choice(others or [(-1, -1)])),
            (1.5 if current else 0, current or (-1, -1)),
            (0.3, (producer_id, -1)),
        )


class Onward(Moves):
    """The requests that a well-behaved client would send next."""

    def step(self, producer: Producer) -> Step:
        if producer.is_fenced:
            # Its process starts again.
            producer.is_fenced = False
            producer.ends()
            return self.init(producer)
        if not producer.is_known:
            return self.init(producer)
        if producer.transactional_id is None:
            return self._idempotent(producer)
        if producer.must_abort and producer.in_transaction and self.rng.random() < 0.8:
            return self.end(producer, False)
        if producer.must_init or producer.must_abort:
            producer.must_abort = False
            return self.init(producer, producer.identity() if self.rng.random() < 0.8 else (-1, -1))
        step: Step = (self._implicit if producer.is_implicit else self._explicit)(producer)
        return step

    def _idempotent(self, producer: Producer) -> Step:
        if producer.must_abort or producer.must_init:
            producer.must_abort = producer.must_init = False
            return self.init(producer, producer.identity() if self.rng.random() < 0.7 else (-1, -1))
        return self.produce(producer, self.next_batches(producer, self.places()))

    def _implicit(self, producer: Producer) -> Step:
        group = self.rng.choice(self.walk.groups)
        ready = 1.0 if producer.in_transaction else 0.1
        made: Step = self.walk.weighed(
            (4, lambda: self.produce(producer, self.next_batches(producer, self.places()))),
            (2, lambda: self.commit_in_transaction(producer, group)),
            (2.5 * ready, lambda: self.end(producer, True)),
            (1.2 * ready, lambda: self.end(producer, False)),
        )()
        return made

    def _explicit(self, producer: Producer) -> Step:
        group = self.rng.choice(sorted(producer.groups) or self.walk.groups)
        added = sorted(producer.added)
        ready = 1.0 if producer.in_transaction else 0.1
        made: Step = self.walk.weighed(
            (1.5 if added else 4, lambda: self.add_partitions(producer, self.places())),
            (1, lambda: self.add_offsets(producer, self.rng.choice(self.walk.groups))),
            (
                4 if added else 0,
                lambda: self.produce(
                    producer,
                    self.next_batches(producer, self.rng.sample(added, self.rng.randint(1, min(2, len(added))))),
                ),
            ),
            (3 if producer.groups else 0, lambda: self.commit_in_transaction(producer, group)),
            (2.2 * ready, lambda: self.end(producer, True)),
            (1.2 * ready, lambda: self.end(producer, False)),
        )()
        return made


def by_topic(places: list[Place]) -> list[dict[str, Any]]:
    return [
        {"name": topic, "partitions": sorted({p for t, p in places if t == topic}, key=str)}
        for topic in dict.fromkeys(t for t, _ in places)
    ]
