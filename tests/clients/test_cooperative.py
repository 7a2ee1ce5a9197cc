"""Cooperative rebalances of librdkafka: only partitions that move are revoked, and consumption continues meanwhile."""

from __future__ import annotations

import contextlib
import signal

import pytest

from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from tests.clients.adapters import client_named
from tests.clients.group import Group, Member
from tests.clients.records import make_topic, produce, values
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.wire_client import WireClient

ASSIGNOR = "cooperative-sticky"
PARTITIONS = 6
# Long enough that the rebalance waits for a suspended member.
SESSION_TIMEOUT_MS = 10_000


def partitions_of(member: Member, kind: str, since: int = 0) -> list[int]:
    """The partitions of its callbacks of this kind, from event `since` on, with repetitions."""
    return sorted(p for event in member.events[since:] if event["event"] == kind for p in event["partitions"])


def phases(cluster: Cluster, group: str) -> tuple[str, dict[str, str]]:
    """The state of the group, and the phase of each member by client id."""
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    with WireClient((host, int(port))) as wire:
        (found,) = wire.ask(DescribeGroupDetailsRequest(groups=[group])).groups
    return found.group_state, {member.client_id: member.phase for member in found.members}


def test_a_join_revokes_only_what_the_new_member_gets_and_a_leave_revokes_nothing(cluster: Cluster) -> None:
    pytest.importorskip("confluent_kafka")
    client = client_named("confluent-kafka")
    topic, sent = make_topic(client, cluster, PARTITIONS, "moved"), list[str]()
    with Group("confluent-kafka", cluster.bootstrap_servers, fresh("moved"), topic, assignor=ASSIGNOR) as group:

        def all_partitions_deliver() -> None:
            batch = values(f"with-{len(group.live())}-after-{len(sent)}", PARTITIONS * 5)
            sent.extend(batch)
            produce(client, cluster, topic, batch, PARTITIONS)
            group.wait_until_received(set(sent))
            group.wait_until_committed(dict.fromkeys(range(PARTITIONS), len(sent) // PARTITIONS))

        first, second = group.start(2)
        group.wait_until_shared([3, 3])
        all_partitions_deliver()
        before = {member.name: (set(member.owned), len(member.events)) for member in (first, second)}

        (third,) = group.start(1)
        group.wait_until_shared([2, 2, 2])
        all_partitions_deliver()
        for member in (first, second):
            owned, since = before[member.name]
            assert partitions_of(member, "revoked", since) == sorted(owned & third.owned)
            assert partitions_of(member, "assigned", since) == []
        assert (partitions_of(third, "assigned"), partitions_of(third, "revoked")) == (sorted(third.owned), [])

        left = set(second.owned)
        marks = [(member, len(member.events)) for member in (first, third)]
        second.leave()
        group.wait_until_shared([3, 3])
        all_partitions_deliver()
        assert [partitions_of(member, "revoked", since) for member, since in marks] == [[], []]
        assert sorted(
            partitions_of(first, "assigned", marks[0][1]) + partitions_of(third, "assigned", marks[1][1])
        ) == sorted(left)
        assert group.received_more_than_once() == []


def test_members_consume_while_a_rebalance_waits_for_one_of_them(our_cluster: Cluster) -> None:
    pytest.importorskip("confluent_kafka")
    client, name = client_named("confluent-kafka"), fresh("waiting")
    topic = make_topic(client, our_cluster, PARTITIONS, "waiting")
    with Group(
        "confluent-kafka",
        our_cluster.bootstrap_servers,
        name,
        topic,
        assignor=ASSIGNOR,
        session_timeout_ms=SESSION_TIMEOUT_MS,
    ) as group:
        first, second = group.start(2)
        group.wait_until_shared([3, 3])
        kept = set(first.owned)

        second.child.send_signal(signal.SIGSTOP)
        (third,) = group.start(1)
        waiting = ("PreparingRebalance", {first.name: "joined", second.name: "join awaited", third.name: "joined"})
        eventually(lambda: phases(our_cluster, name) == waiting, "a rebalance that waits only for the second member")
        since = len(first.events)
        # Only one record: its commit waits behind the JoinGroup on the same connection, and the member waits for the commit.
        with contextlib.closing(client.producer(our_cluster.bootstrap_servers)) as producer:
            producer.send(topic, b"meanwhile", partition=min(kept))
            producer.flush(20)
        group.wait_until_received({"meanwhile"})
        assert phases(our_cluster, name) == waiting
        assert [event["event"] for event in first.events[since:]] == ["records"]

        second.child.send_signal(signal.SIGCONT)
        group.wait_until_shared([2, 2, 2])
        assert first.owned < kept
        assert partitions_of(first, "revoked", since) == sorted(kept - first.owned)
