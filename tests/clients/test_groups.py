"""Groups of several processes share partitions, survive a killed member, and lose nothing."""

from __future__ import annotations

import contextlib

import pytest

from tests.clients.adapters import Client
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.clusters import Cluster, fresh

PARTITIONS = 6


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_survivors_take_over_the_partitions_of_a_killed_member(
    cluster: Cluster, client: Client, client_name: str, assignor: str
) -> None:
    if assignor not in client.ASSIGNORS:
        pytest.skip(f"{client_name} has no {assignor} assignor")
    topic = make_topic(client, cluster, PARTITIONS, "groups")
    with Group(client_name, cluster.bootstrap_servers, fresh("three"), topic, assignor=assignor) as group:
        _, second, _ = group.start(3)
        group.wait_until_shared([2, 2, 2])
        before = values("before", 60)
        produce(client, cluster, topic, before, PARTITIONS)
        group.wait_until_received(set(before))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 10))
        assert group.received_more_than_once() == []

        second.kill()
        group.wait_until_shared([3, 3])
        after = values("after", 60)
        produce(client, cluster, topic, after, PARTITIONS)
        group.wait_until_received(set(after))
        # Everything was committed before the kill, so nothing is received twice.
        assert group.received_more_than_once() == []


# test_cooperative.py proves more for librdkafka, and aiokafka has no cooperative assignor.
@pytest.mark.parametrize("client_name", ["kafka-python"], indirect=True)
def test_a_cooperative_member_keeps_the_partitions_that_do_not_move(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, cluster, PARTITIONS, "cooperative")
    with Group(
        client_name, cluster.bootstrap_servers, fresh("cooperative"), topic, assignor="cooperative-sticky"
    ) as group:
        (first,) = group.start(1)
        group.wait_until_shared([6])
        group.start(1)
        group.wait_until_shared([3, 3])
        assert len(first.ever_revoked) == 3  # an eager rebalance takes all six away


def test_a_group_resumes_at_its_committed_offsets(cluster: Cluster, client: Client, client_name: str) -> None:
    topic = make_topic(client, cluster, 2, "resume")
    name = fresh("resume")
    first, second = values("first", 20), values("second", 20)
    produce(client, cluster, topic, first, partitions=2)
    with Group(client_name, cluster.bootstrap_servers, name, topic) as group:
        (member,) = group.start(1)
        group.wait_until_received(set(first))
        group.wait_until_committed({0: 10, 1: 10})
        member.leave()
        produce(client, cluster, topic, second, partitions=2)
        group.start(1)
        group.wait_until_received(set(second))
        assert group.received_more_than_once() == []


def test_two_groups_on_one_partition_are_independent(cluster: Cluster, client: Client, client_name: str) -> None:
    topic = make_topic(client, cluster, 1, "two-groups")
    sent = values("v", 30)
    with (
        Group(client_name, cluster.bootstrap_servers, fresh("left"), topic) as left,
        Group(client_name, cluster.bootstrap_servers, fresh("right"), topic) as right,
    ):
        (leaver,) = left.start(1)
        right.start(1)
        produce(client, cluster, topic, sent[:10], partitions=1)
        for group in (left, right):
            group.wait_until_received(set(sent[:10]))
            group.wait_until_committed({0: 10})
        leaver.leave()
        produce(client, cluster, topic, sent[10:], partitions=1)
        right.wait_until_received(set(sent))
        right.wait_until_committed({0: 30})
        with contextlib.closing(client.admin(cluster.bootstrap_servers)) as admin:
            assert admin.group_offsets(left.group, topic) == {0: 10}
            assert admin.group_offsets(right.group, topic) == {0: 30}
            assert admin.describe_group(right.group).state == "Stable"
            assert admin.describe_group(left.group).state == "Empty"
