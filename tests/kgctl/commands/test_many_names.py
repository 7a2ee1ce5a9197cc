"""Changes of more groups, topics or offsets than our broker accepts in one request: each has its row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.cores.groups.offsets import MAX_COMMITTED_PARTITIONS
from broker.server.declaration import FEWER_ENTRIES, MAX_ENTRIES
from kgctl.client.admin import offsets
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.topics import delete_topics, topic_configs
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings
from kgctl.model.changes import GroupChange, TopicChange
from tests.harness.clusters import Cluster, fresh


@pytest.fixture
def admin(our_cluster: Cluster) -> Iterator[Admin]:
    with Admin(ConnectionSettings(parse(our_cluster.bootstrap_servers), timeout=60)) as made:
        yield made


def test_more_groups_than_fit_into_a_request_are_deleted(admin: Admin) -> None:
    rows = admin.delete_groups([GroupChange(f"absent-{n}", "Empty") for n in range(MAX_ENTRIES + 1)])
    assert [row.error and row.error.name for row in rows] == ["GROUP_ID_NOT_FOUND"] * (MAX_ENTRIES + 1)


def test_more_topics_than_fit_into_a_request_are_created_deleted_and_described(admin: Admin) -> None:
    names = [f"no:topic-{n}" for n in range(FEWER_ENTRIES + 1)]
    made = admin.create_topics(names)
    gone = admin.run(delete_topics(admin.cluster, [TopicChange(name, 1, 1) for name in names]))
    configs = admin.run(topic_configs(admin.cluster, names))
    for rows, error in ((made, "INVALID_TOPIC"), (gone, "UNKNOWN_TOPIC"), (configs, "INVALID_TOPIC")):
        assert len(rows) == len(names)
        assert all(row.error and row.error.name.startswith(error) for row in rows)


def test_more_offsets_than_fit_into_a_request_are_committed_and_deleted(admin: Admin) -> None:
    half = MAX_COMMITTED_PARTITIONS // 2 + 1
    group, topics = fresh("g"), [fresh("t"), fresh("t")]
    for topic in topics:
        (made,) = admin.create_topics([topic], partitions=half)
        assert made.error is None
    wanted = {(topic, number): number for topic in topics for number in range(half)}
    assert set(admin.run(offsets.commit(admin.cluster, group, wanted)).values()) == {None}
    found = admin.committed([group])[group]
    assert isinstance(found, dict)
    assert {key: row.offset for key, row in found.items()} == wanted
    assert set(admin.run(offsets.delete_each(admin.cluster, {group: wanted}))[group].values()) == {None}
    assert admin.committed([group])[group] == {}
