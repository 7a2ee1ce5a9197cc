"""`kgctl groups` shows share groups (KIP-932), and moves their start offsets."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from kgctl.client.net.bootstrap import parse
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill
from tests.harness.wire_client import WireClient


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    """A broker with share groups, which a feature enables. Kafka 4.1.0 drops the offsets of every reset."""
    with LocalBroker() as running, connected(running) as client:
        update = UpdateFeaturesRequest.Update(feature="share.version", max_version_level=1, upgrade_type=1)
        assert not client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code
        yield running


def connected(broker: LocalBroker) -> WireClient:
    (address,) = parse(broker.bootstrap_servers)
    return WireClient((address.host, address.port))


@pytest.fixture
def client(broker: LocalBroker) -> Iterator[WireClient]:
    with connected(broker) as connection:
        yield connection


@pytest.fixture
def kgctl(broker: LocalBroker) -> Kgctl:
    return Kgctl(broker.bootstrap_servers)


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Two partitions with 10 and 4 records."""
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [10, 4])
    return name


def beat(client: WireClient, group: str, member: str, epoch: int, *topics: str) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id=group, member_id=member, member_epoch=epoch, subscribed_topic_names=list(topics) or None
    )
    answer = client.ask(request)
    assert not answer.error_code, (answer.error_code, answer.error_message)


def test_a_share_group_is_reset_when_its_members_have_left(kgctl: Kgctl, client: WireClient, topic: str) -> None:
    group, member = fresh("share"), str(uuid.uuid4())
    beat(client, group, member, 0, topic)
    (listed,) = kgctl.rows("groups", "list", "--match", group)
    assert (listed["type"], listed["state"], listed["members"]) == ("Share", "Stable", 1)
    (row,) = kgctl.rows("groups", "describe", group, "--members")
    assert (row["consumer_id"], row["subscribed"], row["phase"]) == (member, [topic], None)
    reset = ["groups", "reset-offsets", group, "--topic", topic, "--shift-by", "-2", "--execute"]
    assert kgctl("groups", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute").exit_code == 6

    beat(client, group, member, -1)
    moved = kgctl.rows("groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute")
    assert [(row["partition"], row["new_offset"], row["status"]) for row in moved] == [(0, 3, "done"), (1, 3, "done")]
    assert kgctl(*reset).exit_code == 0
    rows = kgctl.rows("groups", "describe", group)
    found = [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) for row in rows]
    assert found == [(0, 1, 10, 9), (1, 1, 4, 3)]
    assert "LAG counts all after it" in kgctl("groups", "describe", group).stderr
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0


def test_a_share_group_is_not_made_again_as_a_group_of_another_type(
    kgctl: Kgctl, client: WireClient, topic: str, tmp_path: Path
) -> None:
    group, member, file = fresh("share"), str(uuid.uuid4()), tmp_path / "groups.json"
    beat(client, group, member, 0, topic)
    beat(client, group, member, -1)
    assert kgctl("groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3, "--execute").exit_code == 0
    refused = kgctl("groups", "delete-offsets", group, "--topic", topic)
    assert (refused.exit_code, "can be set (reset-offsets), not deleted" in refused.stderr) == (6, True)
    assert kgctl("groups", "snapshot", group, "--out", file).exit_code == 0
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0

    undone = kgctl("undo", "--execute")
    assert undone.exit_code == 6
    assert "cannot be made again" in undone.stderr
    restored = kgctl("groups", "restore", file, "--execute")
    assert restored.exit_code == 6
    assert "is no share group, and kgctl cannot make one" in restored.stderr
    assert kgctl("groups", "describe", group).exit_code == 5
