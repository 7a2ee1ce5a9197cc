"""`kgctl groups` shows consumer groups (KIP-848) natively: epochs, targets, and who has not given up what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kgctl.client.net.bootstrap import parse
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.consumer_group_member import ConsumerGroupMember, consumer_group_member
from tests.harness.wire_client import WireClient


@pytest.fixture
def client(cluster: Cluster) -> Iterator[WireClient]:
    (address,) = parse(cluster.bootstrap_servers)
    with WireClient((address.host, address.port)) as connection:
        yield connection


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 4).exit_code == 0
    return name


@pytest.fixture
def pair(client: WireClient, topic: str) -> Iterator[tuple[ConsumerGroupMember, ConsumerGroupMember]]:
    """A member that has not given up two of its four partitions, and one that waits for them."""
    group = fresh("g")
    with ExitStack() as members:
        first = members.enter_context(consumer_group_member(client, group, topic, rack_id="r1"))
        first.take(4)
        second = members.enter_context(consumer_group_member(client, group, topic))
        first.beat()
        assert (first.epoch, len(first.told_partitions), second.told_partitions) == (second.epoch - 1, 2, [])
        yield first, second


def test_a_reconciliation_is_shown_by_member(
    kgctl: Kgctl, topic: str, pair: tuple[ConsumerGroupMember, ConsumerGroupMember]
) -> None:
    first, second = pair
    kept, before, now = first.told_partitions, first.epoch, second.epoch
    moving = [{"topic": topic, "partitions": [number for number in range(4) if number not in kept]}]
    rows = {row["consumer_id"]: row for row in kgctl.rows("groups", "describe", first.group, "--members")}
    one, other = rows[first.member_id], rows[second.member_id]
    assert (one["phase"], one["current_epoch"], one["target_epoch"], one["revoking"]) == (
        "revoking",
        before,
        now,
        moving,
    )
    assert (other["phase"], other["current_epoch"], other["waiting_for"]) == ("waiting", now, moving)
    assert (one["rack_id"], one["member_type"], one["subscribed"]) == ("r1", "Consumer", [topic])
    (state,) = kgctl.rows("groups", "describe", first.group, "--state")
    assert (state["state"], state["group_epoch"], state["target_assignment_epoch"]) == ("Reconciling", now, now)
    (listed,) = kgctl.rows("groups", "list", "--match", first.group)
    assert (listed["type"], listed["verdict"]) == ("Consumer", "REBALANCING")
    assert "has not given up" in listed["verdict_reason"]
    table = kgctl("groups", "describe", first.group, "--members").stdout.split("\n")[0].split()
    assert table[-2:] == ["REVOKING", "WAITING-FOR"]

    first.obey()
    second.take(2)
    assert [row["phase"] for row in kgctl.rows("groups", "describe", first.group, "--members")] == ["stable"] * 2


def test_conditions_know_epochs_and_reconciliation(
    kgctl: Kgctl, pair: tuple[ConsumerGroupMember, ConsumerGroupMember]
) -> None:
    first, second = pair
    epochs = f"group_epoch == {second.epoch} and assignment_epoch == {second.epoch}"
    wanted = f"state == Reconciling and reconciling == 2 and {epochs}"
    assert kgctl("groups", "assert", first.group, "--for", wanted).exit_code == 0
    late = kgctl("groups", "wait", first.group, "--for", "reconciling == 0", "--timeout", "0.2")
    assert (late.exit_code, "reconciling is 2" in late.stderr) == (3, True)
    first.obey()
    second.take(2)
    settled = f"state == Stable and reconciling == 0 and {epochs}"
    assert kgctl("groups", "assert", first.group, "--for", settled).exit_code == 0


def test_a_regular_expression_is_shown_as_the_subscription(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group, pattern = fresh("g"), f"{topic}.*"
    with consumer_group_member(client, group, subscribed_topic_regex=pattern):
        (row,) = kgctl.rows("groups", "describe", group, "--members")
        assert (row["subscribed_regex"], row["subscribed"]) == (pattern, [])


def test_a_reset_says_that_members_must_stop_because_they_cannot_be_removed(
    kgctl: Kgctl, client: WireClient, topic: str
) -> None:
    group = fresh("g")
    with consumer_group_member(client, group, topic):
        scope = ["groups", "reset-offsets", group, "--topic", topic, "--to-earliest"]
        planned = kgctl(*scope)
        assert (planned.exit_code, "--drain" in planned.stderr) == (0, False)
        assert "Stop its consumers" in planned.stderr
        refused = kgctl(*scope, "--execute")
        assert (refused.exit_code, "Stop its consumers" in refused.stderr) == (6, True)
