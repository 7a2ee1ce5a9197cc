"""A group of kgctl's consumer and other clients: whoever leads, all understand the assignment, and no record is missed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh

PARTITIONS = 6
SESSION_TIMEOUT_MS = 10_000

# librdkafka has no sticky assignor, and that of kafka-python 3.0.12 writes a version before its user data that no other client
# expects: members share the partitions, but those of the other client do not keep theirs. See tests/reference for Java.
MIXED = [
    pytest.param("range", ("confluent-kafka", "kafka-python"), id="range"),
    pytest.param("cooperative-sticky", ("confluent-kafka", "kafka-python"), id="cooperative-sticky"),
    pytest.param("roundrobin", ("confluent-kafka", "kafka-python"), id="roundrobin", marks=pytest.mark.soak),
    pytest.param("sticky", ("kafka-python",), id="sticky", marks=pytest.mark.soak),
]


class Mixed:
    """One group with members of several clients."""

    def __init__(self, cluster: Cluster, assignor: str) -> None:
        pytest.importorskip("confluent_kafka")
        self._client, self._cluster, self._assignor = client_named("confluent-kafka"), cluster, assignor
        self._name = fresh("mixed")
        self.topic = make_topic(self._client, cluster, PARTITIONS, "mixed")
        self._groups: dict[str, Group] = {}
        self._stack = contextlib.ExitStack()
        self._sent = 0

    def __enter__(self) -> Mixed:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def of(self, client: str) -> Group:
        if client not in self._groups:
            self._groups[client] = self._stack.enter_context(
                Group(
                    client,
                    self._cluster.bootstrap_servers,
                    self._name,
                    self.topic,
                    assignor=self._assignor,
                    session_timeout_ms=SESSION_TIMEOUT_MS,
                )
            )
        return self._groups[client]

    def shares(self) -> list[set[int]]:
        return [set(member.owned) for group in self._groups.values() for member in group.live()]

    def wait_until_shared(self, *sizes: int) -> None:
        def shared() -> bool:
            parts = self.shares()
            return sorted(p for part in parts for p in part) == list(range(PARTITIONS)) and sorted(
                map(len, parts)
            ) == sorted(sizes)

        eventually(shared, f"shares of {sizes}")

    def all_partitions_deliver(self) -> None:
        """New records of all partitions arrive at some member."""
        batch = values(f"after-{self._sent}", 5 * PARTITIONS)
        self._sent += len(batch)
        produce(self._client, self._cluster, self.topic, batch, PARTITIONS)
        eventually(lambda: set(batch) <= set(self._received()), "all records")

    def _received(self) -> Iterator[str]:
        return (value for group in self._groups.values() for _, _, value in list(group.received))

    def received_twice(self) -> list[str]:
        received = list(self._received())
        return [value for value in set(received) if received.count(value) > 1]


@pytest.mark.flaky(reruns=2)  # kafka-python 3.0.12 sometimes never starts fetching its partitions.
@pytest.mark.parametrize("leader", ["ours", "theirs"])
@pytest.mark.parametrize(("assignor", "others"), MIXED)
def test_members_of_several_clients_share_a_group_whoever_leads(
    our_cluster: Cluster, assignor: str, others: tuple[str, ...], leader: str
) -> None:
    order = ["kgctl", *others] if leader == "ours" else [*others, "kgctl"]
    with Mixed(our_cluster, assignor) as mixed:
        for number, client in enumerate(order, 1):
            mixed.of(client).start(1)
            mixed.wait_until_shared(*_even(number))
        mixed.all_partitions_deliver()
        # The leader leaves: another client assigns from what the others report.
        mixed.of(order[0]).members[0].leave()
        mixed.wait_until_shared(*_even(len(order) - 1))
        mixed.all_partitions_deliver()


def _even(members: int) -> list[int]:
    share, extra = divmod(PARTITIONS, members)
    return [share + (number < extra) for number in range(members)]


@pytest.mark.parametrize("leader", ["ours", "theirs"])
def test_a_cooperative_group_of_two_clients_revokes_only_what_moves(our_cluster: Cluster, leader: str) -> None:
    first, second = ("kgctl", "confluent-kafka") if leader == "ours" else ("confluent-kafka", "kgctl")
    with Mixed(our_cluster, "cooperative-sticky") as mixed:
        (old,) = mixed.of(first).start(1)
        mixed.wait_until_shared(6)
        mixed.all_partitions_deliver()
        since = len(old.events)
        (new,) = mixed.of(second).start(1)
        mixed.wait_until_shared(3, 3)
        mixed.all_partitions_deliver()
        revoked = [p for event in old.events[since:] if event["event"] == "revoked" for p in event["partitions"]]
        assert sorted(revoked) == sorted(new.owned)
        (third,) = mixed.of("kgctl").start(1)
        mixed.wait_until_shared(2, 2, 2)
        kept = old.owned | new.owned
        mixed.all_partitions_deliver()
        third.leave()
        mixed.wait_until_shared(3, 3)
        assert kept <= old.owned | new.owned
        mixed.all_partitions_deliver()
        assert mixed.received_twice() == []
