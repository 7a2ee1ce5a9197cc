"""Static members (KIP-345): what a restart costs, who wins when there are two of one name, and how one goes for good."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.adapters import Client
from tests.clients.group import Group, Member
from tests.clients.test_groups import produce, values
from tests.clients.test_records import make_topic
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl

PARTITIONS = 4
# Longer than any restart takes: only the test of its end is to meet it.
SESSION_TIMEOUT_MS = 10_000


class Seen:
    """The group as the broker tells of it."""

    def __init__(self, cluster: Cluster, group: Group) -> None:
        self._kgctl, self._group = Kgctl(cluster.bootstrap_servers), group.group

    def generation(self) -> int | None:
        """None where the broker does not tell."""
        (row,) = self._kgctl.rows("groups", "describe", self._group, "--state")
        found: int | None = row["generation"]
        return found

    def member_ids(self) -> dict[str, str]:
        """By group instance id."""
        rows = self._kgctl.rows("groups", "describe", self._group, "--members", "--verbose")
        return {row["group_instance_id"]: row["consumer_id"] for row in rows}

    def last_event(self) -> dict[str, Any]:
        return self._kgctl.rows("groups", "history", self._group)[-1]


def group_of(client_name: str, cluster: Cluster, topic: str, session_timeout_ms: int = SESSION_TIMEOUT_MS) -> Group:
    return Group(client_name, cluster.bootstrap_servers, fresh("static"), topic, session_timeout_ms=session_timeout_ms)


def kinds(member: Member) -> list[str]:
    return [event["event"] for event in member.events]


def test_a_restart_within_the_session_timeout_is_no_rebalance(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, cluster, PARTITIONS, "static")
    with group_of(client_name, cluster, topic) as group:
        first, second = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        produce(client, cluster, topic, sent := values("before", 20), PARTITIONS)
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 5))
        seen = Seen(cluster, group)
        ids, generation = seen.member_ids(), seen.generation()
        owned, since = set(first.owned), len(second.events)

        first.kill()
        (again,) = group.start_static("i-1")
        group.wait_until_shared([2, 2])
        assert again.owned == owned
        back = seen.member_ids()
        assert back.keys() == ids.keys() == {"i-1", "i-2"}
        assert back["i-1"] != ids["i-1"]
        assert back["i-2"] == ids["i-2"]
        assert seen.generation() == generation

        # A static member that ends in order does not leave the group either.
        again.leave()
        assert seen.member_ids() == back
        (once_more,) = group.start_static("i-1")
        group.wait_until_shared([2, 2])
        assert once_more.owned == owned
        assert seen.generation() == generation

        produce(client, cluster, topic, sent := values("after", 20), PARTITIONS)
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 10))
        assert group.received_more_than_once() == []
        # The other member has noticed nothing.
        assert set(kinds(second)[since:]) == {"records", "committed"}


# aiokafka leaves its instance id out of heartbeats, and takes a fence for an id that was forgotten.
@pytest.mark.parametrize("client_name", ["confluent-kafka", "kafka-python"], indirect=True)
def test_the_second_of_one_name_fences_the_first(cluster: Cluster, client: Client, client_name: str) -> None:
    topic = make_topic(client, cluster, PARTITIONS, "fenced")
    with group_of(client_name, cluster, topic) as group:
        first, second = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        seen = Seen(cluster, group)
        ids, generation, owned = seen.member_ids(), seen.generation(), set(first.owned)

        since = len(second.events)
        (usurper,) = group.start_static("i-1")
        group.wait_until(lambda: usurper.owned == owned, 30, lambda: f"the second got {usurper.owned}, not {owned}")
        # librdkafka is told by a heartbeat and gives up; kafka-python raises it out of its next commit.
        produce(client, cluster, topic, sent := values("v", 20), PARTITIONS)

        def refusals() -> list[str]:
            return [event["error"] for event in first.events if event["event"] in {"failed", "commit failed"}]

        group.wait_until(lambda: bool(refusals()), 30, lambda: f"the first was not fenced: {kinds(first)}")
        assert "fenced" in refusals()[0].lower()
        if client_name == "confluent-kafka":
            group.wait_until(lambda: "failed" in kinds(first), 30, lambda: f"the first goes on: {kinds(first)}")
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 5))
        assert "committed" not in kinds(first)
        assert set(kinds(second)[since:]) == {"records", "committed"}
        assert seen.generation() == generation
        assert seen.member_ids()["i-2"] == ids["i-2"]
        assert seen.member_ids()["i-1"] != ids["i-1"]


@pytest.mark.parametrize("client_name", ["confluent-kafka"], indirect=True)
def test_one_that_does_not_come_back_loses_its_partitions_to_the_others(
    our_cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, our_cluster, PARTITIONS, "gone")
    with group_of(client_name, our_cluster, topic, 3000) as group:
        first, _ = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        seen = Seen(our_cluster, group)
        ids, generation = seen.member_ids(), seen.generation()
        first.leave()
        group.wait_until_shared([4])
        assert seen.member_ids() == {"i-2": ids["i-2"]}
        assert generation is not None
        event = seen.last_event()
        assert (event["event"], event["cause"], event["left"]) == ("stable", "session timed out", [ids["i-1"]])
        assert event["generation"] == generation + 1


@pytest.mark.parametrize("client_name", ["confluent-kafka", "kafka-python"], indirect=True)
def test_one_that_an_admin_removes_by_its_name_comes_back_under_a_new_id(
    our_cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, our_cluster, PARTITIONS, "removed")
    with group_of(client_name, our_cluster, topic, 6000) as group:
        first, _ = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        seen, kgctl = Seen(our_cluster, group), Kgctl(our_cluster.bootstrap_servers)
        ids, owned, since = seen.member_ids(), sorted(first.owned), len(first.events)

        rows = kgctl.rows("groups", "remove-members", group.group, "--instance", "i-1", "--execute")
        assert [row["group_instance_id"] for row in rows] == ["i-1"]
        # Its process is told by its next heartbeat that nobody knows it: it lets go of all, and joins as a new member.
        eventually(lambda: seen.member_ids().keys() == {"i-1", "i-2"}, "both members")
        group.wait_until(lambda: "assigned" in kinds(first)[since:], 30, lambda: f"no return: {kinds(first)}")
        group.wait_until_shared([2, 2])
        assert first.events[since] == {"event": "revoked", "partitions": owned}
        assert seen.member_ids()["i-1"] != ids["i-1"]
        assert len(group.live()) == 2
