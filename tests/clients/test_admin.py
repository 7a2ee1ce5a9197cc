"""Admin clients list and change topics, groups and offsets."""

from __future__ import annotations

import contextlib

import pytest

from tests.clients.adapters import Client, GroupView
from tests.clients.group import Group
from tests.clients.records import make_topic, produce, values
from tests.harness.clusters import Cluster, fresh


def test_an_admin_lists_topics_groups_and_offsets(cluster: Cluster, client: Client, client_name: str) -> None:
    topic, name = make_topic(client, cluster, 2, "admin"), fresh("admin")
    with contextlib.closing(client.admin(cluster.bootstrap_servers)) as admin:
        assert topic in admin.list_topics()
        with Group(client_name, cluster.bootstrap_servers, name, topic) as group:
            members = group.start(2)
            group.wait_until_shared([1, 1])
            produce(client, cluster, topic, values("v", 20), partitions=2)
            group.wait_until_committed({0: 10, 1: 10})
            assert name in admin.list_groups()
            assert admin.describe_group(name) == GroupView("Stable", "range", ["member-1", "member-2"])
            assert admin.group_offsets(name, topic) == {0: 10, 1: 10}
            for member in members:
                member.leave()
            assert admin.describe_group(name) == GroupView("Empty", "", [])
            assert admin.group_offsets(name, topic) == {0: 10, 1: 10}


def test_an_admin_changes_the_offsets_of_an_empty_group_and_deletes_it(
    cluster: Cluster, client: Client, client_name: str
) -> None:
    if not {"alter offsets", "delete groups"} <= client.CAN:
        pytest.skip(f"{client_name} has no such calls")
    topic, name = make_topic(client, cluster, 2, "moved"), fresh("moved")
    sent = values("v", 20)
    produce(client, cluster, topic, sent, partitions=2)
    with (
        contextlib.closing(client.admin(cluster.bootstrap_servers)) as admin,
        Group(client_name, cluster.bootstrap_servers, name, topic) as group,
    ):
        (member,) = group.start(1)
        group.wait_until_committed({0: 10, 1: 10})
        member.leave()
        admin.alter_group_offsets(name, topic, {0: 4})
        assert admin.group_offsets(name, topic) == {0: 4, 1: 10}

        (again,) = group.start(1)
        group.wait_until(
            lambda: len(group.received) == 26, 20, lambda: f"{len(group.received)} records, not 20 and 6 again"
        )
        assert sorted(group.received_more_than_once()) == [(0, offset) for offset in range(4, 10)]
        with pytest.raises(Exception, match=r"(?i)no[nt].?empty"):
            admin.delete_group(name)
        again.leave()
        admin.delete_group(name)
        assert name not in admin.list_groups()
        assert admin.group_offsets(name, topic) == {}
