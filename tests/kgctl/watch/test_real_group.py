"""A group of a real broker, looked at as the dashboard does it."""

from __future__ import annotations

import asyncio

from broker.local import LocalBroker
from kgctl.client.net.bootstrap import parse
from kgctl.model.groups import TopicPartitions
from kgctl.model.watched import GroupLook, Look, Verdict
from kgctl.tui.feed import ClusterFeed
from kgctl.watch.groups import GroupsWatch
from kgctl.watch.partitions import GroupWatch
from kgctl.watch.rebalances import Timeline
from tests.harness.commandline import Kgctl, member_of


def looks(address: str) -> tuple[Look, GroupLook]:
    async def ask() -> tuple[Look, GroupLook]:
        feed = ClusterFeed(parse(address), 10)
        try:
            return await feed.look(lambda look: look), await feed.look_at("g", anew=True)
        finally:
            feed.close()

    return asyncio.run(ask())


def test_a_group_of_our_broker_is_stable_then_empty_and_its_timeline_says_why() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "t", "--partitions", 2).exit_code == 0
        with member_of(kgctl, "g", {"t": [0, 1]}) as member_id:
            everything, one = looks(broker.bootstrap_servers)
        timeline = Timeline()
        (stable,) = timeline.add(one, anew=True)
        (row,) = GroupsWatch().add(everything)
        view = GroupWatch().add(one)
        everything, one = looks(broker.bootstrap_servers)
        rows = timeline.add(one, anew=True)
        (empty_row,) = GroupsWatch().add(everything)

    assert (row.state, row.generation, row.protocol, row.members, row.verdict) == ("Stable", 1, "range", 1, Verdict.OK)
    assert row.rebalanced_s is not None
    assert 0 <= row.rebalanced_s < 60
    assert (view.state_s is not None, view.is_state_s_least) == (True, False)
    assert [(each.word, each.is_dead) for each in view.members] == [("stable", False)]
    assert (stable.outcome, stable.cause, stable.joined, stable.generation) == (
        "stable", "member joined", (member_id,), 1,
    )  # fmt: skip
    assert stable.assignment == {member_id: (TopicPartitions("t", (0, 1)),)}
    assert timeline.is_told
    assert [(each.outcome, each.cause) for each in rows] == [("stable", "member joined"), ("empty", "member left")]
    assert timeline.assignment_before(rows[1]) == stable.assignment
    assert timeline.assignment_before(rows[0]) == {}
    assert (empty_row.state, empty_row.members, empty_row.verdict) == ("Empty", 0, Verdict.OK)
