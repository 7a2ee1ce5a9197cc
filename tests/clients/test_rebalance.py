"""`kgctl groups rebalance` on groups of real consumers: our broker keeps member ids, other brokers evict members."""

from __future__ import annotations

import pytest

from tests.clients.adapters import client_named
from tests.clients.group import Group
from tests.clients.records import make_topic
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.reference_kafka import ReferenceKafka


def member_ids(kgctl: Kgctl, group: str) -> set[str]:
    return {row["consumer_id"] for row in kgctl.rows("groups", "describe", group, "--members")}


def generation(kgctl: Kgctl, group: str) -> int:
    (row,) = kgctl.rows("groups", "describe", group, "--state")
    return int(row["generation"])


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_members_keep_their_ids_and_all_partitions_are_owned_afterwards(our_cluster: Cluster, assignor: str) -> None:
    pytest.importorskip("confluent_kafka")
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic = make_topic(client_named("confluent-kafka"), our_cluster, 4, "asked")
    name = fresh("asked")
    with Group("confluent-kafka", our_cluster.bootstrap_servers, name, topic, assignor=assignor) as group:
        group.start(2)
        group.wait_until_shared([2, 2])
        ids, before = member_ids(kgctl, name), generation(kgctl, name)
        rows = kgctl.rows("groups", "rebalance", name, "--wait", "--reason", "test", "--execute")
        assert {row["consumer_id"] for row in rows} == ids
        assert {(row["method"], row["status"]) for row in rows} == {("trigger", "rejoined")}
        assert {row["generation_before"] for row in rows} == {before}
        assert all(row["generation_after"] > before for row in rows)
        assert all(0 < row["stable_after_ms"] < 30_000 for row in rows)
        assert (member_ids(kgctl, name), generation(kgctl, name)) == (ids, rows[0]["generation_after"])
        group.wait_until_shared([2, 2])


@pytest.mark.reference
def test_a_real_kafka_evicts_only_with_consent(cluster: Cluster) -> None:
    if not isinstance(cluster, ReferenceKafka):
        pytest.skip("our broker needs no eviction")
    kgctl = Kgctl(cluster.bootstrap_servers)
    topic = make_topic(client_named("confluent-kafka"), cluster, 2, "evicted")
    name = fresh("evicted")
    with Group("confluent-kafka", cluster.bootstrap_servers, name, topic) as group:
        group.start(1)
        group.wait_until_shared([2])
        ids = member_ids(kgctl, name)
        refused = kgctl("groups", "rebalance", name, "--execute")
        assert (refused.exit_code, refused.stdout) == (6, "")
        assert "Add --evict" in refused.stderr
        assert member_ids(kgctl, name) == ids
        rows = kgctl.rows("groups", "rebalance", name, "--evict", "--wait", "--execute")
        assert {row["status"] for row in rows} == {"gone", "joined"}
        assert not member_ids(kgctl, name) & ids
