"""A group of a real broker, watched as the dashboard watches it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from broker.light_dataclasses import replace
from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.groups import GroupDescription, TopicPartitions
from kgctl.model.health import Health, Judgement
from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.feed.cluster import ClusterFeed
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.watch.group import GroupWatch
from kgctl.watch.groups import GroupsWatch
from kgctl.watch.health import health
from kgctl.watch.phases import member_phases
from kgctl.watch.timeline import Timeline
from kgctl.watch.tracker import GroupTracker
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of


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
    assert (empty_row.state, empty_row.members, empty_row.health) == ("Empty", 0, None)


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        yield Kgctl(broker.bootstrap_servers)


@pytest.fixture
def orders(kgctl: Kgctl) -> str:
    """A topic with two partitions of 50 records, of which the first 20 of one are deleted. They were written an hour ago."""
    topic = fresh("orders")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    fill(kgctl, topic, [50, 50], int(time.time() * 1000) - 3_600_000)
    assert kgctl("topics", "delete-records", f"{topic}:0:20", "--execute").exit_code == 0
    return topic


def described(kgctl: Kgctl, group: str) -> GroupDescription:
    with kgctl.admin() as admin:
        (found,) = admin.describe_groups([group], commit_times=True)
        return found


def judged(one: GroupDescription, *at_s: float, wall_s: float = 0.0) -> Judgement:
    """The judgement after snapshots of an unchanged group at these times."""
    tracker = GroupTracker()
    assert one.clock_ms is not None
    for moment in at_s:
        now = replace(one, clock_ms=one.clock_ms + round(moment * 1000))
        tracker.add(moment, round((wall_s + moment) * 1000), now)
    return health(tracker)


def test_a_consumer_that_never_commits_is_named_and_its_records_are_counted(kgctl: Kgctl, orders: str) -> None:
    group = fresh("never")
    with member_of(kgctl, group, {orders: [0, 1]}):
        one = described(kgctl, group)
        young, old = judged(one, 0, 12), judged(one, 0, 12, 90)
        assert (young.health, young.evidence) == (None, (pytest.approx(12, abs=5), 90))
        assert young.reason.startswith("judging 1")
        assert (old.health, old.uncommitted_records) == (Health.NEVER_COMMITTED, 80)
        (row,) = kgctl.rows("groups", "list", "--match", group)
        assert (row["verdict"], row["uncommitted_records"]) == (None, 80)
        (row,) = kgctl.rows("groups", "describe", group, "--topic", orders)[:1]
        assert row["lag"] is None


def test_a_consumer_that_commits_and_keeps_up_is_ok_at_once(kgctl: Kgctl, orders: str) -> None:
    group = fresh("ok")
    kgctl.commit(group, orders, p0=50, p1=50)
    with member_of(kgctl, group, {orders: [0, 1]}):
        assert judged(described(kgctl, group), 0).health is Health.OK


@pytest.mark.parametrize("skew_s", [-86_400.0 * 30, 0.0, 86_400.0 * 30])
def test_our_clock_does_not_change_the_judgement_of_a_group_of_a_broker(
    kgctl: Kgctl, orders: str, skew_s: float
) -> None:
    group = fresh("skew")
    kgctl.commit(group, orders, p0=50, p1=40)
    one = described(kgctl, group)
    wall_s = (one.clock_ms or 0) / 1000 + skew_s
    assert judged(one, 0, wall_s=wall_s).health is None
    assert judged(one, 0, 89, wall_s=wall_s).health is None
    assert judged(one, 0, 91, wall_s=wall_s).health is Health.STOPPED
    assert judged(one, 0, 86_500, wall_s=wall_s).health is Health.UNUSED


def test_a_member_is_silent_until_it_is_evicted(kgctl: Kgctl, orders: str) -> None:
    group = fresh("silent")
    with member_of(kgctl, group, {orders: [0, 1]}, session_ms=30_000):
        one = described(kgctl, group)
        (row,) = one.members
        assert [each.is_silent for each in member_phases(one)] == [False]
        late = replace(one, members=(replace(row, heartbeat_age_ms=20_000),))
        found = judged(late, 0)
    assert (found.health, found.reason) == (
        Health.SILENT,
        f"{row.consumer_id}: no heartbeat for 20 s, evicted in 10 s",
    )


def test_a_group_is_unused_after_the_time_of_the_option(kgctl: Kgctl, orders: str) -> None:
    group = fresh("unused")
    kgctl.commit(group, orders, p0=10)
    (row,) = kgctl.rows("groups", "list", "--match", group)
    assert row["verdict"] is None
    (row,) = kgctl.rows("groups", "list", "--match", group, "--unused-after", "1ms")
    assert row["verdict"] == "UNUSED"
