"""A group of a real broker, watched as the dashboard watches it."""

from __future__ import annotations

import asyncio

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.groups import TopicPartitions
from kgctl.model.health import Health
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.watch.group import GroupWatch
from kgctl.watch.groups import GroupsWatch
from kgctl.watch.timeline import Timeline
from tests.harness.commandline import Kgctl, member_of


def snapshots(address: str) -> tuple[Snapshot, GroupSnapshot]:
    async def ask() -> tuple[Snapshot, GroupSnapshot]:
        feed = ClusterFeed(ConnectionSettings(parse(address), timeout=10))
        try:
            return await feed.read(AllGroups()), await feed.read(OneGroup("g", whole_history=True))
        finally:
            feed.close()

    return asyncio.run(ask())


def test_the_timeline_of_a_group_on_our_broker_has_the_causes() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "t", "--partitions", 2).exit_code == 0
        with member_of(kgctl, "g", {"t": [0, 1]}) as member_id:
            everything, one = snapshots(broker.bootstrap_servers)
        timeline = Timeline()
        (stable,) = timeline.add(one, whole_history=True)
        (row,) = GroupsWatch().add(everything)
        view = GroupWatch().add(one)
        everything, one = snapshots(broker.bootstrap_servers)
        rows = timeline.add(one, whole_history=True)
        (empty_row,) = GroupsWatch().add(everything)

    assert (row.state, row.generation, row.protocol, row.members, row.health) == ("Stable", 1, "range", 1, Health.OK)
    assert row.rebalanced_s is not None
    assert 0 <= row.rebalanced_s < 60
    assert (view.state_s is not None, view.is_state_s_least) == (True, False)
    assert [(each.phase, each.is_silent) for each in view.members] == [("stable", False)]
    assert (stable.outcome, stable.cause, stable.joined, stable.generation) == (
        "stable", "member joined", (member_id,), 1,
    )  # fmt: skip
    assert stable.assignment == {member_id: (TopicPartitions("t", (0, 1)),)}
    assert timeline.has_history
    assert [(each.outcome, each.cause) for each in rows] == [("stable", "member joined"), ("empty", "member left")]
    assert timeline.assignment_before(rows[1]) == stable.assignment
    assert timeline.assignment_before(rows[0]) == {}
    assert (empty_row.state, empty_row.members, empty_row.health) == ("Empty", 0, Health.OK)
