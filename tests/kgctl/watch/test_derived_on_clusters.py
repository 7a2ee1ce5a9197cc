"""The same changes of members on a real Kafka and on our broker: the derived events are the same, and those that ours records."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import Precondition
from kgctl.model.history import LEFT_OR_TIMED_OUT, GroupEventRow
from kgctl.watch.derived_events import DerivedEvents
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.consumer_group_member import ConsumerGroupMember, consumer_group_member
from tests.harness.wire_client import WireClient

Known = list[tuple[Any, ...]]


def walk(cluster: Cluster, seed: int) -> tuple[Known, Known]:
    """The derived events of a group with up to four members, and those that the cluster records."""
    random, kgctl, topic, group = Random(seed), Kgctl(cluster.bootstrap_servers), fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 6).exit_code == 0
    host, port = cluster.bootstrap_servers.split(":")
    members: list[ConsumerGroupMember] = []
    address = Admin(ConnectionSettings(parse(cluster.bootstrap_servers)))
    with contextlib.closing(WireClient((host, int(port)))) as client, address as admin:
        with consumer_group_member(client, group, topic) as first:
            first.take(6)  # Kafka knows the topic a little later, which makes another epoch
        for number in range(60):
            move = random.choice(("join", "leave", *["obey"] * 6)) if members else "join"
            if move == "join" and len(members) < 4:
                members.append(ConsumerGroupMember(client, group, topic))
                members[-1].member_id = f"m{number}"
                members[-1].beat()
            elif move == "leave" and len(members) > 1:
                members.pop(random.randrange(len(members))).leave()
            else:
                random.choice(members).obey()
        for one in members:
            one.leave()
        derived = DerivedEvents()
        admin.read_group_records(None, derived.take, group)
        recorded: tuple[GroupEventRow, ...] = ()
        with contextlib.suppress(Precondition):
            recorded = admin.new_events(group, whole_history=True)
        return _known(derived.rows()), _known(recorded)


def _known(rows: Sequence[GroupEventRow]) -> Known:
    """Since the first time the group was empty, with the epochs since then."""
    at = next((place for place, row in enumerate(rows) if row.event == "empty"), len(rows) - 1)
    return [
        (
            row.event,
            row.generation - rows[at].generation,
            LEFT_OR_TIMED_OUT if row.cause == "member left" else row.cause,
            row.members,
            row.joined,
            row.left,
            row.partitions_moved,
        )
        for row in rows[at + 1 :]
    ]


@pytest.mark.parametrize("seed", range(3))
def test_derived_events_are_those_that_our_broker_records(our_cluster: Cluster, seed: int) -> None:
    derived, recorded = walk(our_cluster, seed)
    assert derived == recorded
    assert {event[0] for event in derived} == {"rebalance_started", "stable", "empty"}


@pytest.mark.reference
@pytest.mark.parametrize("seed", range(3))
def test_derived_events_of_a_real_kafka_are_those_of_our_broker(
    shared_clusters: Callable[[str], Cluster], seed: int
) -> None:
    assert walk(shared_clusters("kafka"), seed)[0] == walk(shared_clusters("kgctl"), seed)[0]
