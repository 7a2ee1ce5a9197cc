"""The feed of a cluster: the times of its snapshots."""

from __future__ import annotations

import contextlib
import time

from broker.local import LocalBroker
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import GroupEventRow
from kgctl.tui.feed.derived_history import derived_events
from kgctl.tui.feed.groups import OneGroup
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.consumer_group_member import consumer_group_member
from tests.harness.wire_client import WireClient


class Slow(Admin):
    """Records when the history is requested."""

    asked_at_s = 0.0

    def new_events(self, group: str, *, whole_history: bool) -> tuple[GroupEventRow, ...]:
        self.asked_at_s = time.monotonic()
        return super().new_events(group, whole_history=whole_history)


def test_a_group_snapshot_has_the_time_of_the_description() -> None:
    with LocalBroker() as broker, Slow(ConnectionSettings(parse(broker.bootstrap_servers))) as admin:
        found = OneGroup("g", whole_history=True).run(admin)
    assert found.group.error is not None
    assert found.events == ()
    assert found.at_s <= admin.asked_at_s


def test_the_history_of_a_consumer_group_can_be_derived(cluster: Cluster) -> None:
    """Also what was before the first read; the next one brings only what is new. It agrees with what our broker records."""
    kgctl, topic, group = Kgctl(cluster.bootstrap_servers), fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    host, port = cluster.bootstrap_servers.split(":")
    address = Admin(ConnectionSettings(parse(cluster.bootstrap_servers)))
    with contextlib.closing(WireClient((host, int(port)))) as client, address as admin:
        with consumer_group_member(client, group, topic) as first:
            first.take(2)
            rows = derived_events(admin, group, whole_history=True)
            assert rows[-1].event == "stable"
            assert rows[-1].assignment == {first.member_id: (TopicPartitions(topic, (0, 1)),)}
            assert derived_events(admin, group, whole_history=False) == ()
            with consumer_group_member(client, group, topic):
                rows += derived_events(admin, group, whole_history=False)
                assert (rows[-1].event, rows[-1].cause) == ("rebalance_started", "member joined")
        rows += derived_events(admin, group, whole_history=False)
        assert (rows[-1].event, rows[-1].left_count) == ("empty", 2)
        shown = OneGroup(group, whole_history=True).run(admin).events or ()
    assert [known(row) for row in rows] == [known(row) for row in shown]


def known(row: GroupEventRow) -> tuple[object, ...]:
    return (
        row.event,
        row.generation,
        row.members,
        row.joined,
        row.left,
        row.partitions_moved,
        row.assignment,
        row.clients,
    )
