"""Twenty groups on five topics that behave in every way that the tables tell apart, round by round."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.pipelines.truth.members import Members
from tests.kgctl.pipelines.truth.topics import TopicTraffic
from tests.kgctl.pipelines.truth.transacting import TransactionTraffic

TOPICS = {"orders": 3, "payments": 2, "clicks": 4, "audit": 1, "returns": 2}
STEADY, BEHIND, STUCK, ABANDONED, REWINDING, RESTARTING, DELETED, UNEVEN, TRANSACTIONAL = (
    "steady",
    "behind",
    "stuck",
    "abandoned",
    "rewinding",
    "restarting",
    "deleted",
    "uneven",
    "transactional",
)
ROLES = {
    STEADY: 4,
    BEHIND: 4,
    STUCK: 2,
    ABANDONED: 2,
    REWINDING: 1,
    RESTARTING: 4,
    DELETED: 1,
    UNEVEN: 1,
    TRANSACTIONAL: 1,
}
UNEVEN_TOPIC = "clicks"
GROUPS = {f"{role}-{number}": role for role, count in ROLES.items() for number in range(count)}

Place = tuple[str, str, int]


@dataclass
class Traffic:
    """What was acknowledged: `commits` by group, topic and partition in their order, None: deleted; `rebalances` as
    (group, generation, members)."""

    kgctl: Kgctl
    is_kafka: bool
    random: random.Random = field(default_factory=lambda: random.Random(18))
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    commits: dict[Place, list[int | None]] = field(default_factory=dict)
    rebalances: list[tuple[str, int, frozenset[str]]] = field(default_factory=list)
    rounds: int = 0

    def __post_init__(self) -> None:
        self.transactions = TransactionTraffic(self.kgctl, self.is_kafka)
        self.topics = TopicTraffic(self.kgctl)
        self.members = Members(self.kgctl, f"{UNEVEN}-0")

    def create_topics(self) -> None:
        for topic, partitions in TOPICS.items():
            assert self.kgctl("topics", "create", topic, "--partitions", partitions).exit_code == 0
        self.ends = {(topic, part): 0 for topic, count in TOPICS.items() for part in range(count)}
        self.topics.create_topics()
        self.transactions.create_topics()
        for owned in ({UNEVEN_TOPIC: [0, 1, 2]}, {UNEVEN_TOPIC: [3]}, {}):
            self.members.join(owned)
        self.rebalances += [
            (self.members.group, number, members) for number, members in enumerate(self.members.rebalances, 1)
        ]

    def round(self) -> None:
        """Records for every topic, and one step of every group."""
        self._produce()
        self.topics.round()
        self.transactions.round()
        if self.rounds:
            self.topics.delete_records()
        for group, role in GROUPS.items():
            if role == RESTARTING:
                for _ in range(self.random.choice([1, 2])):
                    self._rebalance(group)
            if role == DELETED and self.rounds % 2 == 1:
                self._delete(group)
                continue
            if role == ABANDONED and self.rounds:
                continue
            if role == UNEVEN:
                self._commit_as_members(group)
                continue
            if role == TRANSACTIONAL:
                self._commit_in_transactions(group)
                continue
            with self._committing(group) as consumer:
                for _ in range(1 if role == BEHIND else self.random.choice([1, 2, 3])):
                    self._commit(consumer, group, role)
        self.rounds += 1

    def topics_of(self, group: str) -> list[str]:
        """Each group reads one topic or two, the same ones in every round."""
        if GROUPS[group] == UNEVEN:
            return [UNEVEN_TOPIC]
        names, number = list(TOPICS), list(GROUPS).index(group)
        return [names[number % 5]] if number % 3 else [names[number % 5], names[(number + 1) % 5]]

    def _produce(self) -> None:
        failed: list[object] = []
        producer = Producer({"bootstrap.servers": self.kgctl.bootstrap, "linger.ms": 5})
        for topic, part in self.ends:
            count = self.random.randrange(20, 60)
            for number in range(count):
                producer.produce(
                    topic,
                    b"v%d" % number,
                    partition=part,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
            self.ends[topic, part] += count
        assert producer.flush(60) == 0
        assert not failed, failed[:3]

    @contextlib.contextmanager
    def _committing(self, group: str) -> Iterator[Consumer]:
        consumer = Consumer({"bootstrap.servers": self.kgctl.bootstrap, "group.id": group, "enable.auto.commit": False})
        try:
            yield consumer
        finally:
            consumer.close()

    def _commit(self, consumer: Consumer, group: str, role: str) -> None:
        wanted = self._wanted(group, role)
        done = consumer.commit(
            offsets=[TopicPartition(topic, part, offset) for (topic, part), offset in wanted.items()],
            asynchronous=False,
        )
        assert all(row.error is None for row in done), done
        self._note(group, wanted)

    def _commit_as_members(self, group: str) -> None:
        wanted = self._wanted(group, UNEVEN)
        self.members.commit(wanted)
        self._note(group, wanted)

    def _commit_in_transactions(self, group: str) -> None:
        """The offsets of the second transaction are aborted."""
        wanted = self._wanted(group, TRANSACTIONAL)
        self.transactions.commit_offsets(group, wanted, is_committed=True)
        self._note(group, wanted)
        self.transactions.commit_offsets(group, dict.fromkeys(wanted, 1), is_committed=False)

    def _wanted(self, group: str, role: str) -> dict[tuple[str, int], int]:
        return {
            (topic, part): self._next(
                role, (self.commits.get((group, topic, part)) or [None])[-1], self.ends[topic, part]
            )
            for topic in self.topics_of(group)
            for part in range(TOPICS[topic])
        }

    def _note(self, group: str, offsets: dict[tuple[str, int], int]) -> None:
        for (topic, part), offset in offsets.items():
            self.commits.setdefault((group, topic, part), []).append(offset)

    def _next(self, role: str, before: int | None, end: int) -> int:
        last = before or 0
        if role in (STUCK, ABANDONED):
            return last or end // 3
        if role == BEHIND:
            # Less than what is added in a round, for as many rounds as a test has.
            return last + (end - last) // 30
        if role == UNEVEN:
            return last + (end - last) // 5
        if role == REWINDING:
            return max(0, last - 5) if last > 20 and self.random.random() < 0.4 else last + (end - last) // 2
        return end

    def _rebalance(self, group: str) -> None:
        """A member joins and leaves: two generations."""
        owned = {topic: list(range(TOPICS[topic])) for topic in self.topics_of(group)}
        with member_of(self.kgctl, group, owned) as member_id:
            pass
        made = 2 * sum(1 for name, _, members in self.rebalances if name == group and members)
        self.rebalances += [(group, made + 1, frozenset([member_id])), (group, made + 2, frozenset())]

    def _delete(self, group: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.kgctl.bootstrap})
        admin.delete_consumer_groups([group])[group].result(30)
        for place, offsets in self.commits.items():
            if place[0] == group and offsets[-1] is not None:
                offsets.append(None)
