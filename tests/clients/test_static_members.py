"""Static members (KIP-345): restarts, two members with one instance id, and removal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.adapters import Client
from tests.clients.group import Group, Member
from tests.clients.records import make_topic, produce, values
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl

PARTITIONS = 4
# Longer than any restart; only the test of expiry uses a shorter one.
SESSION_TIMEOUT_MS = 10_000


class Observed:
    """The group as the broker describes it."""

    def __init__(self, cluster: Cluster, group: Group) -> None:
        self._kgctl, self._group = Kgctl(cluster.bootstrap_servers), group.group

    def generation(self) -> int | None:
        """None if the broker does not report it."""
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


def test_a_restart_within_the_session_timeout_causes_no_rebalance(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, cluster, PARTITIONS, "static")
    with group_of(client_name, cluster, topic) as group:
        first, second = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        produce(client, cluster, topic, sent := values("before", 20), PARTITIONS)
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 5))
        observed = Observed(cluster, group)
        ids, generation = observed.member_ids(), observed.generation()
        owned, since = set(first.owned), len(second.events)

        first.kill()
        (again,) = group.start_static("i-1")
        group.wait_until_shared([2, 2])
        assert again.owned == owned
        back = observed.member_ids()
        assert back.keys() == ids.keys() == {"i-1", "i-2"}
        assert back["i-1"] != ids["i-1"]
        assert back["i-2"] == ids["i-2"]
        assert observed.generation() == generation

        # A static member that exits cleanly does not leave the group either.
        again.leave()
        assert observed.member_ids() == back
        (once_more,) = group.start_static("i-1")
        group.wait_until_shared([2, 2])
        assert once_more.owned == owned
        assert observed.generation() == generation

        produce(client, cluster, topic, sent := values("after", 20), PARTITIONS)
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 10))
        assert group.received_more_than_once() == []
        # The other member was not affected.
        assert set(kinds(second)[since:]) == {"records", "committed"}


# aiokafka omits its instance id in heartbeats, and treats a fence as an unknown member id.
@pytest.mark.parametrize("client_name", ["confluent-kafka", "kafka-python"], indirect=True)
def test_the_second_member_with_an_instance_id_fences_the_first(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, cluster, PARTITIONS, "fenced")
    with group_of(client_name, cluster, topic) as group:
        first, second = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        observed = Observed(cluster, group)
        ids, generation, owned = observed.member_ids(), observed.generation(), set(first.owned)

        since = len(second.events)
        (newcomer,) = group.start_static("i-1")
        group.wait_until(lambda: newcomer.owned == owned, 30, lambda: f"the second got {newcomer.owned}, not {owned}")
        # librdkafka learns it from a heartbeat and gives up; kafka-python raises it from its next commit.
        produce(client, cluster, topic, sent := values("v", 20), PARTITIONS)

        def refusals() -> list[str]:
            return [event["error"] for event in first.events if event["event"] in {"failed", "commit failed"}]

        group.wait_until(lambda: bool(refusals()), 30, lambda: f"the first was not fenced: {kinds(first)}")
        assert "fenced" in refusals()[0].lower()
        if client_name == "confluent-kafka":
            group.wait_until(lambda: "failed" in kinds(first), 30, lambda: f"the first continues: {kinds(first)}")
        group.wait_until_received(set(sent))
        group.wait_until_committed(dict.fromkeys(range(PARTITIONS), 5))
        assert "committed" not in kinds(first)
        assert set(kinds(second)[since:]) == {"records", "committed"}
        assert observed.generation() == generation
        assert observed.member_ids()["i-2"] == ids["i-2"]
        assert observed.member_ids()["i-1"] != ids["i-1"]


@pytest.mark.parametrize("client_name", ["confluent-kafka"], indirect=True)
def test_a_member_that_does_not_return_loses_its_partitions(
    our_cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, our_cluster, PARTITIONS, "gone")
    with group_of(client_name, our_cluster, topic, 3000) as group:
        first, _ = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        observed = Observed(our_cluster, group)
        ids, generation = observed.member_ids(), observed.generation()
        first.leave()
        group.wait_until_shared([4])
        assert observed.member_ids() == {"i-2": ids["i-2"]}
        assert generation is not None
        event = observed.last_event()
        assert (event["event"], event["cause"], event["left"]) == ("stable", "session timed out", [ids["i-1"]])
        assert event["generation"] == generation + 1


@pytest.mark.parametrize("client_name", ["confluent-kafka", "kafka-python"], indirect=True)
def test_a_member_removed_by_instance_id_rejoins_with_a_new_member_id(
    our_cluster: Cluster, client: Client, client_name: str
) -> None:
    topic = make_topic(client, our_cluster, PARTITIONS, "removed")
    with group_of(client_name, our_cluster, topic, 6000) as group:
        first, _ = group.start_static("i-1", "i-2")
        group.wait_until_shared([2, 2])
        observed, kgctl = Observed(our_cluster, group), Kgctl(our_cluster.bootstrap_servers)
        ids, owned, since = observed.member_ids(), sorted(first.owned), len(first.events)

        rows = kgctl.rows("groups", "remove-members", group.group, "--instance", "i-1", "--execute")
        assert [row["group_instance_id"] for row in rows] == ["i-1"]
        # Its next heartbeat fails with UNKNOWN_MEMBER_ID: it gives up its partitions and joins as a new member.
        eventually(lambda: observed.member_ids().keys() == {"i-1", "i-2"}, "both members")
        group.wait_until(lambda: "assigned" in kinds(first)[since:], 30, lambda: f"no return: {kinds(first)}")
        group.wait_until_shared([2, 2])
        assert first.events[since] == {"event": "revoked", "partitions": owned}
        assert observed.member_ids()["i-1"] != ids["i-1"]
        assert len(group.live()) == 2
